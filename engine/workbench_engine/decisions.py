"""What a person may decide about a candidate, and the files that accepting one writes.

`refuse_*` are pure: "" when the wish can be granted, else the reason in one line.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from workbench_engine.conducting.evaluation import CORRECT
from workbench_sessions.events import HostCard
from workbench_sessions.projection import Candidate, Header

SUFFIX = {"kernel": ".cpp", "module": ".py"}


class AcceptedCard(Struct, frozen=True):
    """The JSON beside an accepted kernel: what was measured of it, where, and who took it. Seconds, ratios."""

    candidate: str
    file: str
    source_sha256: str
    task: str
    task_sha256: str
    dims: dict[str, int]
    dtype: str
    verdict: str
    speedup: float | None
    lower: float | None
    upper: float | None
    pairs: int
    reference_s: float | None
    candidate_s: float | None
    floor: float | None
    confirmed: bool
    threads_speedup: float | None
    sandbox_level: str
    session: str
    policy: str
    parents: list[str]
    host: HostCard | None
    accepted_by: str
    reason: str


def refuse_accept(row: Candidate | None, name: str) -> str:
    if row is None:
        return _unknown(name)
    if row.verdict is None:
        return f"{name} has not been judged yet; accept it when it has a verdict"
    if row.verdict not in CORRECT:
        return f"{name} is {row.verdict}; only a candidate that was verified as correct can be accepted"
    if row.decision == "accepted":
        return f"{name} is accepted already ({row.accepted_path})"
    return ""


def refuse_reject(row: Candidate | None, name: str) -> str:
    if row is None:
        return _unknown(name)
    return f"{name} is rejected already" if row.decision == "rejected" else ""


def refuse_undo(row: Candidate | None, name: str) -> str:
    if row is None:
        return _unknown(name)
    return "" if row.decision in ("accepted", "rejected") else f"nobody decided about {name}; there is nothing to undo"


def refuse_pin(row: Candidate | None, name: str) -> str:
    return _unknown(name) if row is None else ""


def _unknown(name: str) -> str:
    return f"there is no candidate {name!r} in this session"


def accepted_path(folder: Path, task: str, row: Candidate) -> Path:
    """Where an accepted candidate goes: TASK-CANDIDATE.cpp or .py."""
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{task}-{row.id}")
    return folder / f"{stem}{SUFFIX.get(row.kind, '.txt')}"


def write_accepted(folder: Path, row: Candidate, header: Header, level: str, text: str, by: str, why: str) -> Path:
    """Writes the candidate's file and its card; returns the file's path. Raises OSError; a file is whole or absent."""
    task = header.task
    name = task.name if task is not None else header.name
    path = accepted_path(folder, name, row)
    card = AcceptedCard(
        candidate=row.id,
        file=path.name,
        source_sha256=row.source_sha256,
        task=name,
        task_sha256=task.source_sha256 if task is not None else "",
        dims=task.dims if task is not None else {},
        dtype=task.dtype if task is not None else "",
        verdict=row.verdict or "",
        speedup=row.speedup,
        lower=row.lower,
        upper=row.upper,
        pairs=row.pairs,
        reference_s=row.reference_s,
        candidate_s=row.candidate_s,
        floor=row.delta,
        confirmed=row.confirmed,
        threads_speedup=row.threads_speedup,
        sandbox_level=level,
        session=header.session_id,
        policy=row.origin.policy,
        parents=row.parents,
        host=header.host,
        accepted_by=by,
        reason=why,
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write(path, text)
    _write(path.with_suffix(".json"), msgspec.json.format(msgspec.json.encode(card).decode(), indent=2) + "\n")
    return path


def remove_accepted(path: Path, source_sha256: str) -> None:
    """Takes back what `write_accepted` wrote, unless somebody changed the file since. Raises OSError."""
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return
    if found == source_sha256:
        path.unlink()
        path.with_suffix(".json").unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
