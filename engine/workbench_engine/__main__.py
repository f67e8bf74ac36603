"""The engine process: `python -m workbench_engine SESSION.wb`. Everything it needs is in the session file."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from workbench_engine.conducting.evaluation import LocalRunner
from workbench_engine.conducting.lifecycle import Engine, ExecutorFactory, PolicyMaker
from workbench_engine.exits import ExitCode
from workbench_engine.policies.registry import make_policy
from workbench_engine.settings import RunSettings, SettingsError
from workbench_sessions.errors import SessionError, SessionFull, SessionMissing, SessionUnwritable
from workbench_sessions.lock import engine_lock
from workbench_sessions.log import SessionWriter


def local_executor(settings: RunSettings, path: Path) -> LocalRunner:
    """The default: this machine's devices."""
    from workbench_engine.referee.local import LocalExecutor

    cache = Path(settings.cache_dir).expanduser() if settings.cache_dir else user_cache_path("workbench") / "builds"
    return LocalExecutor(
        settings.source,
        str(path),
        case=settings.case,
        trust=settings.trust,
        cache_dir=cache,
        cores=settings.cores,
        devices=settings.devices,
        final_threads=settings.final_threads,
    )


def main(
    arguments: Sequence[str] | None = None,
    make_executor: ExecutorFactory = local_executor,
    policies: PolicyMaker = make_policy,
) -> int:
    """Runs or resumes the session (or answers its waiting commands, `--answer`); returns an `ExitCode`."""
    parser = argparse.ArgumentParser(prog="python -m workbench_engine", description=__doc__)
    parser.add_argument("session", type=Path, help="the session file (.wb), made by `workbench run`")
    parser.add_argument("--answer", action="store_true", help="answer waiting commands, run nothing, and end")
    parser.add_argument("--log", type=Path, default=None, help="file for the engine's log (default: stderr)")
    given = parser.parse_args(arguments)
    logging.basicConfig(
        filename=given.log, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        if not given.session.is_file():
            # Before the lock, which would leave its file beside a mistyped name.
            raise SessionMissing(given.session)
        with engine_lock(given.session):
            engine = Engine(SessionWriter.open(given.session), make_executor, policies)
            if given.answer:
                return engine.answer()
            return asyncio.run(engine.run())
    except (SessionError, SettingsError) as error:
        print(error, file=sys.stderr)
        return ExitCode.ENVIRONMENT if isinstance(error, SessionFull | SessionUnwritable) else ExitCode.USAGE


if __name__ == "__main__":
    sys.exit(main())
