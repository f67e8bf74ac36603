"""Texts that answers are made of: a whole kernel, a whole module, and answers around them."""

KERNEL = """\
// flags: -O3
#include <cmath>
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  const float* x = (const float*)in[0];
  float* y = (float*)out[0];
  for (long i = 0; i < dim[0] * dim[1]; ++i) {
    y[i] = x[i] * 2.0f;  // doubles } "quoted"
  }
}
"""

MODULE = """\
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2
"""


def answer(code: str, language: str = "cpp", design: str = "One pass.") -> str:
    return (
        f"## Performance analysis\nMemory bound.\n\n## Algorithm design\n{design}\n\n"
        f"## Code\n```{language}\n{code}```\nGood luck!\n"
    )
