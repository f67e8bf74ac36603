"""The processor clock of a real process, read from outside."""

from __future__ import annotations

import subprocess
import sys

from workbench_engine.referee.activity import Activity, descendants

SPIN = "import time, sys\nwhile time.process_time() < {s}: pass\nprint('spun', flush=True)\nsys.stdin.read()"
CHILD = f"import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', {SPIN.format(s=0.05)!r}])\np.wait()"


def test_it_sees_what_a_process_uses_and_nothing_more() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SPIN.format(s=0.2)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        activity = Activity(process.pid)
        activity.settle()
        used = activity.cpu_s()
        assert used >= 0.2
        assert activity.cpu_s() - used < 0.01, "it waits and uses nothing"
        assert activity.extra() == []
        process.communicate(b"")
    assert activity.cpu_s() == 0.0, "a process that is gone has no clock"


def test_it_sees_a_child_that_was_not_there_before() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"input(); exec({CHILD!r})"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        activity = Activity(process.pid)
        activity.settle()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        process.stdout.readline()
        strangers = activity.extra()
        assert len(strangers) == 1 and strangers == descendants(process.pid)
        assert activity.cpu_s() >= 0.05
        process.stdin.close()
        process.wait(10)
