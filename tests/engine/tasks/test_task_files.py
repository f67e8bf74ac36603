"""Task files as people write them: good plain KernelBench ones are described, bad ones get one clear line."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench_engine.tasks.contract import TaskRejected
from workbench_engine.tasks.describe import describe
from workbench_engine.tasks.loading import LoadedTask

HEAD = "import torch\nfrom torch import nn\n"
ENDS = """
def get_inputs():
    return [torch.randn(8, 16)]
def get_init_inputs():
    return []
"""


def model(body: str, parameters: str = "x") -> str:
    return f"class Model(nn.Module):\n    def forward(self, {parameters}):\n        {body}\n"


def task(body: str, parameters: str = "x", ends: str = ENDS) -> str:
    return HEAD + model(body, parameters) + ends


TWO_INPUTS = ENDS.replace("[torch.randn(8, 16)]", "[torch.randn(8, 16), torch.randn(8, 16)]")

BAD = {
    "no model": (HEAD + ENDS, "lacks class Model(nn.Module)"),
    "no inputs": (HEAD + model("return x"), "lacks get_inputs() and get_init_inputs()"),
    "model is no module": (HEAD + "class Model: pass\n" + ENDS, "not a subclass of torch.nn.Module"),
    "syntax": (HEAD + "def broken(:\n", "line 3: not valid Python"),
    "import fails": ("import not_there_at_all\n", "importing it raised ModuleNotFoundError"),
    "exits": ("raise SystemExit(3)\n", "importing it raised SystemExit: 3 (line 1)"),
    "constant": (task("return torch.arange(8.0) + 0 * x.sum()"), "does not depend on the inputs"),
    "ignored input": (task("return x * 2", "x, extra", TWO_INPUTS), "input 'extra' does not matter"),
    "nan": (task("return torch.sqrt(x)"), "not finite"),
    "no spread": (task("return torch.softmax(x, 1).sum(1) * 0 + 5 + x.sum(1) * 1e-5"), "no spread"),
    "random": (task("return x + int.from_bytes(__import__('os').urandom(2), 'big')"), "differs between two runs"),
    "not a tensor": (task("return {'y': x}"), "forward returned dict"),
    "forward raises": (task("return x @ x"), "Model.forward raised RuntimeError"),
    "inputs not a list": (task("return x", ends=ENDS.replace("[torch.randn(8, 16)]", "3")), "get_inputs returned int"),
    "no tensor input": (task("return x", ends=ENDS.replace("[torch.randn(8, 16)]", "[3]")), "returned no tensor"),
    "dims disagree": (task("return x") + "CASES = {'cpu': {'n': 4}}\nHIDDEN = [{'m': 4}]\n", "they must agree"),
    "domain": (task("return x") + "INPUTS = {'x': {'domain': 'nice'}}\n", "unknown domain 'nice'"),
    "unknown input": (task("return x") + "INPUTS = {'y': {}}\n", "INPUTS names 'y', but forward takes x"),
    "unknown dim": (task("return x") + "ACCUMULATE = 'depth'\n", "'depth', which is no dim"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_file_gets_one_line_with_the_reason(case: str) -> None:
    source, reason = BAD[case]
    with pytest.raises(TaskRejected) as caught:
        describe(source, "some/task.py")
    line = str(caught.value)
    assert line.startswith("some/task.py: ")
    assert reason in line
    assert "\n" not in line


def test_error_names_the_line_of_the_task_file() -> None:
    with pytest.raises(TaskRejected, match=r"Model\.forward raised ZeroDivisionError: .* \(line 5\)"):
        describe(task("return x / (1 // 0)"), "t.py")


def test_plain_kernelbench_file_is_described() -> None:
    source = (
        '"""A linear layer."""\n' + HEAD + "N = 24\n"
        "class Model(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.linear = nn.Linear(n, 3)\n"
        "    def forward(self, x):\n"
        "        return self.linear(x), x.sum(1)\n"
        "def get_inputs():\n    return [torch.randn(8, N)]\n"
        "def get_init_inputs():\n    return [N]\n"
    )
    described = describe(source, "level1/3_Linear.py")
    assert (described.name, described.title, described.dtype) == ("3_Linear", "A linear layer", "float32")
    (case,) = described.cases.values()
    assert (case.name, case.dims, case.bytes_moved, case.accumulate) == ("default", {}, None, 24)
    assert [(t.name, t.shape) for t in case.of("input")] == [("x", (8, 24))]
    assert [(t.name, t.shape) for t in case.of("state")] == [("linear.weight", (3, 24)), ("linear.bias", (3,))]
    assert [(t.name, t.shape) for t in case.of("output")] == [("output0", (8, 3)), ("output1", (8,))]


def test_seeded_randomness_is_accepted_and_marked() -> None:
    source = task("return x + torch.rand(8, 16)")
    loaded = LoadedTask(source, "t.py")
    assert loaded.task.stochastic
    x = loaded.inputs_for("default")
    assert torch.equal(loaded.run("default", x)[0], loaded.run("default", x)[0])


def test_index_inputs_and_numbers_beside_tensors() -> None:
    ends = """
INPUTS = {"rows": {"domain": "index", "high": "n"}}
CASES = {"cpu": {"n": 32}, "gpu": {"n": 4096}}
def get_inputs(n=32):
    return [torch.randn(n, 4), torch.randint(0, n, (6,)), 2.5]
def get_init_inputs():
    return []
"""
    loaded = LoadedTask(task("return x[rows] * factor", "x, rows, factor", ends), "t.py")
    rows = loaded.task.cases["gpu"].of("input")[1]
    assert (rows.domain, rows.high, rows.dtype) == ("index", 4096, "int64")
    x, index = torch.randn(32, 4), torch.tensor([0, 5, 31, 2, 2, 7])
    assert torch.equal(loaded.run("cpu", [x, index])[0], x[index] * 2.5)


STATEFUL = (
    HEAD + "CASES = {'cpu': {'n': 4}, 'gpu': {'n': 64}}\nHIDDEN = [{'n': 7}]\n"
    "class Model(nn.Module):\n"
    "    def __init__(self, n):\n"
    "        super().__init__()\n"
    "        self.w = nn.Parameter(torch.ones(n))\n"
    "    def forward(self, x):\n"
    "        return x * self.w\n"
    "def get_inputs(n=4):\n    return [torch.randn(5, n)]\n"
    "def get_init_inputs(n=4):\n    return [n]\n"
)


def test_state_is_set_per_case_and_reaches_fp64() -> None:
    loaded = LoadedTask(STATEFUL, "t.py")
    assert loaded.case_names() == ["cpu", "gpu", "hidden-0"]
    assert [tuple(s.shape) for s in loaded.state_arrays("hidden-0")] == [(7,)]
    x = torch.randn(5, 4)
    before = loaded.run_fp64("cpu", [x])[0]
    loaded.set_state("cpu", [np.arange(4, dtype=np.float32)])
    assert torch.equal(loaded.run("cpu", [x])[0], x * torch.arange(4.0))
    after = loaded.run_fp64("cpu", [x])[0]
    assert after.dtype == torch.float64
    assert not torch.equal(before, after)
    assert torch.equal(loaded.state_arrays(0)[0], torch.ones(7))
    with pytest.raises(ValueError, match="2 state arrays given, the model has 1"):
        loaded.set_state("cpu", [torch.ones(4), torch.ones(4)])
    with pytest.raises(ValueError, match="shape"):
        loaded.set_state("cpu", [torch.ones(5)])
    with pytest.raises(KeyError, match="known: cpu, gpu, hidden-0"):
        loaded.case("tpu")
