"""An import for people: a line a file, a table of the levels; pure."""

from __future__ import annotations

from workbench.importing.rows import Counts, Row

ROW_COLUMNS = ("task", "name", "state", "why", "bytes", "seconds")
COUNT_COLUMNS = ("level", "files", "clean", "degenerate", "cannot open", "cut", "why not clean")


def size(count: int) -> str:
    """ "64 MiB"."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


def row_cells(row: Row) -> list[str]:
    """One file. Bytes are those of inputs, state and outputs of one call, of the copy and before it was cut."""
    why = row.cause or (", ".join(row.sizes) if row.sizes else "")
    shown = size(row.estimate.tensors) if row.estimate is not None and row.estimate.complete else "—"
    if row.sizes and row.original is not None:
        shown += f" of {size(row.original.tensors)}"
    return [row.key, row.name.partition("_")[2], row.state, why, shown, f"{row.seconds:.1f}"]


def count_cells(counts: Counts) -> list[str]:
    """One level."""
    why = ", ".join(f"{count} {cause.partition(': ')[2]}" for cause, count in counts.causes.items())
    name = str(counts.level) if counts.level else "all"
    return [
        name,
        str(counts.files),
        str(counts.clean),
        str(counts.degenerate),
        str(counts.cannot_open),
        str(counts.cut),
        why or "—",
    ]


def line(row: Row) -> str:
    """One file while the import runs."""
    said = f"{row.key} {row.name.partition('_')[2]}: {row.state}"
    if row.reason:
        said += f": {row.reason[:200]}"
    elif row.sizes:
        said += f" (cut: {', '.join(row.sizes)})"
    return said
