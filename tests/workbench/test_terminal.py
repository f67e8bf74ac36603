"""In a real pseudo-terminal: the screen opens, `q` leaves it, and the terminal is as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
PATIENCE_S = 60.0


def read_until(descriptor: int, wanted: bytes, process: subprocess.Popen[bytes]) -> bytes:
    """Everything printed up to `wanted`. Fails when it does not come."""
    seen = b""
    deadline_s = time.monotonic() + PATIENCE_S
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], 0.2)
        if ready:
            try:
                seen += os.read(descriptor, 65536)
            except OSError:
                break
        elif process.poll() is not None or time.monotonic() > deadline_s:
            break
    assert wanted in seen, f"{wanted!r} did not come; status {process.poll()}, the end was {seen[-2000:]!r}"
    return seen


def test_replay_opens_and_q_leaves_the_terminal_as_it_was(session: Path, home: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(theirs)
    environment = {**os.environ, "TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"}
    environment.pop("CI", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "replay", "made-up"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    try:
        seen = read_until(ours, ENTER, process)
        if b"REPLAY" not in seen:
            seen += read_until(ours, b"REPLAY", process)
        os.write(ours, b"q")
        read_until(ours, LEAVE, process)
        assert process.wait(PATIENCE_S) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
        os.close(theirs)
