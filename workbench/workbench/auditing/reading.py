"""Rows from a file of released kernels: JSON Lines, one JSON array, or an object of levels.

The text is somebody else's: what cannot be read becomes a row that says so, never an exception, as long as any of the
input is of the right form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import structs

from workbench.auditing.rows import NO_LEVEL, Row, claim, is_claim, one_line
from workbench.errors import UsageProblem

CODE_FIELDS = ("custom_code", "code")
"""Where the kernel is looked for when no field is named."""
LARGEST = 4 << 20
"""Characters of one source; more is no kernel."""
OWN_FIELDS = ("level_id", "level", "task_id", "problem_id", "id", "ref_code", "reference", "name", "kind")

Lookup = Callable[[str, str], str | None]
"""(level, task) → source of the reference kept outside the file, None when there is none."""


def nothing(level: str, task: str) -> str | None:
    """A `Lookup` without any reference."""
    return None


def read_rows(data: bytes, label: str, code: str = "", reference_of: Lookup = nothing) -> list[Row]:
    """All rows of the input, in order. `code` names the field with the kernel ("": custom_code, else code).

    Raises UsageProblem when the input as a whole is of no known form.
    """
    text = data.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise UsageProblem(f"{label}: is empty; give JSON Lines with level_id, task_id, ref_code, custom_code")
    entries = list(_entries(text, label))
    rows = []
    for number, (where, level, value) in enumerate(entries, 1):
        if isinstance(value, _Broken):
            rows.append(Row(number, level or NO_LEVEL, f"row {number}", "", None, where=where, problem=value.reason))
        else:
            rows.append(_row(number, where, level, value, code, reference_of))
    if all(isinstance(value, _Broken) or not _looks_right(value) for _, _, value in entries):
        first = next((v.reason for _, _, v in entries if isinstance(v, _Broken)), "no row has ref_code or custom_code")
        raise UsageProblem(
            f"{label}: holds no released kernels ({first}); give JSON Lines with level_id, task_id, ref_code, "
            "custom_code"
        )
    return with_samples(rows)


def with_samples(rows: Iterable[Row]) -> list[Row]:
    """Numbers further rows of the same task, so that every key is there once."""
    seen: Counter[str] = Counter()
    taken: set[str] = set()
    result = []
    for row in rows:
        key = row.key
        while row.key in taken:
            seen[key] += 1
            row = structs.replace(row, sample=str(seen[key] + 1))
        taken.add(row.key)
        result.append(row)
    return result


class _Broken:
    def __init__(self, reason: str) -> None:
        self.reason = reason


def _entries(text: str, label: str) -> Iterator[tuple[str, str, Any]]:
    """(where, level given by the form, value) of each row."""
    whole = _parse(text)
    if isinstance(whole, _Broken):
        if text.lstrip().startswith("["):
            raise UsageProblem(f"{label}: {whole.reason}")
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                value = _parse(line)
                if not isinstance(value, dict | _Broken):
                    value = _Broken(f"is a JSON {type(value).__name__}, not an object")
                yield f"line {number}", "", value
    elif isinstance(whole, list):
        yield from _listed(whole, "", "item ")
    elif isinstance(whole, dict) and not _looks_right(whole) and any(isinstance(v, list) for v in whole.values()):
        for level, values in whole.items():
            if isinstance(values, list):
                yield from _listed(values, _name(level), f"{_clean(level)}, item ")
    else:
        yield "line 1", "", whole if isinstance(whole, dict) else _Broken("is not an object, a list or JSON Lines")


def _listed(values: list[Any], level: str, place: str) -> Iterator[tuple[str, str, Any]]:
    for number, value in enumerate(values, 1):
        broken = _Broken(f"is a JSON {type(value).__name__}, not an object")
        yield f"{place}{number}", level, value if isinstance(value, dict) else broken


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return _Broken(f"not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})")
    except (RecursionError, ValueError) as error:
        return _Broken(f"not valid JSON ({type(error).__name__})")


def _looks_right(value: Any) -> bool:
    return isinstance(value, dict) and any(f in value for f in (*CODE_FIELDS, "ref_code", "task_id"))


def _row(number: int, where: str, level: str, value: dict[str, Any], code: str, reference_of: Lookup) -> Row:
    level = level or _name(_first(value, ("level_id", "level")))
    given_task = _first(value, ("task_id", "problem_id", "id"))
    task = _name(given_task) or f"row {number}"
    field = code or next((f for f in CODE_FIELDS if f in value), CODE_FIELDS[0])
    reference = _first(value, ("ref_code", "reference"))
    source = value.get(field)
    problem = ""
    if field not in value:
        problem = f"has no field {field!r}"
    elif not isinstance(source, str | None):
        problem = f"{field} is a JSON {type(source).__name__}, not text"
    elif isinstance(source, str) and len(source) > LARGEST:
        problem = f"{field} is {len(source)} characters long"
    if not isinstance(reference, str) or not reference.strip():
        reference = reference_of(level, task)
        if reference is None:
            problem = problem or "has no ref_code; --reference DIR can give the references"
    elif len(reference) > LARGEST:
        problem = problem or f"ref_code is {len(reference)} characters long"
    used = {*OWN_FIELDS, field}
    return Row(
        number=number,
        level=level or "-",
        task=task,
        reference="" if problem else _clean(reference or ""),
        candidate=None if problem or source is None else _clean(source),
        claims={one_line(_clean(k)): claim(v) for k, v in value.items() if is_claim(k)},
        kind="kernel" if value.get("kind") == "kernel" else "module",
        name=_name(value.get("name")),
        where=where,
        problem=problem,
        extra={_clean(k): _clean(v) for k, v in value.items() if k not in used and not is_claim(k)},
    )


def _first(value: dict[str, Any], fields: tuple[str, ...]) -> Any:
    return next((value[f] for f in fields if f in value), None)


def _name(value: Any) -> str:
    """A level or task as a short text without separators."""
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return one_line(str(_clean(value)).replace("/", "_").replace("#", "_"))[:100]


def _clean(value: Any) -> Any:
    """Without what JSON of ours could not carry: lone surrogates, numbers beyond 64 bits."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_clean(v) for v in value]
    if isinstance(value, dict):
        return {_clean(k): _clean(v) for k, v in value.items()}
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)[:100] if abs(value) < 10**4000 else "a very large number"
    return value
