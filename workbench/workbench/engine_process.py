"""The engine as a process of its own: started detached, so that it goes on when the terminal closes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from workbench.errors import CommandFailed, EnvironmentProblem
from workbench.places import private_folder
from workbench_engine.exits import ExitCode
from workbench_engine.settings import RunSettings, encode_settings
from workbench_sessions.log import SessionWriter
from workbench_sessions.reader import SessionReader

FIRST_EVENT_S = 20.0
STOP_S = 20.0
LOG_TAIL = 400


class EngineProcess:
    """A started engine. `path` is its session, `log` the file it writes its log to."""

    def __init__(self, path: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.path = path
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        return self._process.wait()

    def stop(self) -> int:
        """Asks it to end, and ends it when it does not within `STOP_S`; its exit status."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            return self._process.wait()

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        lines = [line.strip() for line in text[-8_000:].splitlines() if line.strip()]
        return lines[-1][-LOG_TAIL:] if lines else ""


def create_session(path: Path, settings: RunSettings) -> None:
    """A new session file that holds the request. Raises SessionError."""
    SessionWriter.create(path, encode_settings(settings)).close()


def start_engine(path: Path, log: Path) -> EngineProcess:
    """Starts (or resumes) the session's engine and waits until it has said something.

    Raises CommandFailed with the engine's last words when it ended before that.
    """
    try:
        private_folder(log.parent)
        before = _head(path)
        with log.open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "workbench_engine", str(path.absolute())],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
    except OSError as error:
        raise EnvironmentProblem(f"the engine cannot be started: {error}") from error
    engine = EngineProcess(path, log, process)
    deadline_s = time.monotonic() + FIRST_EVENT_S
    while _head(path) <= before:
        status = engine.poll()
        if status is not None:
            raise CommandFailed(
                engine.last_words() or f"the engine ended with status {status}; see {log}", code(status)
            )
        if time.monotonic() > deadline_s:
            engine.stop()
            raise CommandFailed(f"the engine said nothing for {FIRST_EVENT_S:.0f} s; see {log}")
        time.sleep(0.02)
    return engine


def answer_commands(path: Path) -> None:
    """Lets an engine that runs nothing answer the session's waiting commands. Raises CommandFailed."""
    argv = [sys.executable, "-m", "workbench_engine", "--answer", str(path.absolute())]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise CommandFailed(said[-1] if said else f"the engine ended with {done.returncode}", code(done.returncode))


def code(status: int) -> ExitCode:
    """An exit status of an engine process as one of ours; a signal is an interruption."""
    if status < 0:
        return ExitCode.INTERRUPTED
    try:
        return ExitCode(status)
    except ValueError:
        return ExitCode.FAILED


def _head(path: Path) -> int:
    with SessionReader(path) as reader:
        return reader.head_seq()


def leave_timing_core() -> None:
    """Keeps this process (a screen) off the core that the engine measures on: the last one it may use.

    Call it after the engine was started, which would inherit it.
    """
    with contextlib.suppress(OSError, AttributeError):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) > 1:
            os.sched_setaffinity(0, cores[:-1])
