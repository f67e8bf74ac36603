"""Which Python names mean what: dotted names and prefixes, attribute names, and the torch calls that are libraries."""

from __future__ import annotations


def words(text: str) -> list[str]:
    """The words of a text: long tables read better as prose than as lists."""
    return text.split()


COMPUTE = frozenset(
    words(
        """matmul mm bmm mv dot vdot inner outer einsum tensordot addmm addmv addbmm baddbmm addr chain_matmul
        linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution
        softmax log_softmax softmin logsumexp layer_norm group_norm batch_norm instance_norm rms_norm
        local_response_norm normalize cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss kl_div gelu silu
        relu mish elu selu celu leaky_relu hardswish hardtanh softplus scaled_dot_product_attention
        multi_head_attention_forward max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d
        adaptive_avg_pool2d adaptive_max_pool2d embedding embedding_bag lstm gru rnn_tanh cumsum cumprod cummax
        sort argsort topk kron cdist linalg_norm interpolate grid_sample fft_fft fft_rfft"""
    )
)
"""Torch operators that do the arithmetic of a whole kernel, whichever way they are called."""

METHODS = frozenset(
    words(
        """matmul mm bmm mv addmm addmv addbmm baddbmm softmax log_softmax logsumexp cumsum cumprod __matmul__
        __rmatmul__ addmm_ baddbmm_ relu_ softmax_"""
    )
)
"""Of these, the methods of a tensor: calls on whatever object."""

NAMES: dict[str, str | None] = {
    # A prefix stands for all below it; the longest match counts, and None exempts.
    "contextlib.suppress": "fallback",
    "torch.nn.functional": "library",
    "torch.nn.functional.pad": None,
    "torch._C._nn": "library",
    "torch._C._VariableFunctions": "library",
    "torch.ops.aten": "library",
    "torch.ops.mkldnn": "library",
    "torch.linalg": "library",
    "torch.fft": "library",
    "torch.compile": "library",
    "torch.jit.script": "library",
    "torch.jit.trace": "library",
    "torch._dynamo.optimize": "library",
    "torch.special": "library",
    "torch.mkldnn": "library",
    "torch.sparse.mm": "library",
    "torch.matrix_exp": "library",
    **{f"torch.{name}": "library" for name in COMPUTE},
    **{f"torch.Tensor.{name}": "library" for name in sorted(METHODS | COMPUTE)},
    **{
        f"torch.nn.{name}": "library"
        for name in words(
            """Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LSTM GRU RNN
            Softmax LogSoftmax LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d RMSNorm InstanceNorm2d
            GELU ReLU SiLU MultiheadAttention TransformerEncoderLayer MaxPool2d AvgPool2d CrossEntropyLoss
            Embedding"""
        )
    },
    "numpy.matmul": "library",
    "numpy.dot": "library",
    "numpy.einsum": "library",
    "numpy.linalg": "library",
    "numpy.convolve": "library",
    "scipy": "library",
    "cupy.matmul": "library",
    "cupy.dot": "library",
    "cupy.linalg": "library",
    "cupyx": "library",
    "cutlass": "library",
    "cublas": "library",
    "cudnn": "library",
    "time": "timer",
    "time.strftime": None,
    "timeit": "timer",
    "datetime.datetime.now": "timer",
    "torch.cuda.Event": "timer",
    "torch.Event": "timer",
    "torch.utils.benchmark": "timer",
    "torch.profiler": "timer",
    "torch.autograd.profiler": "timer",
    "triton.testing": "timer",
    "triton.runtime.autotuner": "timer",
    "torch.cuda.Stream": "stream",
    "torch.cuda.ExternalStream": "stream",
    "torch.cuda.stream": "stream",
    "torch.cuda.set_stream": "stream",
    "torch.cuda.StreamContext": "stream",
    "torch.Stream": "stream",
    "torch.cpu.Stream": "stream",
    "torch.accelerator.set_stream": "stream",
    "cupy.cuda.Stream": "stream",
    "cupy.cuda.ExternalStream": "stream",
    "threading": "thread",
    **{
        f"threading.{name}": None
        for name in words("""Lock RLock local get_ident current_thread main_thread Condition Semaphore Event""")
    },
    "_thread": "thread",
    "_thread.allocate_lock": None,
    "concurrent.futures": "thread",
    "multiprocessing.dummy": "thread",
    "multiprocessing.pool.ThreadPool": "thread",
    "asyncio": "thread",
    "torch.jit.fork": "thread",
    "torch.jit._fork": "thread",
    "torch._C.fork": "thread",
    "sched": "thread",
    "signal": "process",
    "multiprocessing": "process",
    "torch.multiprocessing": "process",
    "subprocess": "process",
    "os.fork": "process",
    "os.forkpty": "process",
    "os.system": "process",
    "os.popen": "process",
    "os.kill": "process",
    "os.killpg": "process",
    "os.setsid": "process",
    "os.posix_spawn": "process",
    "os.sched_setaffinity": "process",
    "os.nice": "process",
    "pty": "process",
    **{f"os.{name}": "process" for name in words("""execv execve execl execvp spawnv spawnl spawnve posix_spawnp""")},
    "inspect": "frame-walk",
    **{f"inspect.{name}": None for name in words("""signature isclass isfunction cleandoc getmodule Parameter""")},
    "sys._getframe": "frame-walk",
    "sys._current_frames": "frame-walk",
    "sys.settrace": "frame-walk",
    "sys.setprofile": "frame-walk",
    "traceback.walk_stack": "frame-walk",
    "traceback.extract_stack": "frame-walk",
    "gc.get_objects": "frame-walk",
    "gc.get_referrers": "frame-walk",
    "gc.get_referents": "frame-walk",
    "gc.callbacks": "frame-walk",
    "functools.lru_cache": "cache",
    "functools.cache": "cache",
    "functools.cached_property": "cache",
    "weakref.WeakKeyDictionary": "cache",
    "weakref.WeakValueDictionary": "cache",
    "itertools.count": "call-count",
    "torch.float16": "cast",
    "torch.half": "cast",
    "torch.bfloat16": "cast",
    "torch.float8_e4m3fn": "cast",
    "torch.float8_e5m2": "cast",
    "torch.HalfTensor": "cast",
    "torch.BFloat16Tensor": "cast",
    "torch.autocast": "cast",
    "torch.amp": "cast",
    "torch.cuda.amp": "cast",
    "torch.cpu.amp": "cast",
    "torch.quantize_per_tensor": "cast",
    "torch.ao.quantization": "cast",
    "numpy.float16": "cast",
    "cupy.float16": "cast",
    "unittest.mock": "patch",
    "torch.set_float32_matmul_precision": "global-flag",
    "torch.set_num_threads": "global-flag",
    "torch.set_num_interop_threads": "global-flag",
    "torch.set_default_dtype": "global-flag",
    "torch.set_default_device": "global-flag",
    "torch.set_flush_denormal": "global-flag",
    "torch.use_deterministic_algorithms": "global-flag",
    "torch.backends.cuda.sdp_kernel": "global-flag",
    "torch.backends.cudnn.flags": "global-flag",
    "torch.backends.mkldnn.flags": "global-flag",
    "torch.cuda.memory": "global-flag",
    "torch.cuda.set_per_process_memory_fraction": "global-flag",
    "os.putenv": "global-flag",
    "resource": "global-flag",
    "torch.manual_seed": "seed",
    "torch.random": "seed",
    "torch.cuda.manual_seed": "seed",
    "torch.cuda.manual_seed_all": "seed",
    "torch.set_rng_state": "seed",
    "torch.default_generator": "seed",
    "builtins.open": "file",
    "io.open": "file",
    "os.open": "file",
    "os.read": "file",
    "os.write": "file",
    "os.dup2": "file",
    "os.dup": "file",
    "os.pipe": "file",
    "os.listdir": "file",
    "os.scandir": "file",
    "os.walk": "file",
    "os.remove": "file",
    "os.rename": "file",
    "os.fdopen": "file",
    "pathlib": "file",
    "pathlib.PurePath": None,
    "glob": "file",
    "shutil": "file",
    "socket": "file",
    "urllib": "file",
    "http": "file",
    "requests": "file",
    "httpx": "file",
    "mmap": "file",
    "fcntl": "file",
    "pickle": "file",
    "shelve": "file",
    "sqlite3": "file",
    "torch.load": "file",
    "torch.save": "file",
    "numpy.load": "file",
    "numpy.memmap": "file",
    "numpy.fromfile": "file",
    "torch.from_file": "file",
    "multiprocessing.shared_memory": "file",
    "ctypes.pythonapi": "native",
    "ctypes.memmove": "native",
    "ctypes.memset": "native",
    "ctypes.string_at": "native",
    "ctypes.util": "native",
    "ctypes.PyDLL": "native",
    "ctypes.LibraryLoader": "native",
    "ctypes.cdll": "native",
    "ctypes.pydll": "native",
    "_ctypes": "native",
    "builtins.memoryview": None,
    "torch.cuda.CUDAGraph": "graph",
    "torch.cuda.graph": "graph",
    "torch.cuda.graphs": "graph",
    "torch.cuda.make_graphed_callables": "graph",
    "torch.Tensor._make_subclass": "lazy-tensor",
    "torch.Tensor._make_wrapper_subclass": "lazy-tensor",
    "torch.Tensor.as_subclass": "lazy-tensor",
    "torch.utils._python_dispatch": "lazy-tensor",
    "torch.overrides": "lazy-tensor",
    "torch._subclasses": "lazy-tensor",
    "torch.library.Library": "patch",
    "torch.library.impl": "patch",
    "os._exit": "exit",
    "os.abort": "exit",
    "sys.exit": "exit",
    "builtins.exit": "exit",
    "builtins.quit": "exit",
    "builtins.SystemExit": "exit",
    "atexit": "exit",
    "builtins.exec": "hidden-code",
    "builtins.eval": "hidden-code",
    "builtins.compile": "hidden-code",
    "types.FunctionType": "hidden-code",
    "types.CodeType": "hidden-code",
    "marshal": "hidden-code",
    "codecs": "hidden-code",
    "base64": "hidden-code",
    "zlib": "hidden-code",
}

ATTRIBUTES = {
    "f_back": "frame-walk",
    "f_locals": "frame-walk",
    "f_globals": "frame-walk",
    "tb_frame": "frame-walk",
    "gi_frame": "frame-walk",
    "cr_frame": "frame-walk",
    "cell_contents": "frame-walk",
    "__closure__": "frame-walk",
    "__code__": "patch",
    "__class__": None,
    "__subclasses__": "frame-walk",
    "half": "cast",
    "bfloat16": "cast",
    "allow_tf32": "global-flag",
    "read_text": "file",
    "read_bytes": "file",
    "write_text": "file",
    "write_bytes": "file",
    "from_address": "native",
    "__torch_function__": "lazy-tensor",
    "__torch_dispatch__": "lazy-tensor",
    "as_subclass": "lazy-tensor",
    "_make_subclass": "lazy-tensor",
    "_make_wrapper_subclass": "lazy-tensor",
    "elapsed_time": "timer",
    "wait_stream": "stream",
    "record_stream": "stream",
    "run_in_executor": "thread",
    "capture_begin": "graph",
    "replay": "graph",
    "accessPolicyWindow": "l2",
    "attributes_persisting_l2": "l2",
}
"""Attribute names that say enough on any object."""

NATIVE_SYMBOLS = frozenset(
    words(
        """dlsym dlvsym mprotect ptrace process_vm_readv process_vm_writev syscall clone3 vfork fork pthread_create
        clock_gettime gettimeofday dup2 memfd_create prctl popen PyFrame_GetBack PyEval_SetTrace
        Py_AddPendingCall"""
    )
)
"""C symbols nobody needs from a handle to his own kernel."""

LIBRARY_FILES = ("cublas", "cudnn", "cusparse", "cusolver", "mkl", "openblas", "dnnl", "libblas", "cutlass")
NATIVE_FILES = (
    "libc.so",
    "libpthread",
    "libdl",
    "libcuda.so",
    "libcudart",
    "libpython",
    "libtorch",
    "libc10",
    "msvcrt",
)
DYNAMIC_MODULES = frozenset(
    words(
        """torch torch.cuda torch.nn.functional torch.ops torch.ops.aten os sys time builtins threading ctypes
        importlib gc inspect torch.Tensor subprocess"""
    )
)
"""Modules of which an attribute with a computed name may be anything."""

COMPILERS = frozenset(
    words(
        """torch.utils.cpp_extension.load_inline torch.utils.cpp_extension.load cupy.RawModule cupy.RawKernel
        cupy.ElementwiseKernel cupy.ReductionKernel ctypes.CDLL cffi.FFI triton.jit numba.njit numba.jit
        numba.cuda.jit tilelang.jit cutlass.cute.kernel cutlass.cute.jit torch.cuda._compile_kernel
        torch.ops.load_library"""
    )
)
"""What makes or loads compiled code of the candidate's own."""


def code_of(dotted: str) -> str | None:
    """The advice code of a dotted name, by its longest known prefix."""
    name = dotted
    while name:
        if name in NAMES:
            return NAMES[name]
        name = name.rpartition(".")[0]
    return None
