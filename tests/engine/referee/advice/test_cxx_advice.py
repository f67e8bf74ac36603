"""C++ and CUDA: cheats by whatever spelling are seen, honest kernels stay quiet."""

from __future__ import annotations

import random

import pytest

from workbench_engine.referee.advice.advising import advise
from workbench_engine.referee.advice.cxx_rules import spliced
from workbench_engine.tasks.catalogue import bundled_names, bundled_space

RUN = 'extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {\n  %s\n}\n'


def body(code: str) -> str:
    return RUN % code


EVASIONS = {
    "thread": ("thread", body("std::thread t(work); t.detach();")),
    "thread with blanks": ("thread", body("std /* // */ :: thread t(work);")),
    "thread over a spliced line": ("thread", body("std::thr\\\nead t(work);")),
    "thread by using": ("thread", "using namespace std;\n" + body("thread t(work);")),
    "thread by alias": ("thread", "namespace s = std;\n" + body("s::thread t(work);")),
    "thread by using-declaration": ("thread", "using std::thread;\n" + body("thread t(work);")),
    "thread by typedef": ("thread", "typedef std::thread W;\n" + body("W t(work);")),
    "thread by macro": ("thread", "#define W std::thread\n" + body("W t(work);")),
    "thread in a template argument": ("thread", body("std::vector<std::thread> ts;")),
    "pthread": ("thread", body("pthread_create(&t, 0, work, 0);")),
    "pthread declared": ("thread", 'extern "C" int pthread_create(...);\n' + body("pthread_create(&t, 0, work, 0);")),
    "pthread by dlsym": ("thread", body('auto f = dlsym(RTLD_DEFAULT, "pthread_create");')),
    "pthread by asm label": ("thread", 'extern "C" int w(...) __asm__("pthread_create");\n' + body("w(&t);")),
    "async": ("thread", body("auto f = std::async(std::launch::async, work);")),
    "token pasting": ("hidden-code", "#define J(a, b) a##b\n" + body("std::J(thr, ead) t(work);")),
    "after slashes in a string": ("thread", body('const char* s = "//"; std::thread t(work);')),
    "after an open comment in a string": ("thread", body('const char* s = "/*"; std::thread t(work);')),
    "after a raw string": ("thread", body('const char* s = R"(" // )"; std::thread t(work);')),
    "fork behind a variable of its name": (
        "process",
        "void g(int fork) { h(fork); }\n" + body("if (fork() == 0) spin();"),
    ),
    "fork by its address": ("process", body("auto f = &fork; f();")),
    "fork": ("process", body("if (fork() == 0) spin();")),
    "pointer cache": ("cache", "static std::unordered_map<const void*, float*> seen;\n" + body("")),
    "static pointer": ("cache", body("static const float* last = nullptr; if (in[0] == last) return;")),
    "global map": ("cache", "std::map<long, long> seen;\n" + body("")),
    "map in a namespace": ("cache", "namespace { std::map<long, long> seen; }\n" + body("")),
    "static of a class": ("cache", "struct S { static inline std::map<long, long> seen; };\n" + body("")),
    "static function pointer": ("cache", body("static void (*f)(float*) = 0;")),
    "kept tensor": ("cache", "static torch::Tensor last;\n" + body("")),
    "workspace": ("workspace", body("static thread_local std::vector<float> buffer;")),
    "call counter": ("call-count", body("static int calls = 0; if (++calls > 3) return;")),
    "device global": ("call-count", "__device__ int calls;\n__global__ void k(float* x) { x[0] = calls++; }\n"),
    "cublas": ("library", body("cublasSgemm(h, a, b);")),
    "cblas": ("library", body("cblas_sgemm(a, b);")),
    "aten": ("library", "torch::Tensor f(torch::Tensor a) { return at::matmul(a, a); }"),
    "aten by using": ("library", "using namespace at;\nTensor f(Tensor a) { return matmul(a, a); }"),
    "aten method": ("library", "torch::Tensor f(torch::Tensor a) { return a.matmul(a); }"),
    "timer": ("timer", body("clock_gettime(CLOCK_MONOTONIC, &t);")),
    "chrono": ("timer", body("auto t = std::chrono::steady_clock::now();")),
    "cycle counter": ("timer", body('asm volatile("rdtsc" : "=a"(lo), "=d"(hi));')),
    "file": ("file", body('FILE* f = fopen("/proc/self/mem", "r");')),
    "stream": ("stream", "void f() { cudaStream_t s; cudaStreamCreateWithFlags(&s, 1); }"),
    "pool stream": ("stream", "void f() { auto s = at::cuda::getStreamFromPool(); }"),
    "graph": ("graph", "void f() { cudaGraphLaunch(g, s); }"),
    "half": ("cast", "__global__ void k(float* x) { __half h = __float2half(x[0]); x[0] = __half2float(h); }"),
    "_Float16": ("cast", body("_Float16 h = 1.0f;")),
    "tf32": ("cast", "__global__ void k(float* x) { wmma::fragment<A, 16, 16, 8, wmma::precision::tf32> a; }"),
    "catch": ("fallback", "void f() { try { g(); } catch (...) { h(); } }"),
    "dlsym": ("native", body('auto f = dlsym(RTLD_NEXT, "cudaEventElapsedTime");')),
    "mprotect": ("native", body("mprotect(p, 4096, 7);")),
    "system call": ("native", body('asm volatile("syscall");')),
    "stack": ("frame-walk", body("void* p = __builtin_frame_address(0);")),
    "flush to zero": ("global-flag", body("_MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);")),
    "team size": ("global-flag", body("omp_set_num_threads(64);")),
    "persisting": ("l2", 'void f() { asm("ld.global.L2::evict_last.f32 %0, [%1];"); }'),
    "exit": ("exit", body("_exit(0);")),
}

HONEST = {
    "comments": body("/* std::thread t; */ // cublasSgemm(a);"),
    "string": body('const char* s = "std::thread t; cublasSgemm(a); pthread_create";'),
    "openmp": body("#pragma omp parallel for schedule(static) nowait\n  for (long i = 0; i < dim[0]; ++i) g(i);"),
    "constants": "static const float table[3] = {1, 2, 3};\nconstexpr int N = 4;\n__constant__ float w[4];\n"
    + body(""),
    "prototype": "static float g(float* x);\nfloat* h(long n);\n" + body(""),
    "own function of a C name": "static inline float read(const float* p) { return *p; }\n" + body("read(p);"),
    "rethrown": "void f() { try { g(); } catch (...) { cleanup(); throw; } }",
    "kernel": (
        "template <int N> __global__ void k(const float* __restrict__ x, float* y, long n) {\n"
        "  __shared__ float tile[N];\n  long i = blockIdx.x * N + threadIdx.x;\n  tile[threadIdx.x] = x[i];\n"
        "  __syncthreads();\n  if (i < n) y[i] = tile[threadIdx.x] * 2.0f;\n}\n"
        "void f(const float* x, float* y, long n, cudaStream_t s) { k<256><<<(n + 255) / 256, 256, 0, s>>>(x, y, n); }"
    ),
    "current stream": "void f() { auto s = at::cuda::getCurrentCUDAStream(); k<<<1, 1, 0, s>>>(); }",
    "own members": "struct S { int time; float open; };\nfloat f(S s) { return s.time + s.open; }",
    "allocation": "torch::Tensor f(torch::Tensor x) { auto y = torch::empty_like(x); return y; }",
    "parallel_for": "void f() { at::parallel_for(0, n, 1, [&](int64_t a, int64_t b) { g(a, b); }); }",
    "variables of C names": body("float time = 1; for (int read : xs) time += read; g(time);"),
    "parameters of C names": "float f(float* open, float& write, float clock[4]) { return *open + write + clock[0]; }",
    "a variable called half": body("const long half = dim[0] / 2; g(half);"),
    "constant macro": "#define TILE 64 // std::thread\n#define MAX(a, b) ((a) > (b) ? (a) : (b))\n" + body(""),
}


@pytest.mark.parametrize("name", EVASIONS)
def test_an_evasion_is_seen(name: str) -> None:
    code, text = EVASIONS[name]
    assert code in {one.code for one in advise(text, "kernel")}


@pytest.mark.parametrize("name", HONEST)
def test_its_honest_twin_is_not(name: str) -> None:
    assert advise(HONEST[name], "kernel") == []


@pytest.mark.parametrize("task", bundled_names())
def test_rendered_kernels_are_quiet(task: str) -> None:
    space = bundled_space(task)
    if space is None:
        pytest.skip("no design space")
    rng = random.Random(task)
    for _ in range(5):
        assert advise(space.render(space.sample(rng)).text(), "kernel") == []


@pytest.mark.parametrize("text", ["", "}", "plain words", "\0\0", "int", "#"])
def test_what_is_no_code_is_quiet_or_said(text: str) -> None:
    assert {one.code for one in advise(text, "kernel")} <= {"unparsable"}


def test_what_does_not_parse_is_said() -> None:
    assert [one.code for one in advise("this is ] not (( code", "kernel")] == ["unparsable"]


def test_deep_nesting_is_no_trouble() -> None:
    advise("void f() {" + "{" * 20_000 + "}" * 20_000 + "}", "kernel")
    advise("int x = " + "(" * 20_000 + "1" + ")" * 20_000 + ";", "kernel")


def test_splicing_keeps_the_lines() -> None:
    text = "a\\\nb\\\nc\nd\n"
    assert spliced(text) == "abc\n\n\nd\n"
    assert [one.line for one in advise("#define A \\\n  1\n" + body("fork();"), "kernel")] == [4]
