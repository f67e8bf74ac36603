"""How each engine is started: its package, its settings, its command. Documented defaults but for what is said here."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from workbench_engine.llm.settings import LlmSettings
from workbench_engine.settings import RunSettings, encode_settings
from workbench_sessions.events import Budget
from workbench_sessions.log import SessionWriter

from .answers import PYTHON

HERE = Path(__file__).parent
TASK = "# a task that only the stand-in judges\n"
PACKAGES = {"openevolve": "openevolve==0.4.1", "shinka": "shinka-evolve==0.0.7"}
"""Both are Apache-2.0, both from PyPI."""


class Load(Struct, frozen=True):
    """What every engine is given: candidates, requests at once, seconds of an answer and of an evaluation."""

    candidates: int
    at_once: int
    latency_s: float
    evaluation_s: float

    @property
    def floor_s(self) -> float:
        """Seconds that nobody can beat: every place at the endpoint always taken, the last evaluation at the end."""
        return math.ceil(self.candidates / self.at_once) * self.latency_s + self.evaluation_s

    @property
    def filling(self) -> int:
        """Workers that each ask and then evaluate, so many that all places at the endpoint are taken."""
        return math.ceil(self.at_once * (self.latency_s + self.evaluation_s) / self.latency_s)


class Start(Struct, frozen=True):
    """A command, how many of the evaluations that it makes are not candidates (the first program's), its settings."""

    command: list[str]
    extra: int
    settings: str


def start(name: str, load: Load, base_url: str, python: Path, folder: Path) -> Start:
    """Writes what the engine needs into `folder`."""
    (folder / "initial.py").write_text(PYTHON)
    return STARTS[name](load, base_url, python, folder)


def workbench(load: Load, base_url: str, python: Path, folder: Path) -> Start:
    task = folder / "standin.py"
    task.write_text(TASK)
    path = folder / "session.wb"
    settings = RunSettings(
        task=str(task),
        policy="llm",
        in_flight=load.at_once,
        budget=Budget(evaluations=load.candidates),
        llm=LlmSettings(base_url=base_url, model="stand-in", concurrency=load.at_once),
    )
    SessionWriter.create(path, encode_settings(settings)).close()
    command = [str(python), str(HERE / "run_workbench.py"), str(path)]
    return Start(command, 0, f"in_flight={load.at_once}, llm.concurrency={load.at_once}")


def openevolve(load: Load, base_url: str, python: Path, folder: Path, workers: int = 0) -> Start:
    workers = workers or load.filling
    config = {
        "max_iterations": load.candidates,
        "log_level": "WARNING",
        "llm": {"primary_model": "stand-in", "api_base": base_url, "api_key": "none"},
        "evaluator": {"parallel_evaluations": workers, "cascade_evaluation": False},
    }
    # JSON is YAML.
    (folder / "config.yaml").write_text(json.dumps(config))
    files = [str(folder / "initial.py"), str(HERE / "evaluate.py")]
    given = ["--config", str(folder / "config.yaml"), "--output", str(folder / "out")]
    command = [str(python.parent / "openevolve-run"), *files, *given]
    said = f"parallel_evaluations={workers}, cascade_evaluation=false, log_level=WARNING"
    return Start(command, 1, said)


def openevolve_as_asked(load: Load, base_url: str, python: Path, folder: Path) -> Start:
    return openevolve(load, base_url, python, folder, load.at_once)


def shinka(load: Load, base_url: str, python: Path, folder: Path, clamped: bool = False) -> Start:
    evaluations = 2 * load.at_once
    settings = {
        "clamped": clamped,
        "evaluate": str(HERE / "evaluate.py"),
        "evolution": {
            "num_generations": load.candidates + 1,
            "llm_models": [f"local/stand-in@{base_url}"],
            "embedding_model": None,
            "meta_rec_interval": None,
            "init_program_path": str(folder / "initial.py"),
            "results_dir": str(folder / "out"),
        },
        "database": {"db_path": str(folder / "programs.sqlite")},
        "runner": {
            "max_evaluation_jobs": evaluations,
            "max_proposal_jobs": load.at_once,
            "max_db_workers": 4,
            "verbose": False,
        },
    }
    (folder / "shinka.json").write_text(json.dumps(settings))
    command = [str(python), str(HERE / "run_shinka.py"), str(folder / "shinka.json")]
    said = f"max_proposal_jobs={load.at_once}, max_evaluation_jobs={evaluations}, max_db_workers=4, verbose=False"
    limit = "its limit of 1.5 threads a core left in" if clamped else "its limit of 1.5 threads a core lifted"
    return Start(command, 1, f"{said}, no embeddings, no meta calls, {limit}")


def shinka_as_released(load: Load, base_url: str, python: Path, folder: Path) -> Start:
    return shinka(load, base_url, python, folder, clamped=True)


STARTS = {
    "workbench": workbench,
    "openevolve": openevolve,
    "openevolve-16": openevolve_as_asked,
    "shinka": shinka,
    "shinka-released": shinka_as_released,
}


def environment(load: Load, tally: Path, folder: Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """No proxy between an engine and the endpoint, no key of anybody's, everything it writes under `folder`."""
    kept = {k: v for k, v in given.items() if "proxy" not in k.lower() and not k.endswith("_API_KEY")}
    added = {
        "OPENAI_API_KEY": "none",
        "HOME": str(folder),
        "THROUGHPUT_TALLY": str(tally),
        "THROUGHPUT_EVALUATION_S": str(load.evaluation_s),
    }
    return {**kept, **added}


def own_python() -> Path:
    """The interpreter that has the workbench."""
    return Path(sys.executable)
