"""How much of the past a projection keeps in memory; the file has all of it."""

from __future__ import annotations

from typing import Any

BLOCK = 128
"""Elements a checkpoint block holds; bounded lists shrink by whole blocks, so the rest keeps its place in its block."""

TELEMETRY_KEPT = 10 * BLOCK
LANE_SPANS_KEPT = 16 * BLOCK
LOG_LINES_KEPT = 4 * BLOCK
DETAILS_WHOLE = 2 * BLOCK
"""So many newest candidates keep build log, checks and feedback in memory; `details(candidate)` reads the rest."""

PAIR_BLOCK = 16
PAIR_SERIES_KEPT = 64
PAIRS_IN_SERIES = 4096


def append_bounded(items: list[Any], item: Any, kept: int) -> None:
    """Appends, and drops the oldest block once that leaves `kept`."""
    items.append(item)
    if len(items) >= kept + BLOCK:
        del items[:BLOCK]
