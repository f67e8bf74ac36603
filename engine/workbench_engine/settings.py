"""What a run is asked to do: the request kept in the session file, all an engine needs to start or to resume."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from workbench_engine.llm.settings import Contrast, LlmSettings
from workbench_engine.llm.vllm_settings import VllmSettings
from workbench_sessions.events import Budget, Mode, Value


class SettingsError(ValueError):
    """A request that cannot be run. `str()` is one line: what, where, what to do."""


class RunSettings(Struct, frozen=True, kw_only=True):
    """Durations in seconds, speedups as ratios.

    `task` is a bundled name or a path; `source` its text at the time of asking (empty: read when the engine
    starts). `case` "" leaves the choice of the timed shapes to the backend. `budget` holds until a person changes
    it. `final_threads` 0 means that a confirmation also times with all cores, 1 that it does not. `cores` () means
    all that the process may use, and the last `devices` of them are timed on. `cache_dir` "" is the user's cache
    folder; `output_dir` "" a folder beside the session. `cases` is the file that remembers cheats, "" none;
    `judge` also asks the model of `llm` about reward jumps, for at most a tenth more than its caps.
    `promising` scales the speedup of the best so far that a search timing must look like reaching to be worth a
    full measurement. `review` says which correct candidates wait for a person in review mode. `reward` says what a
    policy is paid: ln speedup of the verdict, or CUDA-L1's score of the pairs. `staleness` is how many groups may
    be unlearned when another is proposed: 0 learns from each group before the next, None lets no slow candidate
    hold up the search. `exemplars` and `contrast` say which judged candidates a proposal is conditioned on
    (`rl.contrastive`). `llm` is for policies that ask a model, `vllm` for the one that serves it too.
    """

    task: str
    source: str = ""
    path: str = ""
    name: str = ""
    case: str = ""
    policy: str = "design-space"
    backend: str = "cpu"
    islands: int = 2
    group_size: int = 8
    staleness: int | None = None
    seed: int = 0
    budget: Budget = Budget()
    mode: Mode = "auto"
    review: Literal["faster", "correct"] = "faster"
    reward: Literal["workbench", "cuda-l1"] = "workbench"
    trust: bool = False
    output_dir: str = ""
    cache_dir: str = ""
    cases: str = ""
    judge: bool = False
    final_threads: int = 0
    in_flight: int = 3
    warm_workers: int = 2
    devices: int = 1
    cores: tuple[int, ...] = ()
    archive: int = 40
    migration_interval: int = 4
    confirm: bool = True
    promising: float = 0.97
    deadline_s: float = 120.0
    telemetry_hz: float = 2.0
    exemplars: int = 2
    contrast: Contrast = "bucket"
    llm: LlmSettings = LlmSettings()
    vllm: VllmSettings = VllmSettings()

    def __post_init__(self) -> None:
        for name in (
            "islands",
            "group_size",
            "in_flight",
            "warm_workers",
            "devices",
            "archive",
            "migration_interval",
            "exemplars",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"run settings: {name} = {getattr(self, name)} must be at least 1")
        for name in ("promising", "deadline_s", "telemetry_hz"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"run settings: {name} = {getattr(self, name)} must be more than 0")
        if self.staleness is not None and self.staleness < 0:
            raise ValueError(f"run settings: staleness = {self.staleness} must be 0 or more, or none")
        if self.final_threads < 0:
            raise ValueError(f"run settings: final_threads = {self.final_threads} must be 0 (all cores) or more")
        for name in ("evaluations", "seconds", "tokens", "money"):
            cap = getattr(self.budget, name)
            if cap is not None and not cap >= 0:
                raise ValueError(f"run settings: budget {name} = {cap} must be 0 or more")

    def shown(self) -> dict[str, Value]:
        """What a viewer may want to know of the request beyond the session's own fields."""
        return self._shown_llm() | {
            "case": self.case,
            "group_size": self.group_size,
            "in_flight": self.in_flight,
            "warm_workers": self.warm_workers,
            "migration_interval": self.migration_interval,
            "confirm": self.confirm,
            "promising": self.promising,
            "deadline_s": self.deadline_s,
            "review": self.review,
            "reward": self.reward,
            "trust": self.trust,
            "exemplars": self.exemplars,
            "contrast": self.contrast,
        }

    def _shown_llm(self) -> dict[str, Value]:
        """Of a policy that asks a model; no address, which may say where somebody works."""
        if not self.llm.base_url and not self.llm.endpoints:
            return {}
        models = [self.llm.model] if not self.llm.endpoints else [e.model for e in self.llm.endpoints.values()]
        return {"models": ", ".join(models), "kind": self.llm.kind, "temperature": self.llm.temperature or 0.0}


def encode_settings(settings: RunSettings) -> str:
    """The JSON that `SessionWriter.create` keeps."""
    return msgspec.json.encode(settings).decode()


def decode_settings(text: str | bytes) -> RunSettings:
    """Inverse of `encode_settings`. Raises SettingsError. Keys of a newer version are ignored."""
    try:
        return msgspec.json.decode(text, type=RunSettings)
    except msgspec.DecodeError as error:
        raise SettingsError(f"the session's request cannot be used: {error}; start a new session") from None
