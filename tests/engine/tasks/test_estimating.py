"""The cost of a task without its data: sizes, what forward holds, products."""

from __future__ import annotations

import pytest

from workbench_engine.tasks.contract import TaskRejected
from workbench_engine.tasks.estimating import estimate

LINEAR = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = torch.nn.Linear(n, n, bias=False)
    def forward(self, x):
        y = self.linear(x)
        y = torch.relu(y)
        return y + 1
N, B = 256, 16
def get_inputs():
    return [torch.rand(B, N)]
def get_init_inputs():
    return [N]
"""


def test_sizes_and_products_are_exact() -> None:
    found = estimate(LINEAR, "linear.py")
    row = 16 * 256 * 4
    assert (found.inputs, found.state, found.outputs) == (row, 256 * 256 * 4, row)
    assert found.flops == 2 * 16 * 256 * 256
    # At most two of the three results live at once: each is dropped when the next is there.
    assert found.peak == 2 * row
    # Input, weight, and each operator's reading and writing.
    assert found.traffic == (row + 256 * 256 * 4 + row) + 2 * row + 2 * row
    assert found.complete


def test_a_task_of_a_terabyte_costs_nothing_to_ask() -> None:
    large = LINEAR.replace("N, B = 256, 16", "N, B = 256, 1 << 30")
    found = estimate(large, "large.py")
    assert found.inputs == 1 << 40
    assert found.lint_bytes > 1 << 42


def test_what_needs_data_is_told_as_far_as_it_goes() -> None:
    needs = LINEAR.replace("y = torch.relu(y)", "y = y * y.sum().item()")
    found = estimate(needs, "needs.py")
    assert not found.complete
    assert "Model.forward raised" in found.note
    assert "needs.py" not in found.note
    assert found.state == 256 * 256 * 4
    assert found.inputs == 16 * 256 * 4


def test_a_file_that_breaks_the_contract_is_refused() -> None:
    with pytest.raises(TaskRejected, match="lacks class Model"):
        estimate("import torch\n", "empty.py")
