"""The network of the design-space policy: logits over the values of every dimension, given two exemplars.

    logits = base + copy·[fast's value] + near·[its neighbours] - contrast·[slow's value, where the two differ]
             + trust·effects + mlp(embeddings of both exemplars, their scores)

The policy is a product of categorical distributions, each mixed with a little of the uniform one, so probabilities
are exact and bounded away from zero: that is the entropy floor.
Shapes: D dimensions, V the most values of one, B samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from msgspec import Struct
from torch import Tensor

from workbench_engine.tasks.design import Dimension


class NetworkSettings(Struct, frozen=True):
    """Sizes and starting values. `floor_changes` is how many dimensions a sample redraws uniformly, on average."""

    hidden: int = 32
    embedding: int = 4
    copy: float = 1.5
    near: float = 0.3
    contrast: float = 0.3
    trust: float = 1.0
    floor_changes: float = 0.5
    floor_most: float = 0.25


class Conditions(Struct, frozen=True):
    """What a batch of samples was conditioned on. A missing exemplar is index -1 everywhere.

    `fast`, `slow`: long [B, D]; `scores`: float [B, 2] (ln speedup of slow, fast; 0 when missing);
    `effects`: float [B, D, V].
    """

    fast: Tensor
    slow: Tensor
    scores: Tensor
    effects: Tensor


class Network:
    """Parameters by name and the function from conditions to log-probabilities. Starts uniform without exemplars."""

    def __init__(self, dimensions: Sequence[Dimension], settings: NetworkSettings, seed: int) -> None:
        sizes = torch.tensor([len(d.values) for d in dimensions])
        d, v = len(dimensions), int(sizes.max())
        generator = torch.Generator().manual_seed(seed)
        self.dimensions, self.width, self.settings = d, v, settings
        self.sizes = sizes
        self.valid = torch.arange(v)[None, :] < sizes[:, None]
        self.ordered = torch.tensor([dim.ordered for dim in dimensions])
        self.floor = min(settings.floor_most, settings.floor_changes / d)
        inputs = 2 * d * settings.embedding + 4
        self.parameters: dict[str, Tensor] = {
            "base": torch.zeros(d, v),
            "copy": torch.full((d,), settings.copy),
            "near": torch.full((d,), settings.near),
            "contrast": torch.full((d,), settings.contrast),
            "trust": torch.full((d,), settings.trust),
            # Index v of the last but one axis stands for "no exemplar".
            "embedding": 0.3 * torch.randn(2, d, v + 1, settings.embedding, generator=generator),
            "hidden": torch.randn(inputs, settings.hidden, generator=generator) / inputs**0.5,
            "hidden_bias": torch.zeros(settings.hidden),
            # Zero, so that training starts from the sum of the simple heads.
            "output": torch.zeros(settings.hidden, d * v),
        }
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)

    def log_probabilities(self, c: Conditions, parameters: dict[str, Tensor] | None = None) -> Tensor:
        """Log-probability of every value, [B, D, V]; -inf where a dimension has fewer values."""
        p = self.parameters if parameters is None else parameters
        batch = c.fast.shape[0]
        columns = torch.arange(self.width)
        is_fast = (columns == c.fast[..., None]).float()
        is_slow = (columns == c.slow[..., None]).float()
        beside = ((columns - c.fast[..., None]).abs() == 1).float()
        beside = beside * (self.ordered[:, None] & (c.fast[..., None] >= 0)).float()
        differ = ((c.fast != c.slow) & (c.fast >= 0)).float()[..., None]
        logits = (
            p["base"]
            + p["copy"][:, None] * is_fast
            + p["near"][:, None] * beside
            - p["contrast"][:, None] * is_slow * differ
            + p["trust"][:, None] * c.effects
            + self._mlp(p, c).reshape(batch, self.dimensions, self.width)
        )
        # Saturated logits would only starve the gradient; the floor below already bounds the probabilities.
        logits = torch.clamp(logits, -12.0, 12.0).masked_fill(~self.valid, float("-inf"))
        mixed = (1.0 - self.floor) * torch.softmax(logits, -1) + self.floor / self.sizes[:, None]
        return torch.log(torch.where(self.valid, mixed, torch.ones_like(mixed))).masked_fill(~self.valid, float("-inf"))

    def _mlp(self, p: dict[str, Tensor], c: Conditions) -> Tensor:
        rows = torch.arange(self.dimensions)
        known = []
        for which, indices in enumerate((c.slow, c.fast)):
            slots = torch.where(indices >= 0, indices, torch.full_like(indices, self.width))
            known.append(p["embedding"][which][rows, slots].flatten(1))
        present = torch.stack([(c.slow[:, 0] >= 0).float(), (c.fast[:, 0] >= 0).float()], 1)
        x = torch.cat([*known, torch.clamp(c.scores, -5.0, 5.0), present], 1)
        return torch.tanh(x @ p["hidden"] + p["hidden_bias"]) @ p["output"]


def chosen(log_probabilities: Tensor, indices: Tensor) -> Tensor:
    """Log-probability of whole points, [B]; `indices` long [B, D]."""
    return log_probabilities.gather(2, indices[..., None]).squeeze(2).sum(1)
