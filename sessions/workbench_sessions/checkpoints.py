"""Checkpoints: the projection at an instant, so that any other instant is near one.

A whole projection every thousand events would grow with the square of a session. So the collections are cut into
blocks of `bounds.BLOCK` elements; a block whose elements did not change since the last checkpoint is not written again
but named by its id. A finished candidate, an old policy step, a telemetry minute are thus stored once or twice in all,
and a checkpoint is a small head plus a list of block ids. Readers keep decoded blocks (their elements are frozen), so
a seek near the last one decodes little.

Bodies are zlib over msgpack. A checkpoint made by another version of the fold or of the projection's structs is
ignored: the events are the truth, and are folded from an older valid checkpoint or from the first event.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from operator import is_
from types import GenericAlias
from typing import Any

import msgspec
from msgspec import Struct

from workbench_sessions import projection as pr
from workbench_sessions.bounds import BLOCK, PAIR_BLOCK
from workbench_sessions.projection import Projection

CHECKPOINT_EVERY = 1000
"""Events between two checkpoints: a seek folds at most this many."""

FOLD_VERSION = 2
"""Raise it when `fold` comes to mean something else, so that older checkpoints are not believed."""

ZLIB_LEVEL = 6
BLOCKS_CACHED = 4096


class Block(Struct, frozen=True, array_like=True):
    """`keys` is empty for lists."""

    keys: list[str]
    items: msgspec.Raw


class Manifest(Struct, frozen=True):
    """The body of a checkpoint row: `head` is a `Projection` without its collections, `blocks` says where these are.

    A collection's name is the field, or field/key for a dict of lists ("telemetry/cpu0").
    """

    fold: str
    head: msgspec.Raw
    blocks: dict[str, list[int]]


class _Kind(Struct, frozen=True):
    item: Any
    block: int
    form: str
    """"list", "dict" or "lists" (a dict of lists)."""


_COLLECTIONS: dict[str, _Kind] = {
    "candidates": _Kind(pr.Candidate, BLOCK, "dict"),
    "requests": _Kind(pr.Request, BLOCK, "dict"),
    "details": _Kind(pr.Details, BLOCK, "dict"),
    "pairs": _Kind(pr.PairSeries, PAIR_BLOCK, "dict"),
    "lanes": _Kind(pr.LaneSpan, BLOCK, "lists"),
    "telemetry": _Kind(pr.Sample, BLOCK, "lists"),
    "policy_steps": _Kind(pr.PolicyStep, BLOCK, "list"),
    "best_curve": _Kind(pr.BestPoint, BLOCK, "list"),
    "migrations": _Kind(tuple[int, int, str, float], BLOCK, "list"),
    "marks": _Kind(pr.Mark, BLOCK, "list"),
    "log": _Kind(pr.LogLine, BLOCK, "list"),
}
_ITEMS: dict[str, msgspec.msgpack.Decoder[Any]] = {
    name: msgspec.msgpack.Decoder(GenericAlias(list, (kind.item,))) for name, kind in _COLLECTIONS.items()
}
_ENCODER = msgspec.msgpack.Encoder()
_BLOCKS = msgspec.msgpack.Decoder(Block)
_MANIFESTS = msgspec.msgpack.Decoder(Manifest)
_HEADS = msgspec.msgpack.Decoder(Projection)


def _shape(kind: Any, seen: dict[str, Any]) -> None:
    if isinstance(kind, type) and issubclass(kind, Struct) and kind.__name__ not in seen:
        seen[kind.__name__] = [(f.name, str(f.type), repr(f.default)) for f in msgspec.structs.fields(kind)]
        for f in msgspec.structs.fields(kind):
            _shape(f.type, seen)
    for inner in getattr(kind, "__args__", ()):
        _shape(inner, seen)


def _fingerprint() -> str:
    seen: dict[str, Any] = {}
    _shape(Projection, seen)
    return f"{FOLD_VERSION}:{hashlib.sha256(repr(sorted(seen.items())).encode()).hexdigest()[:16]}"


FINGERPRINT = _fingerprint()

Elements = tuple[list[str], list[Any]]
"""(keys, items) of one block; the keys of a list are empty."""


class BlockCache:
    """Decoded blocks by id, the least recently used dropped first. Their elements are shared, never changed."""

    def __init__(self, kept: int = BLOCKS_CACHED) -> None:
        self._kept = kept
        self._blocks: OrderedDict[int, Elements] = OrderedDict()

    def get(self, number: int) -> Elements | None:
        found = self._blocks.get(number)
        if found is not None:
            self._blocks.move_to_end(number)
        return found

    def put(self, number: int, elements: Elements) -> None:
        self._blocks[number] = elements
        if len(self._blocks) > self._kept:
            self._blocks.popitem(last=False)


class CheckpointWriter:
    """Writes checkpoints of one projection as it grows, remembering which blocks are stored already."""

    def __init__(self, last_seq: int = 0, stored: dict[str, list[tuple[int, Elements]]] | None = None) -> None:
        self.last_seq = last_seq
        self._stored = stored or {}

    def write(self, connection: sqlite3.Connection, projection: Projection) -> None:
        """Stores a checkpoint of the projection as it is, inside the caller's transaction."""
        blocks: dict[str, list[int]] = {}
        stored: dict[str, list[tuple[int, Elements]]] = {}
        for name, elements in _cut(projection):
            # Trimmed lists lose whole blocks at the front, so an old block is looked up by its first element.
            known = {id(old[1][0]): (number, old) for number, old in self._stored.get(name, ()) if old[1]}
            kept: list[tuple[int, Elements]] = []
            for one in elements:
                found = known.get(id(one[1][0])) if one[1] else None
                if found is None or not _same(found[1], one):
                    kept.append((_store(connection, one), one))
                else:
                    kept.append((found[0], one))
            stored[name] = kept
            blocks[name] = [number for number, _ in kept]
        manifest = Manifest(fold=FINGERPRINT, head=msgspec.Raw(_ENCODER.encode(_head(projection))), blocks=blocks)
        body = zlib.compress(_ENCODER.encode(manifest), ZLIB_LEVEL)
        connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (projection.seq, body))
        self.last_seq, self._stored = projection.seq, stored


def restore(
    connection: sqlite3.Connection, upto: int | None = None, cache: BlockCache | None = None
) -> tuple[Projection, CheckpointWriter]:
    """The projection of the newest believable checkpoint at or before `upto`, and a writer that goes on from it.

    Empty when there is none: the events are the truth, so a checkpoint that cannot be read is passed over.
    """
    query = "SELECT seq, body FROM checkpoints WHERE seq <= ? ORDER BY seq DESC"
    for _, body in connection.execute(query, (upto if upto is not None else 2**62,)):
        try:
            manifest = _MANIFESTS.decode(zlib.decompress(body))
            if manifest.fold == FINGERPRINT:
                return _read(connection, manifest, cache)
        except (zlib.error, msgspec.DecodeError, LookupError, ValueError):
            continue
    return Projection(), CheckpointWriter()


def _read(
    connection: sqlite3.Connection, manifest: Manifest, cache: BlockCache | None
) -> tuple[Projection, CheckpointWriter]:
    projection = _HEADS.decode(manifest.head)
    stored: dict[str, list[tuple[int, Elements]]] = {}
    for name, numbers in manifest.blocks.items():
        field, _, key = name.partition("/")
        kind = _COLLECTIONS[field]
        target = getattr(projection, field)
        if kind.form == "lists":
            target = target.setdefault(key, [])
        stored[name] = []
        for number in numbers:
            elements = cache.get(number) if cache is not None else None
            if elements is None:
                elements = _read_block(connection, number, field)
                if cache is not None:
                    cache.put(number, elements)
            stored[name].append((number, elements))
            if kind.form == "dict":
                target.update(zip(*elements, strict=True))
            else:
                target.extend(elements[1])
    return projection, CheckpointWriter(projection.seq, stored)


def _read_block(connection: sqlite3.Connection, number: int, field: str) -> Elements:
    row = connection.execute("SELECT body FROM blocks WHERE id = ?", (number,)).fetchone()
    if row is None:
        raise LookupError(f"block {number} is missing")
    block = _BLOCKS.decode(zlib.decompress(row[0]))
    return block.keys, _ITEMS[field].decode(block.items)


def _store(connection: sqlite3.Connection, elements: Elements) -> int:
    keys, items = elements
    block = Block(keys=keys, items=msgspec.Raw(_ENCODER.encode(items)))
    body = zlib.compress(_ENCODER.encode(block), ZLIB_LEVEL)
    return int(connection.execute("INSERT INTO blocks (body) VALUES (?)", (body,)).lastrowid or 0)


def _same(old: Elements, new: Elements) -> bool:
    return len(old[1]) == len(new[1]) and old[0] == new[0] and all(map(is_, old[1], new[1]))


def _cut(p: Projection) -> list[tuple[str, list[Elements]]]:
    """All collections in blocks, under the names a manifest uses."""
    found: list[tuple[str, list[Elements]]] = []
    for field, kind in _COLLECTIONS.items():
        value = getattr(p, field)
        if kind.form == "list":
            found.append((field, _cut_list(value, kind.block)))
        elif kind.form == "lists":
            found.extend((f"{field}/{key}", _cut_list(items, kind.block)) for key, items in value.items())
        else:
            found.append((field, _cut_dict(value, kind.block)))
    return found


def _cut_list(items: Sequence[Any], size: int) -> list[Elements]:
    return [([], list(items[start : start + size])) for start in range(0, len(items), size)]


def _cut_dict(items: dict[str, Any], size: int) -> list[Elements]:
    pairs = iter(items.items())
    blocks: list[Elements] = []
    while part := list(islice(pairs, size)):
        blocks.append(([key for key, _ in part], [item for _, item in part]))
    return blocks


def _head(p: Projection) -> Projection:
    empty: dict[str, Any] = {field: [] if kind.form == "list" else {} for field, kind in _COLLECTIONS.items()}
    return msgspec.structs.replace(p, **empty)
