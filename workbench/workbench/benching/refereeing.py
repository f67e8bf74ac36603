"""Every exploit and control through the real referee, again and again; finished runs are kept and not run again."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

import workbench_engine
from workbench.benching.trials import Trial, by_task, task_file
from workbench.errors import EnvironmentProblem, UsageProblem
from workbench.judging import Judge, Judged, read_task
from workbench_sessions.events import FindingRaised, VerifyFinished

GRAVITY = ("cheat", "warning", "label", "info")


class Raised(Struct, frozen=True):
    """One finding of a run."""

    code: str
    severity: str
    text: str


class Run(Struct, frozen=True):
    """What came of one file once. `speedup` is a ratio, None where nothing was timed; `seconds` what judging took."""

    role: str
    name: str
    sha256: str
    number: int
    verdict: str
    findings: list[Raised]
    speedup: float | None
    reason: str
    seconds: float

    @property
    def codes(self) -> list[str]:
        """Codes of its findings, the gravest first, each once; what a reading of the source suggests is left out."""
        ranked = sorted(self.findings, key=lambda one: GRAVITY.index(one.severity))
        return list(dict.fromkeys(one.code for one in ranked if one.code != "advice"))

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.role, self.name, self.sha256, self.number


class Other(Struct, frozen=True):
    """What another check says of a file. `correct` None where it could not run; `speedup` as it would report it."""

    role: str
    name: str
    sha256: str
    correct: bool | None
    speedup: float | None = None
    errors: list[str] = []
    warnings: list[str] = []
    note: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.role, self.name, self.sha256


class Refereed(Struct, frozen=True):
    """The raw results of the bench: of one `referee` (digest of its source), timed with the care of one `profile`."""

    referee: str = ""
    profile: str = ""
    sandbox: str = ""
    runs: list[Run] = []
    naive: list[Other] = []
    kernelbench: list[Other] = []
    kernelbench_said: str = ""


def load(path: Path | None, profile: str) -> Refereed:
    """What was done already; nothing without a file. Raises UsageProblem for a file that does not fit, or that was
    made by another referee or profile: such runs say nothing of this one."""
    fresh = Refereed(source_digest(), profile)
    if path is None:
        return fresh
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Refereed)
    except FileNotFoundError:
        return fresh
    except (OSError, msgspec.DecodeError) as error:
        raise UsageProblem(f"{path}: no results of this bench ({error}); choose another file") from None
    if found.referee != fresh.referee:
        raise UsageProblem(f"{path}: its runs were judged by another version of the referee; choose another file")
    if found.profile != profile:
        raise UsageProblem(f"{path}: its runs were made with --profile {found.profile}; choose another file")
    return found


def source_digest() -> str:
    """Digest of the engine's source: what judges, and where candidates run."""
    folder = Path(workbench_engine.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(
        p for room in ("referee", "sandbox", "tasks", "backends") for p in (folder / room).rglob("*.py")
    ):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def save(path: Path | None, results: Refereed) -> None:
    """Whole or not at all. Raises EnvironmentProblem."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(path.name + ".new")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
        draft.replace(path)
    except OSError as error:
        raise EnvironmentProblem(f"{path}: cannot be written ({error.strerror or error})") from error


def missing(trials: list[Trial], repeat: int, done: list[Run]) -> list[tuple[Trial, int]]:
    """Runs still to make, repetitions outermost (a drift of the machine meets all files alike)."""
    have = {run.key for run in done}
    wanted = ((trial, number) for number in range(repeat) for trial in trials)
    return [(t, n) for t, n in wanted if (t.role, t.name, t.sha256, n) not in have]


class Setting(Struct, frozen=True):
    """What all runs share: folders of the trials (for the tasks beside them), build cache, care of the timing."""

    folders: list[Path]
    builds: Path
    trust: bool = False
    profile: str = "final"


async def referee(
    trials: list[Trial], repeat: int, done: list[Run], setting: Setting, tell: Callable[[Run, str], None]
) -> None:
    """Judge what is missing, each task opened once; every result goes to `tell` with the sandbox's name at once.

    Raises CommandFailed when this machine cannot judge at all.
    """
    for task, members in by_task(trials):
        todo = missing(members, repeat, done)
        if todo:
            await _one_task(task_file(task, setting.folders), todo, setting, tell)


async def _one_task(
    task: str, todo: list[tuple[Trial, int]], setting: Setting, tell: Callable[[Run, str], None]
) -> None:
    opened = read_task(task)
    start = time.monotonic()
    try:
        async with Judge(opened, setting.builds, trust=setting.trust) as judge:
            for trial, number in todo:
                start = time.monotonic()
                judged = await judge.judge(trial.text, trial.kind, setting.profile)
                tell(run_of(trial, number, judged, time.monotonic() - start), judged.verdict.sandbox_level)
    except UsageProblem as refused:
        spent = time.monotonic() - start
        for trial, number in todo:
            tell(_run(trial, number, "REFUSED", [], None, str(refused).replace(str(opened.path), task), spent), "")


def run_of(trial: Trial, number: int, judged: Judged, seconds: float) -> Run:
    """What counts of an evaluation's facts."""
    findings = [Raised(f.code, f.severity, f.text) for f in judged.facts if isinstance(f, FindingRaised)]
    verdict = judged.verdict
    reason = verdict.reason
    if not reason:
        reason = next((f.feedback for f in judged.facts if isinstance(f, VerifyFinished) and not f.ok), "")
    return _run(trial, number, verdict.verdict, findings, verdict.speedup, reason, seconds)


def _run(
    trial: Trial, number: int, verdict: str, findings: list[Raised], speedup: float | None, reason: str, seconds: float
) -> Run:
    return Run(trial.role, trial.name, trial.sha256, number, verdict, findings, speedup, reason[:500], seconds)


def drive(
    trials: list[Trial],
    repeat: int,
    results: Refereed,
    setting: Setting,
    output: Path | None,
    say: Callable[[str], None],
) -> Refereed:
    """`referee` with the results written after each run and a line said about each."""
    total = len(missing(trials, repeat, results.runs))
    by_key: dict[tuple[str, str], Trial] = {(t.role, t.name): t for t in trials}
    made = 0

    def tell(run: Run, sandbox: str) -> None:
        nonlocal results, made
        made += 1
        results = msgspec.structs.replace(results, runs=[*results.runs, run], sandbox=sandbox or results.sandbox)
        save(output, results)
        trial = by_key[run.role, run.name]
        mark = (
            "MISS"
            if not trial.caught(run.verdict, run.codes)
            else "ok  "
            if trial.names(run.verdict, run.codes)
            else "name"
        )
        codes = " ".join(run.codes) or run.reason
        say(f"{made}/{total} {mark} {run.role}s/{run.name}: {run.verdict} {codes[:160]}".rstrip())

    asyncio.run(referee(trials, repeat, results.runs, setting, tell))
    return results
