"""Evasions of static checks and their honest twins: the first must be seen, the second must stay quiet."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.referee.advice.advising import advise, as_findings, carries_compiled_code
from workbench_engine.referee.advice.codes import BY_CODE

EVASIONS = {
    "plain import": ("thread", "import threading\nthreading.Thread(target=f).start()"),
    "alias": ("thread", "import threading as t\nt.Thread(target=f)"),
    "alias of an alias": ("thread", "import threading as t\nu = t\nv = u\nv.Thread(target=f)"),
    "from import": ("thread", "from threading import Thread as Worker\nWorker(target=f)"),
    "star import": ("thread", "from threading import *\nThread(target=f)"),
    "low level": ("thread", "import _thread\n_thread.start_new_thread(f, ())"),
    "getattr": ("thread", "import threading\ngetattr(threading, 'Thread')(target=f)"),
    "split literal": ("thread", "m = __import__('thr' + 'eading')\nm.Thread(target=f)"),
    "joined literal": (
        "thread",
        "import importlib\nm = importlib.import_module(''.join(['thr', 'ead', 'ing']))\nm.Timer(1, f)",
    ),
    "reversed literal": ("thread", "m = __import__('gnidaerht'[::-1])\nm.Thread(target=f)"),
    "chr": ("thread", "m = __import__(chr(116) + 'hreading')\nm.Thread(target=f)"),
    "sys.modules": ("thread", "import sys\nsys.modules['threading'].Thread(target=f)"),
    "module dict": ("thread", "import threading\nthreading.__dict__['Thread'](target=f)"),
    "vars": ("thread", "import threading\nvars(threading)['Thread'](target=f)"),
    "attrgetter": ("thread", "import operator, threading\noperator.attrgetter('Thread')(threading)(target=f)"),
    "default argument": ("thread", "import threading\ndef g(T=threading.Thread):\n    T(target=f)"),
    "through a field": (
        "thread",
        "import threading\nclass A:\n    def g(self):\n        self.m = threading\n        self.m.Thread()",
    ),
    "walrus": ("thread", "import threading\n(m := threading).Thread(target=f)"),
    "pool": ("thread", "from concurrent.futures import ThreadPoolExecutor\nThreadPoolExecutor(1).submit(f)"),
    "exec": ("thread", "exec('import threading\\nthreading.Thread(target=f)')"),
    "after a hash in a string": ("thread", "import threading\ns = '#'; threading.Thread(target=f)"),
    "fork": ("process", "import os\nos.fork()"),
    "fork by getattr": ("process", "import os\ng = getattr\ng(os, 'fo' 'rk')()"),
    "stream": ("stream", "from torch import cuda\ns = cuda.Stream()"),
    "stream by getattr": ("stream", "import torch\ngetattr(torch.cuda, f\"{'Str'}eam\")()"),
    "side stream context": ("stream", "import torch as th\nwith th.cuda.stream(s):\n    y = f(x)"),
    "except": ("fallback", "try:\n    y = kernel(x)\nexcept Exception:\n    y = slow(x)"),
    "except star": ("fallback", "try:\n    y = kernel(x)\nexcept* Exception:\n    y = slow(x)"),
    "suppress": ("fallback", "import contextlib as c\nwith c.suppress(Exception):\n    y = kernel(x)"),
    "swallowing context": ("fallback", "class Quiet:\n    def __exit__(self, *a):\n        return True"),
    "matmul": ("library", "import torch\ny = torch.matmul(a, b)"),
    "operator": ("library", "y = a @ b"),
    "method": ("library", "y = a.matmul(b)"),
    "functional": ("library", "from torch.nn import functional as G\ny = G.softmax(x, -1)"),
    "aten": ("library", "import torch\ny = torch.ops.aten.mm.default(a, b)"),
    "inner binding": ("library", "import torch\ny = torch._C._VariableFunctions.mm(a, b)"),
    "class of torch": ("library", "import torch\ny = torch.Tensor.matmul(a, b)"),
    "compiled reference": ("library", "import torch\nf = torch.compile(g)"),
    "cublas by ctypes": ("library", "import ctypes\nh = ctypes.CDLL('lib' + 'cublas.so')"),
    "timer patch": ("patch", "import time\ntime.perf_counter = lambda: 0.0"),
    "timer patch by setattr": ("patch", "import torch\nsetattr(torch.cuda.Event, 'elapsed_' + 'time', f)"),
    "patch by alias": ("patch", "import torch\nE = torch.cuda.Event\nE.elapsed_time = f"),
    "patch by dict": ("patch", "import time\nvars(time)['perf_counter'] = f"),
    "patch by update": ("patch", "import time\ntime.__dict__.update(perf_counter=f)"),
    "patch of setattr's alias": ("patch", "import torch\ns = setattr\ns(torch, 'allclose', f)"),
    "patch of comparison": ("patch", "import torch\ntorch.Tensor.__eq__ = f"),
    "patch of an object's class": ("patch", "type(y).__eq__ = f"),
    "patch of any module": ("patch", "import statistics\nstatistics.mean = f"),
    "patch of the main module": ("patch", "import sys\nsys.modules['__main__'].Module.run = f"),
    "changed class": ("patch", "y.__class__ = Lazy"),
    "shadowed module": ("patch", "import sys\nsys.modules['statistics'] = fake"),
    "timer": ("timer", "from time import perf_counter as p\nt = p()"),
    "events": ("timer", "import torch\ne = torch.cuda.Event(enable_timing=True)"),
    "frame": ("frame-walk", "import sys\nf = sys._getframe(1)"),
    "inspect": ("frame-walk", "from inspect import stack\nstack()"),
    "traceback": ("frame-walk", "f = e.__traceback__.tb_frame.f_back.f_locals"),
    "collector": ("frame-walk", "import gc\n[o for o in gc.get_objects()]"),
    "closure": ("frame-walk", "f.__closure__[0].cell_contents"),
    "pointer cache": ("cache", "k = x.data_ptr()\nif k in self.c:\n    y = self.c[k]"),
    "identity cache": ("cache", "y = self.c.get(id(x))"),
    "identity compare": ("cache", "if x is self.last:\n    y = self.y"),
    "content cache": ("cache", "if x[0, 0].item() == self.first:\n    y = self.y"),
    "equal cache": ("cache", "import torch\nif torch.equal(x, self.last):\n    y = self.y"),
    "memoised": ("cache", "import functools\n@functools.lru_cache(None)\ndef f(x): ..."),
    "kept output": ("cache", "class M:\n    def forward(self, x):\n        return self.y"),
    "shape key": ("workspace", "y = self.c[x.shape]"),
    "call counter": ("call-count", "def forward(self, x):\n    self.n += 1\n    if self.n > 3:\n        return 1"),
    "global counter": ("call-count", "def f(x):\n    global n\n    n = n + 1\n    if n > 3: return 1"),
    "half": ("cast", "y = x.half()"),
    "to bfloat16": ("cast", "import torch\ny = x.to(torch.bfloat16)"),
    "bfloat16 by getattr": ("cast", "import torch\ny = x.to(getattr(torch, 'bfloat' + '16'))"),
    "autocast": ("cast", "import torch\nwith torch.autocast('cuda'):\n    pass"),
    "tf32": ("global-flag", "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True"),
    "tf32 by alias": ("global-flag", "from torch.backends import cudnn as c\nc.allow_tf32 = True"),
    "precision": ("global-flag", "import torch\ntorch.set_float32_matmul_precision('high')"),
    "environment": ("global-flag", "import os\nos.environ['OMP_NUM_THREADS'] = '64'"),
    "threads setting": ("global-flag", "import torch\ntorch.set_num_threads(64)"),
    "open": ("file", "open('/proc/self/maps').read()"),
    "path": ("file", "p.read_text()"),
    "descriptor": ("file", "import os\nos.dup2(1, 3)"),
    "subprocess": ("process", "import subprocess as s\ns.run(['nvidia-smi'])"),
    "libc": ("native", "import ctypes\nl = ctypes.CDLL(None)"),
    "libc by name": ("native", "import ctypes\nl = ctypes.CDLL('libc.so.6')"),
    "symbol": ("native", "h.mprotect(p, 4096, 7)"),
    "python api": ("native", "from ctypes import pythonapi\npythonapi.Py_AddPendingCall(f)"),
    "graph": ("graph", "import torch\ng = torch.cuda.CUDAGraph()"),
    "subclass": ("lazy-tensor", "import torch\nclass L(torch.Tensor): ..."),
    "subclass by type": ("lazy-tensor", "import torch\nL = type('L', (torch.Tensor,), {})"),
    "subclass by alias": ("lazy-tensor", "from torch import Tensor as B\nclass L(B): ..."),
    "made subclass": ("lazy-tensor", "import torch\ntorch.Tensor._make_subclass(L, x)"),
    "get_inputs": ("redefines-task", "def get_inputs():\n    return []"),
    "get_inputs assigned": ("redefines-task", "get_inputs = lambda: []"),
    "input write": ("input-write", "class M:\n    def forward(self, x):\n        x.zero_()\n        return f(x)"),
    "input item write": ("input-write", "class M:\n    def forward(self, x):\n        x[0] = 1\n        return f(x)"),
    "reference": ("reference", "class ModelNew(Model): ..."),
    "exit": ("exit", "import os\nos._exit(0)"),
    "computed name": ("hidden-code", "import torch\ngetattr(torch, n)(a, b)"),
    "computed import": ("hidden-code", "__import__(n)"),
    "seed": ("seed", "import torch\ntorch.manual_seed(42)"),
    "C++ in a string": ("thread", "load_inline('m', cpp_sources='#include <thread>\\nvoid f() { std::thread t(g); }')"),
    "C++ by name": (
        "library",
        "s = '''void f(float* a) {\n  cublasSgemm(h, a);\n}'''\nload_inline('m', cpp_sources=[s])",
    ),
    "C++ glued": ("thread", "s = 'void f() { std::thr' + 'ead t(g); }  // ' + name\nload_inline('m', s)"),
    "C++ formatted": ("thread", "s = f'void f() {{ std::thread t(g); int n = {n}; }}'\nload_inline('m', s)"),
    "C++ docstring as source": ("thread", "'''void f() { std::thread t(g); }'''\nload_inline('m', __doc__)"),
    "C++ written to a file": ("thread", "p.write_text('void f() { std::thread t(g); }')"),
}

HONEST = {
    "comments": "# import threading; threading.Thread(); torch.matmul(a, b)\nx = 1",
    "docstring": '"""threading.Thread, torch.cuda.Stream(), try: except:, a @ b"""\nx = 1',
    "docstring with code": 'def f():\n    """void f() { std::thread t(g); }"""\n    return 1',
    "words in a string": "print('uses threading.Thread and torch.matmul, then a @ b')",
    "words in a message": "raise ValueError('cublasSgemm void f() { } is not used')",
    "finally": "try:\n    f()\nfinally:\n    g()",
    "translated exception": "try:\n    f()\nexcept KeyError as e:\n    raise ValueError('no key') from e",
    "own names": "class S:\n    thread = 1\n    stream = 2\ns = S()\ns.thread += 1",
    "a name like a module": "def f(time, os, threading):\n    return time + os + threading",
    "lock": "import threading\nlock = threading.Lock()",
    "decorator": "@staticmethod\ndef f(x): return x",
    "own attributes": "class M:\n    def __init__(self):\n        self.weight = 1\n        setattr(self, 'bias', 2)",
    "shape index": "n = x.shape[0]\ny = t[n - 1]\nz = t[x.shape[0] - 1]",
    "none check": "if x is None or self.x is None:\n    y = 1",
    "dtype": "import torch\ny = torch.empty(n, dtype=torch.float32).to(x.dtype)",
    "allocation": "import torch\ny = torch.empty_like(x)",
    "own kernel": "import ctypes\nlib = ctypes.CDLL('/tmp/build/mine.so')\nlib.run(x.data_ptr())",
    "load_inline": (
        "from torch.utils.cpp_extension import load_inline\n"
        "s = '''#include <torch/extension.h>\ntorch::Tensor f(torch::Tensor x) {\n"
        "  auto y = torch::empty_like(x);\n  const float* p = x.data_ptr<float>();\n  return y;\n}'''\n"
        "m = load_inline('m', cpp_sources=s, functions=['f'])"
    ),
    "triton": (
        "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i, mask=i < n), mask=i < n)"
    ),
    "forward": "class ModelNew:\n    def forward(self, x):\n        y = self.f(x)\n        y[0] = 1\n        return y",
    "own globals": "globals()['x'] = 1",
    "a field called half": "y = x * self.half",
    "rebound argument": "class M:\n    def forward(self, x):\n        x = x.clone()\n        x += 1\n        return x",
    "counter without a test": "class M:\n    def f(self):\n        self.n += 1",
}


@pytest.mark.parametrize("name", EVASIONS)
def test_an_evasion_is_seen(name: str) -> None:
    code, text = EVASIONS[name]
    assert code in {one.code for one in advise(text, "module")}


@pytest.mark.parametrize("name", HONEST)
def test_its_honest_twin_is_not(name: str) -> None:
    assert advise(HONEST[name], "module") == []


def test_every_code_but_the_cxx_ones_is_reached() -> None:
    assert {code for code, _ in EVASIONS.values()} >= set(BY_CODE) - {"l2", "unparsable"}


def test_lines_are_those_of_the_file() -> None:
    text = "import torch\n\ns = '''\nvoid f() {\n  std::thread t(g);\n}\n'''\ny = a @ b\n"
    assert [(one.code, one.line) for one in advise(text, "module")] == [("thread", 5), ("library", 8)]


@pytest.mark.parametrize("text", ["def f(:", "x = (" * 300, "\0", "if 1:\n", "  x = 1", "é = '\ud800'"])
def test_what_does_not_parse_is_said(text: str) -> None:
    assert [one.code for one in advise(text, "module")] == ["unparsable"]


def test_nesting_beyond_all_measure_is_said_or_read() -> None:
    for text in ("x = " + "a+" * 20000 + "a", "x = " + "-" * 5000 + "1", "a" + ".b" * 20000, "f(" * 90 + ")" * 90):
        advise(text, "module")


def test_doubling_strings_cost_nothing() -> None:
    lines = ["a0 = 'void f() { }' * 1", "a0 = 'void f() { std::thread t; }'"]
    lines += [f"a{i + 1} = a{i} + a{i}" for i in range(64)]
    assert "thread" in {one.code for one in advise("\n".join(lines), "module")}


def test_a_file_too_long_is_not_read() -> None:
    (only,) = advise("x = 1\n" * 100_000, "module")
    assert only.code == "unparsable"


@given(st.text(max_size=200), st.sampled_from(["module", "kernel", "ranks"]))
@settings(max_examples=150, deadline=None)
def test_it_never_raises(text: str, kind: str) -> None:
    advise(text, kind)


_WORDS = ["import", "threading", "as", "t", "\n", "getattr", "(", ")", "'Thread'", ".", "=", "[", "]", ",", "x", "self"]
_WORDS += [
    "def f",
    ":",
    "lambda",
    "try",
    "except",
    "'''",
    "'",
    "f'{",
    "}'",
    "+",
    "void f() {",
    "}",
    "#define",
    "\\\n",
    "<",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join), st.sampled_from(["module", "kernel"]))
@settings(max_examples=200, deadline=None)
def test_it_never_raises_on_what_looks_like_code(text: str, kind: str) -> None:
    advise(text, kind)


@given(
    st.sampled_from(sorted(EVASIONS)), st.text(st.characters(codec="utf-8", exclude_characters="\r\n\f\0"), max_size=60)
)
@settings(max_examples=100, deadline=None)
def test_comments_change_nothing(name: str, words: str) -> None:
    _, text = EVASIONS[name]
    assert {o.code for o in advise(f"{text}\n# {words}", "module")} == {o.code for o in advise(text, "module")}


def test_compiled_code_is_told_from_none() -> None:
    assert carries_compiled_code(HONEST["load_inline"], "module") == "torch.utils.cpp_extension.load_inline"
    assert carries_compiled_code(HONEST["triton"], "module") == "triton.jit"
    assert carries_compiled_code("import torch\ny = torch.matmul(a, b)", "module") == ""
    assert carries_compiled_code("# load_inline('m', cpp_sources='')", "module") == ""
    assert carries_compiled_code("void f() {}", "kernel") == "kernel"


def test_badges_are_one_a_code() -> None:
    text = "import torch\ny = torch.matmul(a, b)\nz = a @ b\nt = x.half()\n"
    badges = as_findings("c1", advise(text, "module"))
    assert [(b.code, b.severity, b.evidence["kind"], b.evidence["line"]) for b in badges] == [
        ("advice", "label", "library", 2),
        ("advice", "label", "cast", 4),
    ]
    assert badges[0].text == "calls a library: torch.matmul (line 2, and 1 more)"
    assert badges[0].evidence["rows"] == "18"
