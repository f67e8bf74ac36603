"""Where sessions, configuration, caches and logs are kept. `WORKBENCH_HOME` moves all of them under one folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from workbench_sessions.store import bundled_sessions

NAME = "kernel-workbench"


class Places(Struct, frozen=True):
    """Folders; none of them need exist yet."""

    sessions: Path
    config: Path
    cache: Path
    state: Path

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    @property
    def builds(self) -> Path:
        """The compiled kernels, shared by all runs of this user."""
        return self.cache / "builds"

    @property
    def cases(self) -> Path:
        """The database of past cheats, shared by all runs of this user."""
        return self.sessions.parent / "cheats.db"

    @property
    def tasks(self) -> Path:
        """The imported tasks, a folder a collection."""
        return self.sessions.parent / "tasks"

    def log_of(self, session: Path) -> Path:
        """Where the engine of a session writes its log."""
        return self.state / "logs" / f"{session.stem}.log"

    def session_folders(self) -> list[Path]:
        """Where a session's name is looked up: the user's own first, then the recorded ones that ship."""
        recorded = sorted({path.parent for path in bundled_sessions()})
        return [self.sessions, *recorded]


def places(environment: Mapping[str, str] = os.environ) -> Places:
    """The folders of this user."""
    home = environment.get("WORKBENCH_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Places(root / "sessions", root / "config", root / "cache", root / "state")
    import platformdirs

    return Places(
        sessions=platformdirs.user_data_path(NAME, appauthor=False) / "sessions",
        config=platformdirs.user_config_path(NAME, appauthor=False),
        cache=platformdirs.user_cache_path(NAME, appauthor=False),
        state=platformdirs.user_state_path(NAME, appauthor=False),
    )


def private_folder(path: Path) -> Path:
    """Creates a folder that only its owner can enter. Raises OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
