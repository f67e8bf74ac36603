"""Stand-ins for the executor and the policy, so that the conductor is tested without a compiler or a clock.

A candidate's text says what the stand-in executor finds: `speedup=2.0`, `verdict=WRONG`, `final=1.5` (what a
confirmation finds; `final=WRONG` too), `broken` (the executor raises), `final=broken`. Nothing here measures anything.

Run as a program it is an engine with these stand-ins: `python standin.py SESSION.wb`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from workbench_engine.__main__ import main
from workbench_engine.conducting.lifecycle import Engine
from workbench_engine.executor import Job, JobResult
from workbench_engine.exits import ExitCode
from workbench_engine.policies.contract import Context, Outcome, Proposal, Update
from workbench_engine.settings import RunSettings, encode_settings
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_engine.tasks.design import DesignSpace
from workbench_sessions import events as ev
from workbench_sessions.commands import Command
from workbench_sessions.events import Event, Origin
from workbench_sessions.log import SessionReader, SessionWriter, send_command
from workbench_sessions.projection import Projection

TASK = "# a task that only stand-ins judge\n"
Hook = Callable[[Job], Awaitable[None]]


def finding(job: Job) -> tuple[ev.Verdict, float | None]:
    """What the text says that this job finds."""
    said = dict(re.findall(r"(\w+)=(\S+)", job.text))
    found = said.get("final", said.get("speedup", "")) if job.profile == "final" else said.get("speedup", "")
    verdict = said.get("verdict", "")
    if found and not found[0].isdigit():
        verdict, found = found, ""
    speedup = float(found) if found else None
    if not verdict:
        verdict = (
            "FAILED" if speedup is None else "FASTER" if speedup > 1.05 else "SLOWER" if speedup < 0.95 else "SAME"
        )
    return verdict, speedup


class StandInExecutor:
    """Finds what the texts say, at once. `before` is awaited at the start of every job."""

    sandbox_level = "stand-in"

    def __init__(self, source: str = TASK, before: Hook | None = None, delay_s: float = 0.0) -> None:
        self._source = source
        self._before = before
        self._delay_s = delay_s
        self.jobs: list[tuple[str, str]] = []
        self.asked: list[Job] = []
        self.running: set[str] = set()
        self.most_running = 0
        self.closed = False

    async def start(self, emit: Callable[[Event], None]) -> Task:
        emit(ev.DeviceSeen(device="cpu0", kind="cpu", name="stand-in", cores=1))
        emit(ev.FloorMeasured(device="cpu0", delta=0.02, medians=[0.0]))
        case = ShapeCase("cpu", {"rows": 4}, ())
        return Task("standin", "A stand-in", self._source, "standin.py", "float32", {"cpu": case})

    async def run(self, job: Job, emit: Callable[[Event], None]) -> JobResult:
        self.jobs.append((job.candidate, job.profile))
        self.asked.append(job)
        self.running.add(job.candidate)
        self.most_running = max(self.most_running, len(self.running))
        try:
            if self._before is not None:
                await self._before(job)
            await asyncio.sleep(self._delay_s)
            broken = "final=broken" in job.text if job.profile == "final" else re.search(r"(?<!=)\bbroken\b", job.text)
            if broken:
                raise OSError("the stand-in was told to break")
            for stage in ("build", "verify", "time"):
                emit(ev.StageStarted(candidate=job.candidate, stage=stage, device="cpu0"))
            verdict, speedup = finding(job)
            emit(ev.PairsTimed(job.candidate, "cpu0", "search", [1.0], [1.0]))
            emit(ev.VerdictReached(candidate=job.candidate, verdict=verdict, speedup=speedup, sandbox_level="stand-in"))
            return JobResult(job.candidate, verdict, speedup, "")
        finally:
            self.running.discard(job.candidate)

    async def aclose(self) -> None:
        self.closed = True


class ScriptedPolicy:
    """Proposes the groups of a script and remembers what it was told. Its state is its place in the script."""

    name = "scripted"

    def __init__(self, script: Callable[[int], list[str] | None], patch: str | None = None) -> None:
        self._script = script
        self._patch = patch
        self.group = 0
        self.samples = 0
        self.version = 0
        self.contexts: list[Context] = []
        self.told: list[tuple[Context, list[Outcome]]] = []

    async def propose(self, context: Context, n: int) -> list[Proposal]:
        self.contexts.append(context)
        texts = self._script(self.group) or []
        self.group += 1
        proposals = []
        for text in texts[:n]:
            origin = Origin(policy=self.name, patch=self._patch, version=self.version)
            proposals.append(Proposal("kernel", text, origin, sample=self.samples))
            self.samples += 1
        return proposals

    async def learn(self, context: Context, outcomes: list[Outcome]) -> Update | None:
        self.told.append((context, outcomes))
        self.version += 1
        return Update(self.version, tuple(o.reward for o in outcomes), loss=0.5, version=self.version)

    def state(self) -> bytes:
        return msgspec.msgpack.encode([self.group, self.samples, self.version])

    def restore(self, state: bytes) -> None:
        try:
            self.group, self.samples, self.version = msgspec.msgpack.decode(state, type=list[int])
        except (msgspec.DecodeError, ValueError) as error:
            raise ValueError(f"not of the scripted policy: {error}") from None


def groups(*given: list[str]) -> Callable[[int], list[str] | None]:
    """A script that ends."""
    return lambda n: given[n] if n < len(given) else None


def endless(group: int) -> list[str]:
    """Groups of 8 texts with made-up findings that are the same in every run."""
    texts = []
    for i in range(8):
        name = f"g{group}i{i}"
        number = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
        if number % 5 == 0:
            texts.append(f"{name} verdict=WRONG")
        else:
            speedup = 0.3 + number % 1000 / 400
            texts.append(f"{name} speedup={speedup:.4f} final={speedup * 0.97:.4f}")
    return texts


class Stage:
    """A session in a folder, and engines that run it with stand-ins."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.path = folder / "s.wb"
        task = folder / "standin.py"
        task.write_text(TASK)
        given = {"task": str(task), "policy": "scripted", "islands": 1, "group_size": 4, **settings}
        request = encode_settings(RunSettings(**given))  # type: ignore[arg-type]
        SessionWriter.create(self.path, request).close()
        self.executor = StandInExecutor()
        self.policy = ScriptedPolicy(groups())

    def run(
        self,
        script: Callable[[int], list[str] | None],
        before: Hook | None = None,
        executor: StandInExecutor | None = None,
        patch: str | None = None,
    ) -> ExitCode:
        """One engine from start to end."""
        self.executor = executor or StandInExecutor(before=before)
        self.policy = ScriptedPolicy(script, patch)

        def make_policy(name: str, space: DesignSpace | None, seed: int) -> ScriptedPolicy:
            return self.policy

        async def live() -> ExitCode:
            engine = Engine(SessionWriter.open(self.path), lambda settings, path: self.executor, make_policy)
            return await asyncio.wait_for(engine.run(), 20.0)

        return asyncio.run(live())

    def send(self, command: Command) -> int:
        return send_command(self.path, command)

    def events(self) -> list[Event]:
        with SessionReader(self.path) as reader:
            stamped = reader.events(0, 1_000_000)
        assert [s.seq for s in stamped] == list(range(1, len(stamped) + 1))
        return [s.event for s in stamped]

    def of(self, kind: type[Event]) -> list[Event]:
        return [e for e in self.events() if isinstance(e, kind)]

    def projection(self) -> Projection:
        with SessionReader(self.path) as reader:
            return reader.project_at(reader.head_seq())

    async def seen(self, condition: Callable[[Projection], bool]) -> None:
        """Returns once the session shows it. Raises AssertionError when it never does."""
        for _ in range(2000):
            if condition(self.projection()):
                return
            await asyncio.sleep(0.005)
        raise AssertionError("the session never showed what the test waits for")


if __name__ == "__main__":
    sys.exit(
        main(
            make_executor=lambda settings, path: StandInExecutor(settings.source, delay_s=0.004),
            policies=lambda name, space, seed: ScriptedPolicy(endless),
        )
    )
