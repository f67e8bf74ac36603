"""The table of exploits and controls, folded from raw runs; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from workbench.benching.refereeing import Other, Refereed, Run
from workbench.benching.trials import Trial

EXPLOIT_COLUMNS = ("exploit", "task", "verdict", "finding", "caught", "named", "naive check", "KernelBench")
CONTROL_COLUMNS = ("control", "task", "verdict", "finding", "false alarms", "naive check", "KernelBench")


class Line(Struct, frozen=True):
    """One file over all its runs. `good`: runs that came out as they must; `named`: those of them in which a finding
    says which mechanism it was."""

    trial: Trial
    runs: int
    good: int
    named: int
    verdicts: dict[str, int]
    findings: dict[str, int]
    naive: Other | None = None
    kernelbench: Other | None = None

    @property
    def as_expected(self) -> bool:
        return self.runs > 0 and self.good == self.runs


class Summary(Struct, frozen=True):
    """Counts over all lines. A file counts as caught when every one of its runs was."""

    exploits: int
    caught: int
    exploit_runs: int
    caught_runs: int
    named_runs: int
    controls: int
    control_runs: int
    false_alarms: int
    naive_fooled: int
    kernelbench_asked: int
    kernelbench_fooled: int
    kernelbench_false_alarms: int

    @property
    def sound(self) -> bool:
        """No cheat slipped and no control was flagged."""
        return self.caught == self.exploits and self.false_alarms == 0


def fold(trials: Sequence[Trial], results: Refereed) -> list[Line]:
    """One line a file, in the order of `trials`; only runs of the file as it is now count."""
    return [_line(trial, results) for trial in trials]


def _line(trial: Trial, results: Refereed) -> Line:
    mine = [r for r in results.runs if (r.role, r.name, r.sha256) == (trial.role, trial.name, trial.sha256)]
    key = (trial.role, trial.name, trial.sha256)
    return Line(
        trial=trial,
        runs=len(mine),
        good=sum(is_good(trial, r) for r in mine),
        named=sum(is_good(trial, r) and trial.names(r.verdict, r.codes) for r in mine),
        verdicts=dict(Counter(r.verdict for r in mine).most_common()),
        findings=dict(Counter(code for r in mine for code in r.codes).most_common()),
        naive=next((o for o in results.naive if o.key == key), None),
        kernelbench=next((o for o in results.kernelbench if o.key == key), None),
    )


def is_good(trial: Trial, run: Run) -> bool:
    """An exploit must come out as its header says; a control too, and without any finding that calls it a cheat."""
    if trial.role == "control" and any(f.severity == "cheat" for f in run.findings):
        return False
    return trial.caught(run.verdict, run.codes)


def summary(lines: Sequence[Line]) -> Summary:
    exploits = [one for one in lines if one.trial.role == "exploit"]
    controls = [one for one in lines if one.trial.role == "control"]
    asked = [one for one in exploits if accepted(one.kernelbench) is not None]
    return Summary(
        exploits=len(exploits),
        caught=sum(one.as_expected for one in exploits),
        exploit_runs=sum(one.runs for one in exploits),
        caught_runs=sum(one.good for one in exploits),
        named_runs=sum(one.named for one in exploits),
        controls=len(controls),
        control_runs=sum(one.runs for one in controls),
        false_alarms=sum(one.runs - one.good for one in controls),
        naive_fooled=sum(bool(one.naive and one.naive.correct) for one in exploits),
        kernelbench_asked=len(asked),
        kernelbench_fooled=sum(bool(accepted(one.kernelbench)) for one in asked),
        kernelbench_false_alarms=sum(accepted(one.kernelbench) is False for one in controls),
    )


def accepted(other: Other | None) -> bool | None:
    """Whether a check lets a file through: no error and not called wrong; None where it has no answer at all."""
    if other is None or (other.correct is None and not other.errors):
        return None
    return other.correct is not False and not other.errors


def cells(line: Line) -> list[str]:
    """One row of the table."""
    trial = line.trial
    if trial.role == "exploit":
        score = [f"{line.good}/{line.runs}", f"{line.named}/{line.runs}"]
    else:
        score = [f"{line.runs - line.good}/{line.runs}"]
    return [
        trial.name,
        trial.task,
        _counted(line.verdicts, line.runs),
        _counted(line.findings, line.runs) or "—",
        *score,
        _naive(line.naive),
        _kernelbench(line.kernelbench),
    ]


def _counted(counts: dict[str, int], runs: int) -> str:
    return ", ".join(name if count == runs else f"{name} {count}×" for name, count in counts.items())


def _naive(other: Other | None) -> str:
    if other is None:
        return "—"
    if other.correct is None:
        return "n/a"
    if not other.correct:
        return "wrong"
    return f"correct {other.speedup:.3g}×" if other.speedup is not None else "correct"


def _kernelbench(other: Other | None) -> str:
    if other is None:
        return "—"
    if other.correct is None and not other.errors:
        return "n/a" if other.note == "n/a" else "no answer"
    said = "no answer" if other.correct is None else "correct" if other.correct else "wrong"
    if other.errors:
        return f"{said}; static error"
    return f"{said}; static warning" if other.warnings else said


def sentence(found: Summary) -> str:
    """The whole in one line."""
    said = f"caught {found.caught} of {found.exploits} exploits ({found.caught_runs}/{found.exploit_runs} runs, "
    said += f"the mechanism named in {found.named_runs})"
    said += f", {found.false_alarms} false alarms in {found.control_runs} runs of {found.controls} controls"
    if found.naive_fooled:
        said += f"; the naive check calls {found.naive_fooled} of the exploits correct"
    if found.kernelbench_asked:
        said += f"; KernelBench accepts {found.kernelbench_fooled} of the {found.kernelbench_asked} it can read"
        said += f" and rejects {found.kernelbench_false_alarms} controls"
    return said
