"""Taking a session elsewhere: events as JSON lines, candidates as CSV, sources as files, or a small shareable session.

What leaves is redacted: keys and tokens, home folders, and the host's name. A redacted text no longer has the hash it
is stored under; the hash goes on naming it.
"""

from __future__ import annotations

import csv
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import msgspec

from workbench_sessions import connection as db
from workbench_sessions.checkpoints import CheckpointWriter
from workbench_sessions.connection import transaction, translated
from workbench_sessions.errors import SessionError, SessionExists, SessionUnwritable
from workbench_sessions.events import SessionOpened, Stamped, encode, kind_of
from workbench_sessions.fold import fold
from workbench_sessions.projection import Candidate, Projection
from workbench_sessions.reader import READ_CHUNK, SessionReader, stamped_rows
from workbench_sessions.summary import summary_of

Redact = Callable[[str], str]

SHARED_CHECKPOINT_EVERY = 2000
"""A shared copy has half the checkpoints: a seek folds at most this many events."""

_SECRETS = (
    (re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"), "sk-[redacted]"),
    (re.compile(r"\b(?:ghp|gho|ghs|ghu|github_pat|hf|glpat|xox[abpr])[-_][A-Za-z0-9_-]{16,}"), "[redacted]"),
    (re.compile(r"\bAKIA[A-Z0-9]{12,}"), "[redacted]"),
    (re.compile(r"(?i)\b(bearer)\s+[A-Za-z0-9._~+/-]{6,}=*"), r"\1 [redacted]"),
    (
        # A name that promises a secret, then a long word with a digit in it: code like `token = next(it)` stays.
        re.compile(
            r"""(?i)((?:api[_-]?key|secret|password|token)["'\\]*\s*[:=]\s*["'\\]*)(?=[\w./+-]*\d)[\w./+-]{16,}=*"""
        ),
        r"\1[redacted]",
    ),
)
_HINTS = (
    "sk-",
    "bearer",
    "api",
    "secret",
    "password",
    "token",
    "gh",
    "hf",
    "glpat",
    "xox",
    "akia",
    "/home/",
    "/users/",
    "/root",
)
"""Without one of these, in lower case, nothing can match: a session has hundreds of thousands of texts to look at."""
_HOMES = re.compile(r"(/home|/Users)/[^/\s\"'\\:,;]+|/root(?=/|\b)")
_LEAST_HOSTNAME = 3
_CSV_FIELDS = (
    "id",
    "kind",
    "policy",
    "model",
    "island",
    "generation",
    "parents",
    "group",
    "stage",
    "verdict",
    "speedup",
    "lower",
    "upper",
    "pairs",
    "reference_s",
    "candidate_s",
    "delta",
    "confirmed",
    "threads_speedup",
    "roofline_fraction",
    "reward",
    "reason",
    "evaluation",
    "decision",
    "decision_reason",
    "pinned",
    "findings",
    "proposed_at_s",
    "source_sha256",
    "point",
)


def redactor(hostname: str = "") -> Redact:
    """Replaces what looks like a key, home folders, and `hostname` (as a whole word), in plain text or JSON."""
    host = None
    if len(hostname) >= _LEAST_HOSTNAME and hostname not in ("localhost", "[host]"):
        host = re.compile(rf"(?<![\w-]){re.escape(hostname)}(?![\w-])")

    def redact(text: str) -> str:
        low = text.lower()
        if not any(hint in low for hint in _HINTS) and (host is None or hostname not in text):
            return text
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
        text = _HOMES.sub("~", text)
        return host.sub("[host]", text) if host is not None else text

    return redact


def export_events_jsonl(path: Path | str, out: TextIO) -> int:
    """One line an event: seq, at_s, mono_s, kind, body. Returns how many. Raises the errors of opening a session."""
    with SessionReader(path) as reader:
        redact = _redactor_of(reader)
        count, after = 0, 0
        while rows := reader.events(after, READ_CHUNK):
            for one in rows:
                body = _redacted_json(encode(one.event), redact)
                head = msgspec.json.encode(
                    {"seq": one.seq, "at_s": one.at_s, "mono_s": one.mono_s, "kind": kind_of(one.event)}
                ).decode()
                out.write(f'{head[:-1]},"body":{_as_json(body)}}}\n')
            count, after = count + len(rows), rows[-1].seq
    return count


def export_candidates_csv(path: Path | str, out: TextIO) -> int:
    """One row a candidate as it stands at the end; `point` is JSON. Returns how many."""
    with SessionReader(path) as reader:
        redact = _redactor_of(reader)
        projection = reader.project_at(reader.head_seq())
        table = csv.writer(out)
        table.writerow(_CSV_FIELDS)
        for row in projection.candidates.values():
            point = projection.details[row.id].point
            table.writerow([redact(_cell(cell)) for cell in _cells(row, point)])
    return len(projection.candidates)


def export_sources(path: Path | str, folder: Path | str) -> int:
    """Each candidate's text as `ID.cpp` (kernels) or `ID.py`, and the task's as `reference.py`. Returns how many.

    Raises `SessionUnwritable` when the folder cannot be written.
    """
    target = Path(folder)
    count = 0
    with SessionReader(path) as reader:
        redact = _redactor_of(reader)
        projection = reader.project_at(reader.head_seq())
        named = [(row.source_sha256, f"{row.id}{_extension(row.kind)}") for row in projection.candidates.values()]
        if projection.header.task is not None:
            named.append((projection.header.task.source_sha256, "reference.py"))
        try:
            target.mkdir(parents=True, exist_ok=True)
            for sha, name in named:
                try:
                    text = reader.source(sha)
                except SessionError:
                    continue
                (target / _plain(name)).write_text(redact(text), encoding="utf-8")
                count += 1
        except OSError as error:
            raise SessionUnwritable(target, error.strerror or str(error)) from error
    return count


def compact(path: Path | str, out: Path | str) -> int:
    """A small, redacted copy that opens anywhere, read-only folders included. Returns its size in bytes.

    Commands, the engine's private state and old checkpoints stay behind. Works while an engine runs: the copy is of
    one instant. Raises `SessionExists` when `out` does, and the errors of opening a session.
    """
    source, target = Path(path), Path(out)
    if target.exists():
        raise SessionExists(target)
    draft = target.with_name(target.name + ".draft")
    draft.unlink(missing_ok=True)
    try:
        with SessionReader(source) as reader:
            redact = _redactor_of(reader)
            reader.copy_to(draft)
        connection = db.open_for_writing(draft)
        try:
            with transaction(connection, draft):
                for table in ("commands", "state", "checkpoints", "blocks"):
                    connection.execute(f"DELETE FROM {table}")
                _rewrite(connection, "sources", "sha256", "text", redact)
                _rewrite(connection, "events", "seq", "body", lambda body: _redacted_json(body, redact))
                _rewrite(connection, "meta", "key", "value", lambda value: _redacted_json(value, redact))
                _checkpoint_again(connection)
            with translated(draft):
                connection.execute("PRAGMA journal_mode = DELETE")
                connection.execute("VACUUM INTO ?", (str(target),))
        finally:
            connection.close()
        target.chmod(0o600)
        return target.stat().st_size
    except OSError as error:
        raise SessionUnwritable(target, error.strerror or str(error)) from error
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            db.sibling(draft, suffix).unlink(missing_ok=True)


def _rewrite(connection: sqlite3.Connection, table: str, key: str, column: str, change: Redact) -> None:
    changed = [
        (new, name)
        for name, old in connection.execute(f"SELECT {key}, {column} FROM {table}")
        if (new := change(old)) != old
    ]
    connection.executemany(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", changed)


def _checkpoint_again(connection: sqlite3.Connection) -> None:
    projection, checkpoints = Projection(), CheckpointWriter()
    for one in _all_events(connection):
        fold(projection, one)
        if one.seq - checkpoints.last_seq >= SHARED_CHECKPOINT_EVERY:
            checkpoints.write(connection, projection)
    if projection.seq > checkpoints.last_seq:
        checkpoints.write(connection, projection)
    body = msgspec.json.encode(summary_of(projection)).decode()
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('summary', ?)", (body,))


def _all_events(connection: sqlite3.Connection) -> Iterator[Stamped]:
    after = 0
    while rows := stamped_rows(connection, after, READ_CHUNK):
        yield from rows
        after = rows[-1].seq


_FOLDER_KEYS = ("path", "output_dir", "cache_dir")
_PRIVATE_KEYS = re.compile(r'"(?:path|output_dir|cache_dir|hostname)":\s*"(?:/|[^"])')


def _redactor_of(reader: SessionReader) -> Redact:
    opened = next((one.event for one in reader.events(0, 50) if isinstance(one.event, SessionOpened)), None)
    return redactor(opened.host.hostname if opened is not None else "")


def _redacted_json(body: str, redact: Redact) -> str:
    """Redacts the strings of a JSON text, so that it stays JSON whatever a pattern eats."""
    if redact(body) == body and not _PRIVATE_KEYS.search(body):
        return body
    try:
        return msgspec.json.encode(_walk(msgspec.json.decode(body), redact)).decode()
    except msgspec.DecodeError:
        return redact(body)


def _walk(value: object, redact: Redact) -> object:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_walk(one, redact) for one in value]
    if isinstance(value, dict):
        return {key: _private(key, one) or _walk(one, redact) for key, one in value.items()}
    return value


def _private(key: object, value: object) -> str | None:
    """What to say instead of a key, a folder of this machine or its name; None for what may leave."""
    if _secret(key, value):
        return "[redacted]"
    if key == "hostname" and value:
        return "[host]"
    if key in _FOLDER_KEYS and isinstance(value, str) and value.startswith("/"):
        return f"[folder]/{value.rstrip('/').rsplit('/', 1)[-1]}"
    return None


def _secret(key: object, value: object) -> bool:
    return (
        isinstance(value, str)
        and bool(re.search(r"(?i)api[_-]?key|secret|password|authorization", str(key)))
        and value != ""
    )


def _as_json(body: str) -> str:
    try:
        msgspec.json.decode(body)
        return body
    except msgspec.DecodeError:
        return msgspec.json.encode(body).decode()


def _cells(row: Candidate, point: object) -> list[object]:
    special: dict[str, object] = {
        "policy": row.origin.policy,
        "model": row.origin.model,
        "parents": " ".join(row.parents),
        "point": msgspec.json.encode(point).decode() if point is not None else None,
    }
    return [special[name] if name in special else getattr(row, name) for name in _CSV_FIELDS]


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _extension(kind: str) -> str:
    return ".cpp" if kind == "kernel" else ".py"


def _plain(name: str) -> str:
    """Ids come from the file: none may lead out of the folder."""
    return re.sub(r"[^\w.-]", "_", name)
