"""Compiling real CUDA without a GPU: what comes out, what is said, and a compiler that must not see or do too much."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from workbench_engine.backends.cpu import CompilerMissing
from workbench_engine.backends.cuda import toolchain
from workbench_engine.backends.cuda.arch import capacity_of
from workbench_engine.backends.cuda.builder import CudaBuild, CudaBuilder
from workbench_engine.backends.cuda.header import read_file
from workbench_engine.backends.cuda.launch import plan
from workbench_engine.backends.cuda.toolchain import Toolchain
from workbench_engine.backends.cuda.workers import symbols
from workbench_engine.sandbox.level import probe

Builds = Callable[..., CudaBuild]


def declared(kernel: str, shared: str = "0", arguments: str = '"in[0]", "out[0]", "cols"') -> str:
    """The comment that launches one kernel, a block a row."""
    return (
        f'/* workbench\n[[launch]]\nkernel = "{kernel}"\ngrid = ["rows"]\nblock = [256]\nshared = "{shared}"\n'
        f"arguments = [{arguments}]\n*/\n"
    )


SOFTMAX = """\
#define FULL 0xffffffffu
__device__ float over_block(float v, bool largest, float* shared) {
  for (int o = 16; o; o >>= 1) {
    float w = __shfl_xor_sync(FULL, v, o);
    v = largest ? fmaxf(v, w) : v + w;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[threadIdx.x % (blockDim.x / 32)];
  for (int o = blockDim.x / 64; o; o >>= 1) {
    float w = __shfl_xor_sync(FULL, v, o);
    v = largest ? fmaxf(v, w) : v + w;
  }
  __syncthreads();
  return v;
}
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float partial[32];
  extern __shared__ float row[];
  x += (long long)blockIdx.x * cols;
  y += (long long)blockIdx.x * cols;
  float top = -3.4e38f, sum = 0.f;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) top = fmaxf(top, row[j] = x[j]);
  top = over_block(top, true, partial);
  for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += row[j] = expf(row[j] - top);
  sum = 1.f / over_block(sum, false, partial);
  for (int j = threadIdx.x; j < cols; j += blockDim.x) y[j] = row[j] * sum;
}
"""
TEMPLATE = """\
namespace tiles {
template <class T, int ITEMS> __global__ void scale(const T* x, T* y, int cols) {
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    int j = (blockIdx.x * ITEMS + i) * blockDim.x + threadIdx.x;
    if (j < cols) y[j] = x[j] * T(2);
  }
}
}
"""
HALF = """\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda/std/type_traits>
extern "C" __global__ void widen(const float* x, float* y, int cols) {
  static_assert(cuda::std::is_same_v<decltype(__half2float(__half())), float>, "");
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < cols) y[j] = __half2float(__float2half(x[j])) + __bfloat162float(__float2bfloat16(x[j]));
}
"""
ENDLESS = """\
template <int N, int M> struct F { static const long v = F<N - 1, M>::v + F<N - 1, M + (1 << (N % 30))>::v; };
template <int M> struct F<0, M> { static const long v = M; };
extern "C" __global__ void endless(float* x) { x[0] = F<60, 0>::v; }
"""


def test_softmax_with_more_than_48_kib_of_dynamic_shared_memory(build: Builds) -> None:
    text = declared("softmax", "4 * cols") + SOFTMAX
    made = build(text)
    assert made.ok, made.log
    assert Path(made.path).read_bytes()[:4] == b"\x7fELF"
    assert symbols.entries(Path(made.path).read_bytes()) == ["softmax"]
    (facts,) = made.kernels
    assert (facts.name, facts.lowered, facts.shared_bytes, facts.barriers) == ("softmax", "softmax", 128, 1)
    assert facts.registers > 8 and facts.spill_store_bytes == 0
    assert made.compiler.startswith("NVRTC") and made.arch == "sm_90a" and made.log == ""
    (launch,) = plan(read_file(text).spec, {"rows": 4, "cols": 16384}, 1, 1, capacity_of(made.arch)).launches
    assert launch.shared_bytes == 65_536 and launch.grid == (4, 1, 1)


def test_a_template_by_its_name_expression(build: Builds) -> None:
    made = build(declared("tiles::scale<float, 4>") + TEMPLATE)
    assert made.ok, made.log
    (facts,) = made.kernels
    assert facts.name == "tiles::scale<float, 4>" and facts.lowered.startswith("_ZN5tiles5scaleIfLi4EEEv")
    assert symbols.demangled(facts.lowered).startswith("void tiles::scale<float, 4>(float const*")
    assert symbols.entries(Path(made.path).read_bytes()) == [facts.lowered]


def test_half_precision_and_the_headers_of_cuda(build: Builds, nvrtc: Toolchain) -> None:
    if not nvrtc.has_headers:
        pytest.skip(f"no headers beside {nvrtc.version}: {toolchain.REMEDY}")
    made = build(declared("widen") + HALF)
    assert made.ok, made.log


def test_flags_change_what_is_made(build: Builds) -> None:
    body = declared("f", arguments='"in[0]", "out[0]"') + (
        'extern "C" __global__ void f(const float* x, float* y) { y[threadIdx.x] = SCALE * expf(x[threadIdx.x]); }\n'
    )
    exact = build(f"// flags: -DSCALE=2.0f\n{body}")
    fast = build(f"// flags: -DSCALE=2.0f -use_fast_math -maxrregcount=32 -std=c++20 -fmad=false\n{body}")
    assert exact.ok and fast.ok, (exact.log, fast.log)
    assert Path(exact.path).read_bytes() != Path(fast.path).read_bytes()
    assert not build(body).ok


def test_a_build_is_cached_by_content(build: Builds) -> None:
    text = declared("tiles::scale<float, 4>") + TEMPLATE
    first, second = build(text), build(text)
    assert first.ok and not first.cached and second.cached
    assert msgspec.structs.replace(second, cached=False, seconds=first.seconds) == first
    assert build(text.replace("ITEMS = 4", "").replace("<float, 4>", "<float, 2>")).path != first.path
    assert build(text, arch="sm_80").path != first.path
    Path(first.path).unlink()
    assert not build(text).cached


def test_an_error_is_cached_and_its_feedback_names_line_and_cause(build: Builds) -> None:
    text = declared("softmax", "4 * cols") + SOFTMAX.replace("float top =", "float tip =")
    first, second = build(text), build(text)
    line = next(n for n, said in enumerate(text.splitlines(), 1) if "top = fmaxf" in said)
    assert not first.ok and first.path == "" and first.kernels == ()
    assert first.feedback.startswith(f'does not compile: kernel.cu({line}): error: identifier "top" is undefined')
    assert second.cached and second.feedback == first.feedback


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        ("absent", "a launch names absent, which is no kernel"),
        ("over_block", "a launch names over_block, which is no kernel"),
    ],
)
def test_a_launch_must_name_a_kernel(build: Builds, kernel: str, says: str) -> None:
    made = build(declared(kernel) + SOFTMAX)
    assert not made.ok and says in made.feedback


def test_a_compilation_without_end_is_killed(build: Builds) -> None:
    start = time.monotonic()
    made = build(declared("endless", arguments='"in[0]"') + ENDLESS, deadline_s=2.0)
    assert not made.ok and made.feedback == "the compiler took more than 2 s: killed"
    assert time.monotonic() - start < 20
    again = build(declared("endless", arguments='"in[0]"') + ENDLESS, deadline_s=2.0)
    assert not again.cached


def test_the_compiler_cannot_read_the_home_folder_and_its_log_moves_no_cursor(build: Builds, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("TOP SECRET")
    made = build(declared("f") + f'#include "{secret}"\n')
    assert not made.ok and "TOP SECRET" not in made.log and "cannot open source file" in made.log
    loud = build(declared("f") + '#error "\x1b[2J"\n')
    assert not loud.ok and "\x1b" not in loud.log + loud.feedback


def test_host_headers_are_explained(build: Builds) -> None:
    made = build(declared("f") + "#include <vector>\n")
    assert not made.ok and "the host's are not with NVRTC" in made.feedback


def test_a_file_without_a_launch_is_refused_before_the_compiler(build: Builds) -> None:
    made = build(SOFTMAX)
    assert not made.ok and "declares no launch" in made.feedback and made.sha256 == ""


def test_without_headers_the_remedy_is_named(nvrtc: Toolchain, tmp_path: Path) -> None:
    bare = msgspec.structs.replace(nvrtc, includes=(), header_release="")
    builder = CudaBuilder(probe(), tmp_path, arch="sm_90a", nvrtc=bare)
    made = asyncio.run(builder.build(declared("widen") + HALF, [0]))
    assert not made.ok and "pip install 'kernel-workbench[cuda13]'" in made.feedback


def test_nvcc_builds_what_asks_for_it(build_nvcc: Builds, build: Builds) -> None:
    text = "// compiler: nvcc\n" + declared("tiles::scale<float, 4>") + TEMPLATE
    made = build_nvcc(text)
    assert made.ok, made.log
    assert made.compiler.startswith("nvcc") and made.kernels[0].lowered.startswith("_ZN5tiles5scaleIfLi4EEEv")
    assert made.kernels[0].registers > 0
    wrong = build_nvcc(text.replace("4>", "9>").replace("int ITEMS", "int N, int ITEMS"))
    assert not wrong.ok and "error" in wrong.feedback
    refused = build(text)
    assert not refused.ok and "nvcc is not in use here" in refused.feedback


def test_nvcc_cannot_go_on_for_ever_either(build_nvcc: Builds) -> None:
    made = build_nvcc("// compiler: nvcc\n" + declared("endless", arguments='"in[0]"') + ENDLESS, deadline_s=2.0)
    assert not made.ok and "killed" in made.feedback


def test_nvcc_names_the_kernels_there_are(build_nvcc: Builds) -> None:
    made = build_nvcc("// compiler: nvcc\n" + declared("absent") + SOFTMAX)
    assert not made.ok and "0 kernels are called 'absent'; the file has: softmax" in made.feedback


def test_no_compiler_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_nvrtc_libraries", lambda: iter(()))
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(CompilerMissing, match=r"NVRTC is not installed \(.*\); remedy: pip install 'kernel-workbench"):
        CudaBuilder(probe(), tmp_path)


def test_a_library_for_a_newer_driver_is_passed_over(nvrtc: Toolchain) -> None:
    with pytest.raises(CompilerMissing, match="is for a newer driver"):
        toolchain.find_nvrtc(newest_major=9)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100, b"\x7fELF\x02\x01" + b"\0" * 60])
def test_a_broken_binary_is_an_error_or_has_no_kernel(data: bytes) -> None:
    try:
        assert symbols.entries(data) == []
    except ValueError as error:
        assert "ELF" in str(error)
