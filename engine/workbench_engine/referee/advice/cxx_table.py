"""Which C++ and CUDA names mean what."""

from __future__ import annotations

import re

from workbench_engine.referee.advice.python_table import COMPUTE, words

QUALIFIED: dict[str, str | None] = {
    # A prefix stands for all below it; the longest match counts, and None exempts.
    "std::thread": "thread",
    "std::jthread": "thread",
    "std::async": "thread",
    "std::packaged_task": "thread",
    "std::execution": "thread",
    "std::this_thread::sleep_for": "timer",
    "std::this_thread::sleep_until": "timer",
    "boost::thread": "thread",
    "boost::asio": "thread",
    "tbb": "thread",
    "at::launch": "thread",
    "c10::ThreadPool": "thread",
    "std::chrono": "timer",
    "std::clock": "timer",
    "std::time": "timer",
    "std::ifstream": "file",
    "std::ofstream": "file",
    "std::fstream": "file",
    "std::filesystem": "file",
    "std::fopen": "file",
    "std::freopen": "file",
    "std::remove": None,
    "std::system": "process",
    "std::signal": "process",
    "std::raise": "process",
    "std::exit": "exit",
    "std::_Exit": "exit",
    "std::quick_exit": "exit",
    "std::abort": "exit",
    "std::terminate": "exit",
    "std::atexit": "exit",
    "std::experimental::memoize": "cache",
    "at::native": "library",
    "at::_ops": "library",
    "at::redispatch": "library",
    "at::cpu": "library",
    "at::cuda::blas": "library",
    "torch::nn": "library",
    "torch::jit": "library",
    "torch::linalg": "library",
    "torch::dynamo": "library",
    "c10::Dispatcher": "library",
    "at::cuda::getStreamFromPool": "stream",
    "c10::cuda::getStreamFromPool": "stream",
    "at::cuda::setCurrentCUDAStream": "stream",
    "c10::cuda::setCurrentCUDAStream": "stream",
    "c10::cuda::CUDAStreamGuard": "stream",
    "at::cuda::CUDAGraph": "graph",
    "at::globalContext": "global-flag",
    "at::set_num_threads": "global-flag",
    "torch::set_num_threads": "global-flag",
    "at::manual_seed": "seed",
    "torch::manual_seed": "seed",
    "at::Half": "cast",
    "c10::Half": "cast",
    "at::BFloat16": "cast",
    "c10::BFloat16": "cast",
    "at::kHalf": "cast",
    "at::kBFloat16": "cast",
    "torch::kHalf": "cast",
    "torch::kFloat16": "cast",
    "torch::kBFloat16": "cast",
    "c10::ScalarType::Half": "cast",
    "at::ScalarType::Half": "cast",
    "at::ScalarType::BFloat16": "cast",
    "torch::ScalarType::Half": "cast",
    "nvcuda::wmma::precision::tf32": "cast",
    "wmma::precision::tf32": "cast",
    "cutlass": "library",
    "thrust": "library",
    "cub::DeviceReduce": "library",
    "cub::DeviceScan": "library",
    "cub::DeviceRadixSort": "library",
    "cub::DeviceSegmentedReduce": "library",
    "Eigen": "library",
    "dnnl": "library",
    **{
        f"{space}::{name}": "library"
        for space in ("at", "torch", "torch::nn::functional", "at::indexing")
        for name in sorted(COMPUTE)
    },
}

_CALLS = {
    "thread": "pthread_create thrd_create omp_fulfill_event",
    "process": "fork vfork clone clone3 execve execv execvp posix_spawn system popen kill tgkill raise waitpid setsid "
    "sigaction signal alarm setitimer timer_create sched_setaffinity pthread_setaffinity_np pthread_sigmask daemon",
    "file": "fopen fopen64 freopen fdopen open open64 openat creat opendir readdir stat read pread readv write pwrite "
    "writev dup dup2 dup3 dprintf fwrite fread mkstemp memfd_create shm_open socket connect send recv sendmsg",
    "timer": "clock clock_gettime gettimeofday time ftime omp_get_wtime __rdtsc _rdtsc __rdtscp clock64 "
    "__builtin_ia32_rdtsc cudaEventElapsedTime cuEventElapsedTime nanosleep usleep sleep __nanosleep",
    "native": "dlopen dlmopen dlsym dlvsym dl_iterate_phdr mprotect mmap mremap ptrace syscall process_vm_readv "
    "process_vm_writev prctl personality userfaultfd cudaGetDriverEntryPoint PyGILState_Ensure Py_AddPendingCall "
    "PyRun_SimpleString PyImport_ImportModule PyImport_AddModule PyObject_SetAttrString",
    "frame-walk": "backtrace __builtin_frame_address __builtin_return_address _Unwind_Backtrace getcontext "
    "PyEval_GetFrame PyThreadState_GetFrame PyEval_GetLocals",
    "exit": "exit _exit _Exit quick_exit abort atexit on_exit",
    "global-flag": "omp_set_num_threads omp_set_dynamic setenv putenv _mm_setcsr _MM_SET_FLUSH_ZERO_MODE "
    "_MM_SET_DENORMALS_ZERO_MODE fesetround fesetenv feenableexcept setpriority nice mallopt cudaDeviceSetLimit "
    "cudaSetDeviceFlags cudaFuncSetCacheConfig openblas_set_num_threads mkl_set_num_threads",
    "l2": "cudaCtxResetPersistingL2Cache cudaAccessPolicyWindow cudaStreamSetAttribute __builtin_ia32_clflush "
    "cudaLaunchAttributeAccessPolicyWindow",
    "graph": "cudaStreamBeginCapture cudaStreamEndCapture cuStreamBeginCapture",
    "stream": "cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority cuStreamCreate",
}
CALLS = {name: code for code, names in _CALLS.items() for name in names.split()}
"""C functions, macros and types, by bare name: what the file defines itself under such a name is exempt."""

SYMBOLS = frozenset(CALLS)

PATTERNS = tuple(
    (re.compile(pattern), code)
    for pattern, code in (
        (r"(cublas|cudnn|cusparse|cusolver|cufft|curand|cutensor)(Lt)?[A-Z]\w*", "library"),
        (r"(cblas|mkl|dnnl|vml|LAPACKE)_\w+", "library"),
        (r"[sdcz](gemm|gemv|syrk|trmm|dot|axpy)_", "library"),
        (r"(cuda|cu)Graph[A-Z]\w*", "graph"),
        (r"_mm\d*_\w*(_ph|_pbh|bf16_ps|cvtps_ph|cvtph_ps)\w*", "cast"),
        (r"__(float|double|int|short)\d?\w*2(half|bfloat16)\w*", "cast"),
        (r"(__)?(half2?|nv_bfloat162?|nv_half2?|nv_fp8\w*|fp16|bf16|float16_t|bfloat16_t)", "cast"),
        (r"_Float16|__bf16|__fp16|bfloat16|Float8_\w+", "cast"),
    )
)
METHODS = frozenset(words("""matmul mm bmm mv addmm addmv baddbmm softmax log_softmax conv2d layer_norm linear"""))
ONLY_TYPES = frozenset(("half", "half2", "fp16", "bf16", "bfloat16", "float16_t"))
IGNORED_STATE = ("mutex", "once_flag", "condition_variable", "TORCH_LIBRARY", "PYBIND11", "string_view")
KEEPERS = ("map", "Map", "set<", "Tensor", "optional", "any", "deque", "list<", "cache", "Cache", "pair", "tuple")
MEMORIES = ("vector", "array", "unique_ptr", "shared_ptr", "string", "valarray", "span", "DeviceBuffer")
ASSEMBLY = (
    ("evict_last", "l2"),
    ("createpolicy", "l2"),
    ("evict_first", None),
    ("syscall", "native"),
    ("int $0x80", "native"),
    ("rdtsc", "timer"),
    ("globaltimer", "timer"),
    ("%clock", "timer"),
    ("tf32", "cast"),
    (".bf16", "cast"),
    (".f16", "cast"),
)


def code_of_qualified(name: str) -> str | None:
    """The code of `a::b::c`, by its longest known prefix."""
    while name:
        if name in QUALIFIED:
            return QUALIFIED[name]
        name = name.rpartition("::")[0]
    return None


def code_of_bare(name: str) -> str | None:
    """The code of an unqualified name."""
    code = CALLS.get(name)
    if code is not None:
        return code
    return next((code for pattern, code in PATTERNS if pattern.fullmatch(name)), None)
