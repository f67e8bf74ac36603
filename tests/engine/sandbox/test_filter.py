"""The system-call filters: by an interpreter of their instructions for both processors, and by the kernel itself."""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.referee.workers import locking
from workbench_engine.sandbox import seccomp
from workbench_engine.sandbox.bpf import (
    ANY_BIT,
    EQUAL,
    GREATER_OR_EQUAL,
    LOAD,
    RETURN,
    Instruction,
    assemble,
    end,
    when,
)
from workbench_engine.sandbox.cage import Cage, base_environment, python_environment
from workbench_engine.sandbox.level import probe
from workbench_engine.sandbox.limits import Limits
from workbench_engine.sandbox.process import CagedProcess
from workbench_engine.sandbox.seccomp import (
    ABSENT,
    ALLOW,
    ARCHITECTURES,
    CAGE,
    KERNEL,
    KILL,
    MODULE,
    REFUSE,
    Architecture,
    Rules,
)
from workbench_engine.sandbox.syscalls import FIRST_UNKNOWN, NUMBERS

BOTH = [ARCHITECTURES["x86_64"], ARCHITECTURES["aarch64"]]
TESTS: dict[int, Callable[[int, int], bool]] = {
    EQUAL: lambda a, k: a == k,
    GREATER_OR_EQUAL: lambda a, k: a >= k,
    ANY_BIT: lambda a, k: bool(a & k),
}


def answer(program: list[Instruction], audit: int, number: int, first: int = 0, second: int = 0) -> int:
    """What the kernel would do: instructions run on struct seccomp_data (little-endian)."""
    data = struct.pack(
        "<iIQ6Q", number - (1 << 32) if number >= 1 << 31 else number, audit, 0, first, second, 0, 0, 0, 0
    )
    accumulator, at = 0, 0
    while True:
        one = program[at]
        at += 1
        if one.code == RETURN:
            return one.k
        if one.code == LOAD:
            accumulator = int(struct.unpack_from("<I", data, one.k)[0])
        else:
            at += one.yes if TESTS[one.code](accumulator, one.k) else one.no


def said(rules: Rules, machine: Architecture, name: str, first: int = 0, second: int = 0) -> int:
    number = NUMBERS[name][machine.column]
    assert number is not None
    return answer(seccomp.program(rules, machine), machine.audit, number, first, second)


@pytest.mark.parametrize("machine", BOTH, ids=lambda m: m.name)
class TestAnswers:
    def test_what_reaches_beyond_the_process_is_refused(self, machine: Architecture) -> None:
        for name in ("ptrace", "process_vm_readv", "pidfd_getfd", "io_uring_setup", "bpf", "mount", "unshare", "setns"):
            assert said(CAGE, machine, name) == REFUSE
        for name in ("personality", "keyctl", "open_by_handle_at", "init_module", "reboot", "quotactl", "fsopen"):
            assert said(CAGE, machine, name) == REFUSE
        assert said(CAGE, machine, "clone3") == ABSENT

    def test_what_workers_and_compilers_need_goes_on(self, machine: Architecture) -> None:
        for name in ("memfd_create", "execve", "sched_setaffinity", "accept4"):
            assert said(CAGE, machine, name) == ALLOW

    def test_clone_makes_processes_and_threads_but_no_namespace(self, machine: Architecture) -> None:
        thread, child, user, network = 0x003D0F00, 0x01200011, 0x10000000, 0x40000011
        assert said(CAGE, machine, "clone", thread) == said(CAGE, machine, "clone", child) == ALLOW
        assert said(CAGE, machine, "clone", user) == said(CAGE, machine, "clone", network) == REFUSE
        assert said(KERNEL, machine, "clone", thread) == ALLOW
        assert said(KERNEL, machine, "clone", child) == said(KERNEL, machine, "clone", 0x4111) == REFUSE

    def test_sockets_are_local_or_not_at_all(self, machine: Architecture) -> None:
        for call in ("socket", "socketpair"):
            assert said(CAGE, machine, call, 1) == ALLOW
            assert all(said(CAGE, machine, call, family) == REFUSE for family in range(64) if family != 1)
            # The kernel takes the family from the low word alone.
            assert said(CAGE, machine, call, (1 << 32) + 2) == REFUSE
            assert said(KERNEL, machine, call, 1) == REFUSE

    def test_a_kernel_starts_nothing_and_stays_on_its_core(self, machine: Architecture) -> None:
        for name in ("execve", "execveat", "sched_setaffinity", "connect", "memfd_create"):
            assert said(KERNEL, machine, name) == REFUSE
        assert said(MODULE, machine, "sched_setaffinity") == REFUSE
        assert said(MODULE, machine, "execve") == ALLOW

    def test_nothing_is_typed_into_a_terminal(self, machine: Architecture) -> None:
        assert said(CAGE, machine, "ioctl", 0, 0x5412) == said(CAGE, machine, "ioctl", 0, 0x541C) == REFUSE
        assert said(CAGE, machine, "ioctl", 0x5412, 0x5401) == ALLOW

    def test_another_processor_s_numbers_end_the_process(self, machine: Architecture) -> None:
        for rules in (CAGE, KERNEL, MODULE):
            program = seccomp.program(rules, machine)
            assert answer(program, 0x40000003, 11) == KILL
            assert answer(program, machine.audit, 1) == ALLOW
            assert answer(program, machine.audit, FIRST_UNKNOWN) == ABSENT

    def test_x32_numbers_end_the_process(self, machine: Architecture) -> None:
        expected = KILL if machine.x32 else ABSENT
        for number in (0x40000000, 0x40000000 + 101, 0xFFFFFFFF):
            assert answer(seccomp.program(CAGE, machine), machine.audit, number) == expected

    @given(number=st.integers(0, FIRST_UNKNOWN - 1), first=st.integers(0, 2**64 - 1), second=st.integers(0, 2**64 - 1))
    def test_every_call_has_an_answer_and_only_listed_ones_are_refused(
        self, machine: Architecture, number: int, first: int, second: int
    ) -> None:
        listed = {numbers[machine.column] for numbers in NUMBERS.values()}
        for rules in (CAGE, KERNEL, MODULE):
            got = answer(seccomp.program(rules, machine), machine.audit, number, first, second)
            assert got in (ALLOW, REFUSE, ABSENT)
            assert got == ALLOW or number in listed


def test_numbers_are_those_of_this_machine_s_headers() -> None:
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("no Linux headers here")
    known = {}
    for line in header.read_text().splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[1].startswith("__NR_"):
            known[parts[1].removeprefix("__NR_")] = int(parts[2])
    for name, (number, _) in NUMBERS.items():
        assert known.get(name, number) == number, name


def test_programs_are_assembled_as_the_kernel_reads_them() -> None:
    assert assemble(end(ALLOW)) == bytes((6, 0, 0, 0, 0, 0, 0xFF, 0x7F))
    with pytest.raises(ValueError, match="longer than 255"):
        when(EQUAL, 1, end(KILL) * 256)
    with pytest.raises(ValueError, match="the kernel takes"):
        assemble([])


def test_an_unknown_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(seccomp.NoFilter, match=r"riscv64.*x86_64"):
        seccomp.compiled(CAGE)


def run(code: str, *, locked: Rules | None = None) -> str:
    """Output of Python code in a cage, after the worker's own lock if asked for."""
    folder = str(Path(locking.__file__).parent)
    if locked is not None:
        code = f"import locking\nlocking.lock('{seccomp.compiled(locked).hex()}')\n{code}"
    cage = Cage(
        Limits(memory_bytes=1 << 30, cpu_s=10),
        readonly=python_environment(),
        mounts=((folder, "/opt/workers"),),
        environment=base_environment(),
    )
    program = [sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.insert(0, '/opt/workers')\n{code}"]
    process = CagedProcess(probe(), cage, program)
    try:
        assert process.wait(20) is not None
        return process.output().strip()
    finally:
        process.close()


TRY = """
import ctypes, errno, os, socket, subprocess, threading
def tried(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
def forked():
    if os.fork() == 0:
        os._exit(0)
    os.wait()
thread = threading.Thread(target=str)
thread.start()
thread.join()
acts = {
    "inet": lambda: socket.socket(socket.AF_INET),
    "unix": socket.socketpair,
    "fork": forked,
    "exec": lambda: subprocess.run(["/bin/true"], check=True),
    "affinity": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    "memory": lambda: os.memfd_create("x"),
}
print(*(f"{name}:{tried(act)}" for name, act in acts.items()))
"""


def test_the_kernel_applies_the_filter_of_the_cage() -> None:
    assert run(TRY) == "inet:EPERM unix:done fork:done exec:done affinity:done memory:done"


def test_a_worker_locks_itself_further_and_threads_still_start() -> None:
    assert run(TRY, locked=MODULE) == "inet:EPERM unix:done fork:done exec:done affinity:EPERM memory:done"
    assert run(TRY, locked=KERNEL) == "inet:EPERM unix:EPERM fork:EPERM exec:EPERM affinity:EPERM memory:EPERM"


def test_a_lock_holds_for_threads_that_run_already() -> None:
    code = (
        "import os, threading\ngo = threading.Event()\n"
        "def later():\n    go.wait()\n    try: os.memfd_create('x'); print('open')\n"
        "    except OSError as e: print(e.errno)\n"
        "t = threading.Thread(target=later)\nt.start()\n"
        f"locking.lock('{seccomp.compiled(KERNEL).hex()}')\ngo.set()\nt.join()"
    )
    assert run(f"import locking\n{code}") == str(errno.EPERM)


def test_no_lock_is_asked_for_without_a_sandbox() -> None:
    locking.lock("")


def test_a_lock_that_the_kernel_refuses_is_an_error() -> None:
    out = run("import locking\ntry: locking.lock('ff' * 8)\nexcept OSError as e: print(e)")
    assert "could not lock itself" in out
