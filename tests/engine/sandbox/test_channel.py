"""The one way out of a cage: frames of raw bytes with a cap and one deadline, and nothing that is ever unpickled."""

from __future__ import annotations

import ast
import pickle
import socket
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.referee.workers import wire

ROOT = Path(__file__).parents[3]
SOURCES = sorted(
    path for room in ("engine", "sessions", "screens", "workbench") for path in (ROOT / room).rglob("*.py")
)
UNPICKLERS = {"pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "multiprocessing"}


def unpickles(tree: ast.AST) -> list[str]:
    """What in a source could load a pickle: modules that do, torch.load without weights_only, allow_pickle."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in UNPICKLERS]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNPICKLERS:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            said = {k.arg: isinstance(k.value, ast.Constant) and k.value.value for k in node.keywords}
            if said.get("allow_pickle", False) is not False:
                found.append("allow_pickle")
            if ast.unparse(node.func) in ("torch.load", "torch.jit.load") and said.get("weights_only") is not True:
                found.append(ast.unparse(node.func))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load(path)",
        "import torch\ntorch.load(path, weights_only=False)",
        "import numpy as np\nnp.load(path, allow_pickle=True)",
        "import multiprocessing.connection",
    ],
)
def test_the_search_for_unpickling_finds_it(source: str) -> None:
    assert unpickles(ast.parse(source))


def test_no_source_of_ours_unpickles() -> None:
    assert len(SOURCES) > 50
    found = {str(path.relative_to(ROOT)): unpickles(ast.parse(path.read_text())) for path in SOURCES}
    assert {path: what for path, what in found.items() if what} == {}


def answered(data: bytes, patience_s: float = 5.0) -> tuple[int, bytes]:
    """What our side makes of `data` on the channel, after which the other side is gone."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        kind, payload, _ = wire.receive(ours, until=time.monotonic() + patience_s)
    return kind, payload


@given(kind=st.integers(0, 255), payload=st.binary(max_size=2000))
def test_a_frame_arrives_as_it_was_sent(kind: int, payload: bytes) -> None:
    assert answered(wire.HEADER.pack(len(payload), kind) + payload) == (kind, payload)


@given(length=st.integers(wire.FRAME_LIMIT + 1, 2**32 - 1), kind=st.integers(0, 255))
def test_a_frame_over_the_limit_is_an_error_before_anything_is_stored(length: int, kind: int) -> None:
    with pytest.raises(ValueError, match="over the limit"):
        answered(struct.pack("<IB", length, kind) + b"x" * 100)


class Loud:
    """Leaves a trace when it is unpickled."""

    loaded: list[int] = []

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return self.loaded.append, (1,)


@given(data=st.binary(max_size=200))
def test_whatever_bytes_come_they_are_bytes_closed_or_an_error(data: bytes) -> None:
    payload = pickle.dumps(Loud())
    for sent in (data, payload, wire.HEADER.pack(len(payload), wire.OK)):
        try:
            answered(sent)
        except (wire.Closed, ValueError):
            continue
    assert Loud.loaded == []


def test_a_frame_in_drops_has_one_deadline_for_all_of_it() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(wire.HEADER.pack(1000, wire.OK) + b"...")
        # Past already: the drops that are there may be read, nothing more is waited for.
        with pytest.raises(TimeoutError):
            wire.receive(ours, until=time.monotonic())
        theirs.sendall(wire.HEADER.pack(1000, wire.OK) + b"...")
        with pytest.raises(TimeoutError):
            wire.receive(ours, until=time.monotonic() + 0.05)


def test_descriptors_sent_by_a_worker_are_not_taken() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Path(__file__).open() as file:
        socket.send_fds(theirs, [wire.HEADER.pack(0, wire.OK)], [file.fileno()])
        before = len(list(Path("/proc/self/fd").iterdir()))
        assert wire.receive(ours)[2] == []
        assert len(list(Path("/proc/self/fd").iterdir())) == before
