"""What an examination says."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

State = Literal["ok", "warn", "fail"]


class Examined(Struct, frozen=True):
    """One line of the report. `remedy` says what to do unless all is well."""

    subject: str
    state: State
    said: str
    remedy: str = ""


def ok(subject: str, said: str) -> Examined:
    return Examined(subject, "ok", said)


def warn(subject: str, said: str, remedy: str) -> Examined:
    return Examined(subject, "warn", said, remedy)


def fail(subject: str, said: str, remedy: str) -> Examined:
    return Examined(subject, "fail", said, remedy)


def ran(
    argv: Sequence[str], timeout_s: float = 60.0, stdin: str = "", env: dict[str, str] | None = None
) -> tuple[int, str]:
    """(exit status, output) of a program; status 127 when it cannot be run, 124 when it took too long."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, env=env)
    except subprocess.TimeoutExpired:
        return 124, f"no answer within {timeout_s:.0f} s"
    except OSError as error:
        return 127, str(error)
    return done.returncode, (done.stdout + done.stderr).strip()
