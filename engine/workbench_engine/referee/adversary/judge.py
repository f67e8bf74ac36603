"""The adversarial judge: past cheats that look alike, and, where a language model can be asked, its opinion.

Advisory: what it says is a warning beside the verdict, never the verdict. Called on reward jumps, as CUDA-L1 does.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import statistics
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from typing import Any, Literal

import jinja2
from msgspec import Struct

from workbench_engine.referee.adversary.cases import Case
from workbench_engine.referee.adversary.similarity import Index, features
from workbench_engine.referee.adversary.stripping import without_comments
from workbench_engine.referee.advice.advising import advise
from workbench_sessions.events import FindingRaised

Ask = Callable[[str], Awaitable[str]]
"""From a prompt to the text of the answer; `llm.contract.ask_with` makes one."""

Said = Literal["honest", "cheating", "unsure"]

ALIKE = 0.5
"""Likeness from which a past case is named as a warning, when no honest file is as near. Likeness alone says little:
honest twins of cheats are written alike (`workbench bench judge` measures it)."""

MOST_SHOWN = 3
SURE = 0.5
"""Confidence from which an accusation of the model's is passed on."""

LONGEST_SOURCE = 24_000
JUMP = 2.0
"""A claim above so many times the best so far is a jump (CUDA-L1's own rule for a second look)."""

UNUSUAL = 3.0
"""So many standard deviations of ln speedup above the mean of the population is one too."""

LEAST_POPULATION = 8
LONGEST_ANSWER = 20_000


class Alike(Struct, frozen=True):
    """A past case and how alike it is, 0..1."""

    case: Case
    score: float


class Opinion(Struct, frozen=True):
    """What a model answered. `verdict` "unsure" stands also for an answer that could not be read."""

    verdict: Said
    reason: str = ""
    confidence: float = 0.0


class Suspect(Struct, frozen=True, kw_only=True):
    """What is judged. `profile`: one line on where its time goes, where that is known."""

    text: str
    kind: str
    speedup: float
    best_so_far: float = 1.0
    task: str = ""
    profile: str = ""


def worth_asking(speedup: float | None, best_so_far: float, population: Sequence[float]) -> bool:
    """Whether a claim is a reward jump: far above the best so far (at least 1), or above the population.

    `population` are the speedups (ratios) of the correct candidates before it.
    """
    if speedup is None or not math.isfinite(speedup) or speedup <= 1.0:
        return False
    if speedup > JUMP * max(1.0, best_so_far):
        return True
    logs = [math.log(one) for one in population if one > 0.0 and math.isfinite(one)]
    if len(logs) < LEAST_POPULATION or speedup <= best_so_far:
        return False
    return math.log(speedup) > statistics.fmean(logs) + UNUSUAL * statistics.pstdev(logs)


class Library:
    """The past cases, ready to be compared with. Build a new one when cases were added."""

    def __init__(self, cases: Sequence[Case], honest: Sequence[tuple[str, str]] = ()) -> None:
        """`honest`: (text, kind) of files known to be honest; what they share with cheats counts for nothing."""
        self._cases = {case.sha256: case for case in cases}
        good = [features(text, kind) for text, kind in honest]
        bad = [(case.sha256, features(case.text, case.kind)) for case in cases]
        self._index = Index(bad, good)
        self._honest = Index([("", counts) for counts in good], [counts for _, counts in bad])

    def alike(self, text: str, kind: str, most: int = MOST_SHOWN) -> list[Alike]:
        """The cases most like a file, best first."""
        return self.alike_to(features(text, kind), most)

    def nearest_honest(self, text: str, kind: str) -> float:
        """Likeness to the honest file most like it, 0..1; 0 where there is none."""
        found = self._honest.top(features(text, kind), 1)
        return found[0].score if found else 0.0

    def alike_to(self, counts: Counter[str], most: int = MOST_SHOWN) -> list[Alike]:
        """As `alike`, of features already made."""
        return [Alike(self._cases[match.key], match.score) for match in self._index.top(counts, most)]


def prompt(suspect: Suspect, alike: Sequence[Alike]) -> str:
    """What a model is asked: the code without comments, the advice on it, its profile, the cases most like it."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    template = environment.from_string(resources.files(__package__).joinpath("prompt.j2").read_text("utf-8"))
    source = without_comments(suspect.text, suspect.kind)
    return template.render(
        task=suspect.task,
        speedup=suspect.speedup,
        best=suspect.best_so_far,
        profile=suspect.profile,
        advice=advise(source, suspect.kind)[:20],
        cases=[
            {
                "score": one.score,
                "codes": one.case.codes,
                "said": one.case.said,
                "source": _cut(without_comments(one.case.text, one.case.kind), LONGEST_SOURCE // 4),
            }
            for one in alike[:MOST_SHOWN]
        ],
        source=_cut(source, LONGEST_SOURCE),
        language="C++" if suspect.kind == "kernel" else "Python",
        # Nobody can close a fence whose mark is drawn anew for each question.
        fence=secrets.token_hex(6),
    )


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[{len(text) - most} characters left out]\n{text[-(most // 2) :]}"


_WORDS: dict[str, Said] = {
    "cheating": "cheating",
    "cheat": "cheating",
    "cheats": "cheating",
    "dishonest": "cheating",
    "hack": "cheating",
    "fraud": "cheating",
    "honest": "honest",
    "legitimate": "honest",
    "clean": "honest",
    "unsure": "unsure",
    "unclear": "unsure",
    "uncertain": "unsure",
}
_VERDICT = re.compile(r"verdict\W{0,6}(?:is\W+)?(\w+)", re.IGNORECASE)
_CONFIDENCE = re.compile(r"confidence\W{0,6}(\d+(?:\.\d+)?)\s*(%)?", re.IGNORECASE)


def parse_answer(text: str) -> Opinion:
    """The opinion in an answer, whatever stands around it: the last JSON object with a verdict, else the words.

    Never raises; what cannot be read is "unsure".
    """
    text = text[-LONGEST_ANSWER:]
    for found in reversed(_objects(text)):
        said = _WORDS.get(str(found.get("verdict", "")).strip().lower())
        if said is not None:
            reason = " ".join(str(found.get("reason", "")).split())
            return Opinion(said, reason[:500], _share(found.get("confidence", 0.5)))
    matches = [said for match in _VERDICT.finditer(text) if (said := _WORDS.get(match[1].lower())) is not None]
    if not matches:
        return Opinion("unsure", "the answer names no verdict")
    share = _CONFIDENCE.search(text)
    confidence = _share(float(share[1]) / (100 if share[2] else 1)) if share else 0.5
    return Opinion(matches[-1], " ".join(text.split())[:500], confidence)


def _objects(text: str) -> list[dict[str, Any]]:
    """Every JSON object in a text, outermost ones, in order."""
    found: list[dict[str, Any]] = []
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0 and len(found) < 100:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict):
                found.append(value)
        at = text.find("{", end)
    return found


def _share(value: Any) -> float:
    """A confidence in 0..1 from whatever a model wrote; above 1 it was meant as per cent."""
    try:
        number = float(str(value).strip().rstrip("%"))
    except ValueError:
        return 0.5
    if not math.isfinite(number):
        return 0.5
    return min(1.0, max(0.0, number / 100 if number > 1.0 else number))


async def opinion(suspect: Suspect, alike: Sequence[Alike], ask: Ask) -> Opinion:
    """Asks a model. Whatever `ask` raises goes through."""
    return parse_answer(await ask(prompt(suspect, alike)))


def warning_of(
    candidate: str, alike: Sequence[Alike], said: Opinion | None, honest: float = 0.0, threshold: float = ALIKE
) -> FindingRaised | None:
    """The finding to raise, if any. With a model its opinion decides, without one the likeness to a past case.

    `honest`: likeness to the nearest honest file; a case that is no nearer is no sign.
    """
    nearest = alike[0] if alike else None
    evidence: dict[str, str | int | float | bool] = {}
    if nearest is not None:
        evidence = {"case": nearest.case.name, "similarity": round(nearest.score, 2)}
    if said is not None and said.verdict != "unsure":
        if said.verdict == "honest" or said.confidence < SURE:
            return None
        text = f"the judge suspects it: {said.reason or 'no reason given'}"
        return FindingRaised(candidate, "judge", "warning", text, {**evidence, "confidence": round(said.confidence, 2)})
    if nearest is None or nearest.score < threshold or nearest.score <= honest:
        return None
    was = ", ".join(nearest.case.codes) or "caught cheating"
    text = f"it looks like case {nearest.case.name}, which was {was} (similarity {nearest.score:.2f})"
    return FindingRaised(candidate, "judge", "warning", text, evidence)
