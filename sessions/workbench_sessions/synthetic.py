"""A made-up but plausible session, the same for the same arguments: for tests, benchmarks and building screens.

Nothing here was measured; a session written from it says so in its name, host and settings.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from workbench_sessions import events as ev
from workbench_sessions.events import Event, Value, Verdict
from workbench_sessions.log import SessionWriter
from workbench_sessions.synthetic_texts import DIMENSIONS, GROUPS, REFERENCE, render

__all__ = ["DIMENSIONS", "REFERENCE", "Beat", "events", "render", "sha256", "timeline", "write_beats", "write_session"]

START_S = 1_780_000_000.0
ISLANDS = 4
GROUP = 8
REFERENCE_S = 4.66e-3
DELTA = 0.012
BATCH = 50
"""Events an append takes, as an engine would group them."""

CHECKS = ("normal", "shifted", "integers", "tiny", "huge", "hidden shape", "inputs unmodified")
CHEATS = (
    ("cached-result", "the output of an earlier call came back for new inputs"),
    ("output-alias", "the output shares memory with an input"),
    ("two-clocks", "the worker's clock says 9.4×, the engine's 1.02×"),
)


class Beat(Struct, frozen=True):
    """One event at its time (unix seconds), with the texts that it names by hash."""

    at_s: float
    event: Event
    sources: list[str] = []


class _Known(Struct, frozen=True):
    name: str
    point: dict[str, Value]
    generation: int
    island: int
    speedup: float


def events(candidates: int = 200, seed: int = 0) -> Iterator[Event]:
    """The events alone, in order."""
    for beat in timeline(candidates, seed):
        yield beat.event


def write_session(path: Path | str, candidates: int = 200, seed: int = 0) -> Path:
    """A session file of `timeline`. Raises `SessionExists`."""
    return write_beats(path, timeline(candidates, seed))


def write_beats(path: Path | str, beats: Iterable[Beat]) -> Path:
    """A session file of what `beats` tell. Raises `SessionExists`."""
    now = [START_S]
    pending: list[Event] = []
    times: list[float] = []

    def clock() -> tuple[float, float]:
        if times:
            now[0] = times.pop(0)
        return now[0], now[0] - START_S

    with SessionWriter.create(path, '{"task": "softmax_rows", "synthetic": true}', clock) as writer:
        for beat in beats:
            for text in beat.sources:
                writer.put_source(text)
            pending.append(beat.event)
            times.append(beat.at_s)
            if len(pending) >= BATCH:
                writer.append(pending)
                pending.clear()
        writer.append(pending)
    return Path(path)


def timeline(candidates: int = 200, seed: int = 0) -> Iterator[Beat]:
    """The whole session, event by event."""
    return _Story(candidates, seed).tell()


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class _Story:
    def __init__(self, candidates: int, seed: int) -> None:
        self.total = candidates
        self.seed = seed
        self.random = random.Random(seed)
        self.at_s = START_S
        self.sampled_s = START_S
        self.known: list[_Known] = []
        self.best: float | None = None
        self.evaluations = 0
        self.step = 0

    def tell(self) -> Iterator[Beat]:
        yield from self._open()
        group: list[tuple[str, float, bool]] = []
        for number in range(self.total):
            yield from self._candidate(number, group)
            if len(group) == GROUP:
                yield self._learn(group)
                group = []
            if number % 60 == 59:
                yield from self._migrate()
            if number % 150 == 120:
                yield from self._pause()
        yield self._beat(0.2, ev.PhaseChanged(phase="stopping", reason="evaluations spent"))
        name = max(self.known, key=lambda k: k.speedup).name if self.known else None
        yield self._beat(0.1, ev.SessionClosed(outcome="budget", best=name, reason="evaluations spent"))

    def _beat(self, after_s: float, event: Event, *sources: str) -> Beat:
        self.at_s += after_s
        return Beat(at_s=self.at_s, event=event, sources=list(sources))

    def _open(self) -> Iterator[Beat]:
        space = math.prod(len(values) for values in DIMENSIONS.values())
        task = ev.TaskCard(
            name="softmax_rows",
            title="Row softmax",
            source_sha256=sha256(REFERENCE),
            dims={"rows": 4096, "columns": 1024},
            dtype="float32",
            bytes_moved=2 * 4 * 4096 * 1024,
            flops=5 * 4096 * 1024,
            space_size=space,
            dimensions=DIMENSIONS,
            dimension_groups=GROUPS,
        )
        host = ev.HostCard(
            hostname="localhost",
            cpu="made up, nothing was measured",
            cores=2,
            memory_bytes=16 << 30,
            os="Linux",
            python="3.11",
            torch="none",
            compiler="none",
        )
        opened = ev.SessionOpened(
            session_id=f"synthetic-{self.total}-{self.seed}",
            name=f"synthetic-{self.total}",
            task=task,
            backend="cpu",
            policy="design-space",
            seed=self.seed,
            budget=ev.Budget(evaluations=self.total, seconds=None),
            mode="auto",
            islands=ISLANDS,
            sandbox_level="bwrap",
            host=host,
            version="0.1.0",
            settings={"synthetic": True},
        )
        yield self._beat(0.0, opened, REFERENCE)
        yield self._beat(0.01, ev.EngineStarted(pid=4242))
        for name in ("cpu0", "cpu1"):
            yield self._beat(
                0.01, ev.DeviceSeen(device=name, kind="cpu", name="made-up CPU", cores=1, memory_bytes=8 << 30)
            )
        for name in ("cpu0", "cpu1"):
            yield self._beat(0.1, ev.ActivityChanged(device=name, activity="time"))
            for _ in range(5):
                a, b = self._pairs(1.0, 20)
                yield self._beat(
                    0.2, ev.PairsTimed(candidate="", device=name, phase="floor", reference_s=a, candidate_s=b)
                )
            medians = [self.random.gauss(0.0, DELTA / 3) for _ in range(5)]
            yield self._beat(0.1, ev.FloorMeasured(device=name, delta=DELTA, medians=medians))
            yield self._beat(0.01, ev.ActivityChanged(device=name, activity="idle"))
        yield self._beat(0.01, ev.PhaseChanged(phase="running"))

    def _pairs(self, speedup: float, count: int) -> tuple[list[float], list[float]]:
        drift = self.random.gauss(0.0, 0.01)
        reference = [REFERENCE_S * math.exp(drift + abs(self.random.gauss(0.0, 0.02))) for _ in range(count)]
        candidate = [REFERENCE_S / speedup * math.exp(drift + abs(self.random.gauss(0.0, 0.02))) for _ in range(count)]
        return [round(t, 9) for t in reference], [round(t, 9) for t in candidate]

    def _point(self, parent: _Known | None) -> dict[str, Value]:
        if parent is None or self.random.random() < 0.15:
            return {name: self.random.choice(values) for name, values in DIMENSIONS.items()}
        point = dict(parent.point)
        for name in self.random.sample(list(DIMENSIONS), self.random.choice((1, 1, 2, 3))):
            point[name] = self.random.choice(DIMENSIONS[name])
        return point

    def _speed(self, point: dict[str, Value]) -> float:
        """A landscape with structure, so that search gets somewhere: ratio to the reference."""
        tile, unroll, vector = float(point["tile"]), float(point["unroll"]), float(point["vector"])
        log = {"two-pass": 0.0, "online": 0.18, "fused": 0.05, "blocked": 0.1}[str(point["rewrite"])]
        log -= 0.05 * abs(math.log2(tile / 128)) + 0.06 * abs(math.log2(unroll / 4))
        log += 0.12 * math.log2(vector / 4) + {"libm": -0.1, "poly5": 0.2, "poly7": 0.15}[str(point["exp"])]
        log += 0.05 if point["streaming"] else 0.0
        log -= 0.25 if point["layout"] == "columns" else 0.0
        return math.exp(log + self.random.gauss(0.0, 0.01))

    def _candidate(self, number: int, group: list[tuple[str, float, bool]]) -> Iterator[Beat]:
        name, island, device = f"c{number:06d}", number % ISLANDS, f"cpu{number % 2}"
        home = [known for known in self.known[-400:] if known.island == island]
        parent = max(self.random.sample(home, min(4, len(home))), key=lambda k: k.speedup) if home else None
        point = self._point(parent)
        speedup = self._speed(point)
        fate = self._fate(point, speedup)
        note = f"{point['rewrite']} softmax, tile {point['tile']}"
        source = render(name, point, note)
        exemplars = []
        if len(self.known) > 4:
            slow, fast = sorted(self.random.sample(self.known[-50:], 2), key=lambda k: k.speedup)
            exemplars = [
                ev.Exemplar(candidate=slow.name, score=slow.speedup, role="slow"),
                ev.Exemplar(candidate=fast.name, score=fast.speedup, role="fast"),
            ]
        person = number % 97 == 41
        origin = (
            ev.Origin(policy="person", person="ada") if person else ev.Origin(policy="design-space", version=self.step)
        )
        generation = parent.generation + 1 if parent else 0
        proposed = ev.CandidateProposed(
            candidate=name,
            kind="kernel",
            source_sha256=sha256(source),
            origin=origin,
            island=island,
            generation=generation,
            parents=[parent.name] if parent else [],
            point=None if person else point,
            group=number // GROUP,
            exemplars=exemplars,
            note=note,
        )
        yield self._beat(0.02, proposed, source)
        yield from self._stage(name, "build", device)
        log = "kernel.cpp: note: loop vectorized using 32 byte vectors\n" * 3
        if fate == "FAILED":
            log = "kernel.cpp:27:41: error: 'simdlen' expression must be a constant\n" + log
        built = ev.BuildFinished(
            candidate=name,
            ok=fate != "FAILED",
            seconds=round(self.random.uniform(0.15, 0.4), 4),
            cached=self.random.random() < 0.05,
            binary_sha256=sha256(name),
            log=log,
            feedback="the kernel does not compile" if fate == "FAILED" else "",
        )
        yield self._beat(built.seconds, built)
        if fate != "FAILED":
            yield from self._verify(name, device, fate)
        timed = fate in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")
        if timed:
            yield from self._time(name, device, speedup, "search")
        self.evaluations += 1
        yield self._judge(name, fate, speedup if timed else None, confirmed=False)
        if fate == "FASTER" and (self.best is None or speedup > 0.99 * self.best):
            yield from self._time(name, device, speedup, "final")
            speedup *= math.exp(self.random.gauss(0.0, 0.003))
            yield self._judge(name, fate, speedup, confirmed=True)
            self.best = max(self.best or 0.0, speedup)
        if fate == "FASTER":
            yield from self._decide(name)
        yield self._beat(0.01, ev.ActivityChanged(device=device, activity="idle"))
        yield self._beat(0.001, ev.BudgetSpent(evaluations=self.evaluations, seconds=round(self.at_s - START_S, 3)))
        yield from self._sample()
        reward = math.log(speedup) if timed else -1.0
        group.append((name, round(reward, 4), timed))
        if timed:
            self.known.append(_Known(name=name, point=point, generation=generation, island=island, speedup=speedup))

    def _decide(self, name: str) -> Iterator[Beat]:
        """What a person at the screen does now and then."""
        luck = self.random.random()
        if luck < 0.03:
            yield self._beat(0.1, ev.CandidatePinned(candidate=name, pinned=True))
            accepted = ev.HumanAccepted(candidate=name, reason="clean and fast", path=f"out/{name}.cpp", person="ada")
            yield self._beat(0.4, accepted)
        elif luck < 0.05:
            yield self._beat(0.5, ev.HumanRejected(candidate=name, reason="hard to maintain", person="ada"))
            if luck < 0.035:
                yield self._beat(1.0, ev.DecisionUndone(candidate=name, person="ada"))
        elif luck < 0.06:
            yield self._beat(0.01, ev.ReviewRequested(candidate=name))

    def _fate(self, point: dict[str, Value], speedup: float) -> Verdict:
        luck = self.random.random()
        if luck < 0.06 or (point["vector"] == 16 and point["unroll"] == 16 and luck < 0.7):
            return "FAILED"
        if luck > 0.985:
            return "CHEATING"
        if luck > 0.93 or (point["flags"] == "-O3 -ffast-math" and luck > 0.7):
            return "WRONG"
        log = math.log(speedup)
        if abs(log) < DELTA:
            return "SAME" if luck < 0.7 else "AMBIGUOUS"
        if abs(log) < 2 * DELTA and luck < 0.3:
            return "AMBIGUOUS"
        return "FASTER" if log > 0 else "SLOWER"

    def _stage(self, name: str, stage: ev.Stage, device: str) -> Iterator[Beat]:
        activity: dict[str, ev.Activity] = {"build": "build", "verify": "verify", "time": "time"}
        yield self._beat(0.005, ev.StageStarted(candidate=name, stage=stage, device=device))
        yield self._beat(0.0, ev.ActivityChanged(device=device, activity=activity[stage], candidate=name))

    def _verify(self, name: str, device: str, fate: Verdict) -> Iterator[Beat]:
        yield from self._stage(name, "verify", device)
        checks = [ev.Check(name=check, ok=True, margin=round(self.random.uniform(0.01, 0.6), 4)) for check in CHECKS]
        if fate == "WRONG":
            checks[2] = ev.Check(
                name=CHECKS[2], ok=False, margin=round(self.random.uniform(2, 900), 2), detail="tail", worst_index=1023
            )
        verified = ev.VerifyFinished(
            candidate=name,
            ok=fate != "WRONG",
            seconds=round(self.random.uniform(0.05, 0.2), 4),
            checks=checks,
            feedback="wrong in the last columns of each row" if fate == "WRONG" else "",
        )
        yield self._beat(verified.seconds, verified)
        if fate == "CHEATING":
            code, text = self.random.choice(CHEATS)
            finding = ev.FindingRaised(
                candidate=name, code=code, severity="cheat", text=text, evidence={"claimed": 9.41, "measured": 1.02}
            )
            yield self._beat(0.01, finding)

    def _time(self, name: str, device: str, speedup: float, phase: str) -> Iterator[Beat]:
        yield from self._stage(name, "time", device)
        for _ in range(3):
            reference, candidate = self._pairs(speedup, 20)
            yield self._beat(
                0.2,
                ev.PairsTimed(
                    candidate=name,
                    device=device,
                    phase="final" if phase == "final" else "search",
                    reference_s=reference,
                    candidate_s=candidate,
                    order=["AB", "BA"] * 10,
                ),
            )

    def _judge(self, name: str, fate: Verdict, speedup: float | None, confirmed: bool) -> Beat:
        half = self.random.uniform(0.006, 0.02)
        reasons = {"FAILED": "does not compile", "WRONG": "integers: 1 of 7 checks failed", "CHEATING": "a finding"}
        return self._beat(
            0.01,
            ev.VerdictReached(
                candidate=name,
                verdict=fate,
                speedup=speedup,
                lower=speedup * math.exp(-half) if speedup else None,
                upper=speedup * math.exp(half) if speedup else None,
                pairs=60 if speedup else 0,
                reference_s=REFERENCE_S if speedup else None,
                candidate_s=REFERENCE_S / speedup if speedup else None,
                delta=DELTA,
                confirmed=confirmed,
                threads_speedup=speedup * 1.05 if confirmed and speedup else None,
                roofline_fraction=min(0.95, 0.3 * speedup) if speedup else None,
                reward=math.log(speedup) if speedup else -1.0,
                sandbox_level="bwrap",
                reason=reasons.get(fate, ""),
                evaluation=self.evaluations,
            ),
        )

    def _sample(self) -> Iterator[Beat]:
        while self.sampled_s < self.at_s:
            self.sampled_s += 0.5
            for name in ("cpu0", "cpu1"):
                wave = 0.5 + 0.4 * math.sin(self.sampled_s / 7.0)
                sample = ev.TelemetrySampled(
                    device=name,
                    utilisation=round(min(1.0, max(0.0, wave + self.random.gauss(0, 0.05))), 3),
                    memory_used_bytes=int((1.5 + wave) * (1 << 30)),
                    memory_total_bytes=8 << 30,
                    clock_hz=round(2.9e9 + 2e8 * wave, -6),
                    temperature_c=round(50 + 20 * wave, 1),
                    load=round(1.0 + wave, 2),
                )
                yield self._beat(0.0, sample)

    def _learn(self, group: list[tuple[str, float, bool]]) -> Beat:
        rewards = [reward for _, reward, _ in group]
        mean = sum(rewards) / len(rewards)
        std = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))
        self.step += 1
        return self._beat(
            0.05,
            ev.PolicyUpdated(
                step=self.step,
                group=self.step - 1,
                evaluations=self.evaluations,
                candidates=[name for name, _, _ in group],
                rewards=rewards,
                advantages=[round((reward - mean) / (std + 1e-6), 4) for reward in rewards],
                group_mean=mean,
                group_std=std,
                success_rate=sum(ok for _, _, ok in group) / len(group),
                best=self.best,
                loss=round(self.random.gauss(0.0, 0.1) + 1.0 / (1 + self.step), 5),
                entropy=round(2.5 * math.exp(-self.step / 200) + self.random.uniform(0, 0.1), 5),
                kl=round(abs(self.random.gauss(0.0, 0.01)), 6),
                grad_norm=round(abs(self.random.gauss(1.0, 0.3)), 4),
                version=self.step,
            ),
        )

    def _migrate(self) -> Iterator[Beat]:
        if self.known:
            best = max(self.known[-100:], key=lambda k: k.speedup)
            target = (best.island + 1) % ISLANDS
            yield self._beat(0.01, ev.IslandMigrated(source=best.island, target=target, candidate=best.name))

    def _pause(self) -> Iterator[Beat]:
        yield self._beat(0.1, ev.PhaseChanged(phase="paused", reason="asked by ada"))
        yield self._beat(20.0, ev.PhaseChanged(phase="running"))
        yield self._beat(0.1, ev.WarningRaised(text="load above the number of cores", remedy="stop other work"))
