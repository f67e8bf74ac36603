"""Mean cross-entropy of rows of logits against class indices."""

import torch
from torch import nn
from torch.nn import functional

CASES = {"cpu": {"rows": 512, "classes": 3000}, "gpu": {"rows": 8192, "classes": 32000}}
HIDDEN = [
    {"rows": 7, "classes": 131},
    {"rows": 1, "classes": 4099},
    {"rows": 13, "classes": 1000},
    {"rows": 61, "classes": 17},
]
INPUTS = {"target": {"domain": "index", "high": "classes"}}
ACCUMULATE = "classes"


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(logits, target)


def get_inputs(rows: int = 512, classes: int = 3000) -> list[torch.Tensor]:
    return [torch.randn(rows, classes), torch.randint(0, classes, (rows,))]


def get_init_inputs() -> list[object]:
    return []


def cost(rows: int, classes: int) -> dict[str, int]:
    return {"bytes": 4 * rows * classes + 8 * rows + 4, "flops": 4 * rows * classes}
