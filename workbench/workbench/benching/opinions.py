"""How good the adversarial judge is: each exploit and control compared with all the others, and counted; pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from workbench.benching.trials import Trial
from workbench_engine.referee.adversary.judge import ALIKE, SURE, Opinion
from workbench_engine.referee.adversary.similarity import Index, features
from workbench_engine.referee.advice.advising import advise

COLUMNS = ("judge", "caught", "missed", "false alarms", "left alone", "precision", "recall")


class Looked(Struct, frozen=True):
    """One file against all others. `cheat`, `honest`: likeness to the nearest exploit and the nearest control, 0..1."""

    name: str
    role: str
    nearest: str
    cheat: float
    honest: float
    badges: tuple[str, ...] = ()
    opinion: Opinion | None = None


class Confusion(Struct, frozen=True):
    """Counts of one way to judge. Exploits are what is to be found."""

    judge: str
    caught: int
    missed: int
    false_alarms: int
    left_alone: int

    @property
    def precision(self) -> float | None:
        flagged = self.caught + self.false_alarms
        return self.caught / flagged if flagged else None

    @property
    def recall(self) -> float | None:
        exploits = self.caught + self.missed
        return self.caught / exploits if exploits else None


def look(trials: Sequence[Trial]) -> list[Looked]:
    """Every trial against all others, in their order. The weights of words are of all files, its own included."""
    counts = {_key(t): features(t.text, t.kind) for t in trials}
    cheats = [(_key(t), counts[_key(t)]) for t in trials if t.role == "exploit"]
    honest = [(_key(t), counts[_key(t)]) for t in trials if t.role == "control"]
    among_cheats = Index(cheats, [c for _, c in honest])
    among_honest = Index(honest, [c for _, c in cheats])
    looked = []
    for trial in trials:
        key = _key(trial)
        near = [m for m in among_cheats.top(counts[key], 2) if m.key != key]
        good = [m for m in among_honest.top(counts[key], 2) if m.key != key]
        badges = tuple(sorted({one.code for one in advise(trial.text, trial.kind)}))
        looked.append(
            Looked(
                name=trial.name,
                role=trial.role,
                nearest=near[0].key if near else "",
                cheat=near[0].score if near else 0.0,
                honest=good[0].score if good else 0.0,
                badges=badges,
            )
        )
    return looked


def _key(trial: Trial) -> str:
    return f"{trial.role}s/{trial.name}"


def suspicious(one: Looked, threshold: float = ALIKE) -> bool:
    """As in a run without a model: near to a past cheat, and nearer to it than to any honest file."""
    return one.cheat >= threshold and one.cheat > one.honest


def confusions(looked: Sequence[Looked], threshold: float = ALIKE) -> list[Confusion]:
    """Similarity, with and without honest files to compare with; badges for contrast; the model where it was asked."""
    found = [
        _count("similarity", looked, [suspicious(one, threshold) for one in looked]),
        _count("similarity, no honest files", looked, [one.cheat >= threshold for one in looked]),
        _count("any badge but library", looked, [bool(set(one.badges) - {"library"}) for one in looked]),
    ]
    asked = [one for one in looked if one.opinion is not None]
    if asked:
        found.insert(0, _count("model", asked, [_accused(one) for one in asked]))
    return found


def _accused(one: Looked) -> bool:
    return one.opinion is not None and one.opinion.verdict == "cheating" and one.opinion.confidence >= SURE


def _count(judge: str, looked: Sequence[Looked], flagged: Sequence[bool]) -> Confusion:
    pairs = [(one.role == "exploit", flag) for one, flag in zip(looked, flagged, strict=True)]
    return Confusion(
        judge,
        caught=pairs.count((True, True)),
        missed=pairs.count((True, False)),
        false_alarms=pairs.count((False, True)),
        left_alone=pairs.count((False, False)),
    )


def cells(one: Confusion) -> list[str]:
    """One row of the table."""
    shares = ["—" if share is None else f"{share:.0%}" for share in (one.precision, one.recall)]
    return [one.judge, *map(str, (one.caught, one.missed, one.false_alarms, one.left_alone)), *shares]
