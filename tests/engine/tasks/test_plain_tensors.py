"""Tensors that a model keeps as plain attributes follow it into float64."""

from __future__ import annotations

import torch

from workbench_engine.tasks.loading import LoadedTask

TASK = """
import torch, torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lstm = nn.LSTM(width, 8, batch_first=True)
        self.h0, self.c0 = torch.randn(1, 4, 8), torch.randn(1, 4, 8)

    def forward(self, x):
        return self.lstm(x, (self.h0, self.c0))[0]

def get_inputs():
    return [torch.randn(4, 5, 6)]

def get_init_inputs():
    return [6]
"""


def test_an_lstm_with_kept_states_has_an_answer_in_float64() -> None:
    task = LoadedTask(TASK, "lstm.py")
    inputs = task.inputs_for("default")
    wide = task.run_fp64("default", inputs)[0]
    assert wide.dtype == torch.float64
    assert torch.allclose(wide.float(), task.run("default", inputs)[0], atol=1e-5)
    assert task.model_for("default").h0.dtype == torch.float32
