from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.referee.advice.coverage import (
    Profile,
    Timed,
    as_findings,
    coverage,
    is_library,
    is_own,
    read_profile,
)
from workbench_engine.referee.workers import profiling


def labels(profile: Profile, carries: str = "") -> list[str]:
    return [label.code for label in coverage(profile, carries).labels]


def test_time_in_library_compute_is_a_library_call() -> None:
    found = coverage(
        Profile(1.0, (Timed("aten::mm", 0.5, 3), Timed("aten::add", 0.1, 3), Timed("aten::empty", 0.3, 9))), ""
    )
    assert found.library == pytest.approx(0.6)
    assert [label.code for label in found.labels] == ["library"]
    assert "60%" in found.labels[0].text
    assert "aten::mm 83%" in found.labels[0].text


def test_below_half_it_is_none() -> None:
    assert labels(Profile(1.0, (Timed("aten::mm", 0.49, 3),))) == []


def test_allocations_and_views_are_no_library() -> None:
    assert labels(Profile(1.0, (Timed("aten::empty", 0.9, 3), Timed("aten::as_strided", 0.05, 3)))) == []


def test_a_copy_is_work() -> None:
    assert labels(Profile(1.0, (Timed("aten::copy_", 0.9, 3),))) == ["library"]


def test_carried_code_that_ran_is_no_label() -> None:
    profile = Profile(1.0, (Timed("aten::empty", 0.1, 3),), (Timed("mine.run", 0.8, 3),))
    assert labels(profile, "torch.utils.cpp_extension.load_inline") == []
    assert coverage(profile, "").own == pytest.approx(0.8)


def test_carried_code_that_never_ran_is_said() -> None:
    profile = Profile(1.0, (Timed("aten::mm", 0.9, 3),))
    assert labels(profile, "torch.utils.cpp_extension.load_inline") == ["library", "no-custom-kernel"]
    assert labels(Profile(1.0), "torch.utils.cpp_extension.load_inline") == ["no-custom-kernel"]
    assert labels(profile) == ["library"]


def test_a_decoy_is_told_from_a_kernel() -> None:
    decoy = Profile(1.0, (Timed("aten::mm", 0.95, 3),), (Timed("mine.nothing", 0.001, 3),))
    helper = Profile(1.0, (Timed("aten::mm", 0.6, 3),), (Timed("mine.rest", 0.3, 3),))
    assert labels(decoy, "torch.utils.cpp_extension.load_inline") == ["library", "no-custom-kernel"]
    assert labels(helper, "torch.utils.cpp_extension.load_inline") == ["library"]


def test_what_ctypes_calls_cannot_be_seen_and_is_not_denied() -> None:
    assert labels(Profile(1.0, (Timed("aten::empty", 0.1, 3),)), "ctypes.CDLL") == []
    assert labels(Profile(1.0, (Timed("aten::mm", 0.999, 3),)), "ctypes.CDLL") == ["library", "no-custom-kernel"]


def test_registered_operators_are_own() -> None:
    profile = Profile(1.0, (Timed("mine::softmax", 0.9, 3),))
    assert coverage(profile, "").own == pytest.approx(0.9)
    assert labels(profile, "torch.ops.load_library") == []


def test_names() -> None:
    assert is_library("aten::addmm") and is_library("mkldnn::_convolution_pointwise")
    assert is_library("Torch-Compiled Region: 0/0")
    assert not is_library("aten::view") and not is_library("mine::addmm") and not is_library("cudaLaunchKernel")
    assert is_own("mine::f") and not is_own("aten::mm") and not is_own("f") and not is_own("prim::x")


times = st.floats(0, 10, allow_nan=False)
names = st.sampled_from(["aten::mm", "aten::empty", "mine::f", "cudaLaunch", "aten::copy_"])
functions = st.lists(st.builds(Timed, names, times, st.integers(0, 9)), max_size=8).map(tuple)


@given(st.builds(Profile, times, functions, functions), st.sampled_from(["", "ctypes.CDLL", "load_inline"]))
def test_shares_are_shares(profile: Profile, carries: str) -> None:
    found = coverage(profile, carries)
    assert 0.0 <= found.library <= 1.0 + 1e-9 and 0.0 <= found.own <= 1.0 + 1e-9 and 0.0 <= found.rest <= 1.0
    assert found.library + found.own + found.rest <= 1.0 + 1e-9
    assert all(f.severity == "label" and f.candidate == "c1" for f in as_findings("c1", found))


def test_a_worker_that_says_nonsense_is_refused() -> None:
    with pytest.raises(ValueError):
        read_profile(b'{"wall_s": "soon"}')


def test_torch_calls_are_seen_as_library() -> None:
    import torch

    x = torch.randn(256, 256)
    said: dict[str, Any] = profiling.profile(lambda: x @ x, 3)
    profile = read_profile(json.dumps(said))
    assert {"aten::mm"} <= {op.name for op in profile.ops if op.calls == 3}
    assert profile.own == ()
    assert "library" in labels(profile)


EXTENSION = r"""
#include <Python.h>
static PyObject* spin(PyObject* self, PyObject* n) {
  volatile double s = 0;
  for (long i = 0; i < PyLong_AsLong(n); ++i) s += i;
  Py_RETURN_NONE;
}
static PyMethodDef methods[] = {{"spin", spin, METH_O, ""}, {0, 0, 0, 0}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "my_kernel", 0, -1, methods, 0, 0, 0, 0};
extern "C" PyObject* PyInit_my_kernel() { return PyModule_Create(&module); }
"""


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    include, compiler = Path(sysconfig.get_paths()["include"]), shutil.which("g++")
    if compiler is None or not (include / "Python.h").exists():
        pytest.skip("no g++ or no Python.h")
    folder = tmp_path_factory.mktemp("extension")
    source, built = folder / "my_kernel.cpp", folder / "my_kernel.so"
    source.write_text(EXTENSION)
    subprocess.run([compiler, "-shared", "-fPIC", f"-I{include}", source, "-o", built], check=True)
    spec = importlib.util.spec_from_file_location("my_kernel", built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compiled_functions_of_its_own_are_seen(extension: ModuleType) -> None:
    import torch

    x = torch.ones(4)
    rows = profiling.own_functions(lambda: (extension.spin(200_000), x + 1, sum([1, 2])), 3)
    assert [(name, calls) for name, _, calls in rows] == [("my_kernel.spin", 3)]
    assert rows[0][1] > 0.0


def test_the_profile_hook_of_the_caller_is_restored() -> None:
    before = sys.getprofile()
    with pytest.raises(ZeroDivisionError):
        profiling.own_functions(lambda: 1 / 0, 1)
    assert sys.getprofile() is before
