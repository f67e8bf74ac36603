"""Building kernels: flags, cache, errors, and a compiler that must not see or do too much."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from workbench_engine.backends.cpu import Build, CompilerMissing, CpuBuilder, flags_in
from workbench_engine.sandbox.level import probe

GOOD = 'extern "C" void kernel_run(const void* const*, void* const*, const long long*) {}\n'


def build(cache: Path, text: str, deadline_s: float = 60.0) -> Build:
    builder = CpuBuilder(probe(), cache, deadline_s)
    return asyncio.run(builder.build(text, sorted(os.sched_getaffinity(0))))


def test_a_build_is_cached_by_content(tmp_path: Path) -> None:
    first, second = build(tmp_path, GOOD), build(tmp_path, GOOD)
    assert first.ok and not first.cached and second.ok and second.cached and first.path == second.path
    other = build(tmp_path, f"// flags: -O1\n{GOOD}")
    assert other.ok and other.path != first.path


def test_a_failure_is_cached_and_its_feedback_names_the_error(tmp_path: Path) -> None:
    first, second = build(tmp_path, GOOD + "int x = y;"), build(tmp_path, GOOD + "int x = y;")
    assert not first.ok and "'y' was not declared" in first.feedback and second.cached
    assert second.feedback == first.feedback


@pytest.mark.parametrize(
    "flags", ["-fplugin=/tmp/x.so", "-o /etc/passwd", "-include /etc/passwd", "-Wl,-rpath,/x", "@file", "-O3;id"]
)
def test_only_listed_flags_are_taken(tmp_path: Path, flags: str) -> None:
    result = build(tmp_path, f"// flags: {flags}\n{GOOD}")
    assert not result.ok and "flag not allowed" in result.feedback


def test_flags_ride_in_the_first_line() -> None:
    assert flags_in("// flags: -O2 -ffast-math\nint x;") == (("-O2", "-ffast-math"), [])
    assert flags_in("int x; // flags: -O1") == (("-O3",), [])


def test_the_compiler_cannot_read_the_home_folder(tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("TOP SECRET")
    result = build(tmp_path / "cache", f'#include "{secret}"\n{GOOD}')
    assert not result.ok and "TOP SECRET" not in result.log and "No such file" in result.log


def test_an_endless_compilation_is_killed(tmp_path: Path) -> None:
    forever = "template<int N> struct F { static const long v = F<N-1>::v + F<N-2>::v; };\n"
    text = f"// flags: -O0\n{forever}constexpr long f(long n) {{ return n < 2 ? n : f(n-1) + f(n-2); }}\n"
    text += 'static_assert(f(27) == 0 || true, ""); ' * 1
    slow = "#define A(x) x x x x x x x x x x\n" + "int a = 0" + ";\n" + text
    slow += "".join(
        f"double g{i}(double* p) {{ double s=0; for (int i=0;i<99;++i) s+=p[i]*p[i+{i}]; return s; }}\n"
        for i in range(8000)
    )
    result = build(tmp_path, f"// flags: -O3\n{slow}{GOOD}", deadline_s=0.5)
    assert not result.ok and "killed" in result.feedback


def test_a_file_without_the_entry_point_is_refused_before_the_compiler(tmp_path: Path) -> None:
    assert "kernel_run" in build(tmp_path, "int x;").feedback


def test_no_compiler_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CompilerMissing, match=r"apt install g\+\+"):
        CpuBuilder(probe(trust=True), tmp_path)
