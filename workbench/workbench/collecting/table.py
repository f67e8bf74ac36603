"""The data set as a parquet file, where pyarrow is installed; nothing here depends on it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.collecting.attempts import MACHINE, Attempt

_TYPES = {
    "number": "int64",
    "seed": "int64",
    "pairs": "int64",
    "tokens_in": "int64",
    "tokens_out": "int64",
    "speedup": "float64",
    "lower": "float64",
    "upper": "float64",
    "reference_s": "float64",
    "candidate_s": "float64",
    "cost": "float64",
}
"""Columns that are no text. Written down, so that a column without any value has the same type as in other files."""


def columns() -> tuple[str, ...]:
    """The names of a row's fields, in order."""
    kept = tuple(name for name in Attempt.__struct_fields__ if name not in ("problem", "machine"))
    return (*kept, *(f"machine_{name}" for name in MACHINE))


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether it was written: not without pyarrow, and then no older file stays either. Raises OSError."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        path.unlink(missing_ok=True)
        return False
    schema = arrow.schema([(name, _type(arrow, name)) for name in columns()])
    half = path.with_name(path.name + ".half")
    parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), str(half))
    half.replace(path)
    return True


def _type(arrow: Any, name: str) -> Any:
    if name == "findings":
        return arrow.list_(arrow.string())
    return getattr(arrow, _TYPES.get(name, "string"))()
