"""Adam with a learning rate for each parameter and a state that is plain arrays (Kingma and Ba, 1412.6980)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Adam:
    """Updates named parameters in place. `step_count`, `mean` and `square` are the whole state."""

    def __init__(
        self, parameters: Mapping[str, Tensor], rates: Mapping[str, float], betas: tuple[float, float] = (0.9, 0.99)
    ) -> None:
        self._parameters = parameters
        self._rates = {name: rates[name] for name in parameters}
        self._betas = betas
        self.step_count = 0
        self.mean = {name: torch.zeros_like(p, requires_grad=False) for name, p in parameters.items()}
        self.square = {name: torch.zeros_like(p, requires_grad=False) for name, p in parameters.items()}

    def step(self, gradients: Mapping[str, Tensor], clip_norm: float) -> float | None:
        """One step; the norm over all gradients before clipping. None, and no step, when it is not finite."""
        norm = float(torch.sqrt(sum((g.square().sum() for g in gradients.values()), torch.zeros(()))))
        if not norm < float("inf"):
            return None
        shrink = min(1.0, clip_norm / (norm + 1e-12))
        self.step_count += 1
        first, second = self._betas
        with torch.no_grad():
            for name, parameter in self._parameters.items():
                g = gradients[name] * shrink
                self.mean[name].mul_(first).add_(g, alpha=1.0 - first)
                self.square[name].mul_(second).addcmul_(g, g, value=1.0 - second)
                m = self.mean[name] / (1.0 - first**self.step_count)
                v = self.square[name] / (1.0 - second**self.step_count)
                parameter.sub_(self._rates[name] * m / (v.sqrt() + 1e-8))
            return norm
