"""The measuring station of one device: a trusted process that owns the workers' channels and the clock.

It is a process of its own, single-threaded and blocking, pinned to the device's core, so that nothing of the engine
(event loop, policy, disk) runs between two clock readings. Requests come as JSON lines on stdin; facts (events) and
answers go out as JSON lines on stdout. Run as `python -m workbench_engine.referee.station`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import msgspec
from msgspec import Struct

from workbench_engine.referee.bench import Bench, Opened
from workbench_engine.sandbox.level import SandboxUnavailable, probe
from workbench_engine.tasks.contract import TaskRejected
from workbench_sessions.events import Event, encode, kind_of


class Open(Struct, tag=True):
    """Load a task: `core` is measured on, `other_cores` serve for starting workers."""

    device: str
    source: str
    path: str
    case: str
    core: int
    other_cores: list[int]
    trust: bool = False
    warm_modules: bool = False
    floor: bool = True


class Judge(Struct, tag=True):
    """Verify and time one candidate. `library` for kernels; `threads` > 0 also times with so many on `all_cores`."""

    candidate: str
    kind: str
    text: str
    library: str = ""
    profile: str = "search"
    promising_above: float = 1.0
    threads: int = 0
    all_cores: list[int] = []


Request = Open | Judge


class Answer(Struct):
    """One line out: `fact` (kind and body of an event), or the end of a request with `result` or `error`."""

    fact: str = ""
    body: str = ""
    done: bool = False
    error: str = ""
    error_kind: str = ""
    result: msgspec.Raw = msgspec.Raw(b"null")


def _write(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


def emit(event: Event) -> None:
    """One fact, on its way to the engine."""
    _write(Answer(fact=kind_of(event), body=encode(event)))


def _open(request: Open) -> Bench:
    os.sched_setaffinity(0, {request.core})
    level = probe(request.trust)
    return Bench(
        level=level,
        device=request.device,
        source=request.source,
        path=request.path,
        case=request.case,
        core=request.core,
        other_cores=request.other_cores or [request.core],
        warm_modules=request.warm_modules,
        emit=emit,
        floor=request.floor,
    )


def main() -> None:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Request)
    bench: Bench | None = None
    for line in sys.stdin.buffer:
        try:
            request = decoder.decode(line)
            if isinstance(request, Open):
                bench = _open(request)
                if request.floor:
                    bench.measure_floor()
                opened = Opened(task=bench.task, case=bench.case.name, delta=bench.delta, level=bench.level.name)
                _write(Answer(done=True, result=msgspec.Raw(msgspec.json.encode(opened))))
            elif bench is None:
                _write(Answer(done=True, error="no task is open", error_kind="protocol"))
            else:
                verdict = bench.judge(
                    candidate=request.candidate,
                    kind=request.kind,
                    text=request.text,
                    library=request.library,
                    profile=request.profile,
                    promising_above=request.promising_above,
                    threads=request.threads,
                    all_cores=request.all_cores,
                )
                _write(Answer(done=True, result=msgspec.Raw(msgspec.json.encode(verdict))))
        except TaskRejected as rejection:
            _write(Answer(done=True, error=str(rejection), error_kind="task"))
        except SandboxUnavailable as error:
            _write(Answer(done=True, error=str(error), error_kind="sandbox"))
        except Exception as error:
            _write(Answer(done=True, error=f"{type(error).__name__}: {error}", error_kind="station"))
    if bench is not None:
        bench.close()


if __name__ == "__main__":
    # The engine may be killed at any moment; then there is nobody left to tell.
    with contextlib.suppress(BrokenPipeError):
        main()
    os._exit(0)
