"""A home of its own for every test, and synthetic sessions in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.cli import status
from workbench_sessions.synthetic import write_session

Run = Callable[..., int]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder under which everything of the program is kept."""
    for name in ("CI", "WORKBENCH_RUN_POLICY", "WORKBENCH_RUN_SEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


@pytest.fixture
def session(home: Path) -> Path:
    """A synthetic session of 30 candidates, named "made-up"."""
    return write_session(home / "sessions" / "made-up.wb", candidates=30)


@pytest.fixture
def run(home: Path) -> Run:
    """Runs a command line in this process and gives its exit status."""
    return lambda *arguments: status([str(one) for one in arguments])
