"""The pieces of the GRPO objective on log-probabilities, as pure functions of tensors.

Sources: GRPO 2402.03300 (clipped surrogate, k3 estimate of the KL); DAPO 2503.14476 (a wider upper clip).
All tensors are float, shape [B] (one entry a sample) unless said.
"""

from __future__ import annotations

import torch
from msgspec import Struct
from torch import Tensor


class LossSettings(Struct, frozen=True):
    """Weights of the objective; `loss = surrogate + kl_weight * k3 - entropy_weight * entropy`."""

    clip_low: float = 0.2
    clip_high: float = 0.28
    kl_weight: float = 0.0
    entropy_weight: float = 0.0


class LossTerms(Struct, frozen=True):
    """The loss to minimise and what it is made of (scalars; `clipped` is the share of samples whose ratio was cut)."""

    loss: Tensor
    surrogate: Tensor
    kl: Tensor
    entropy: Tensor
    clipped: float


def clipped_surrogate(
    logp: Tensor, logp_old: Tensor, advantage: Tensor, clip_low: float, clip_high: float
) -> tuple[Tensor, Tensor]:
    """`-min(rho A, clip(rho, 1 - low, 1 + high) A)` per sample, and the ratio `rho = exp(logp - logp_old)`."""
    # A ratio beyond e^20 is cut long before; the bound keeps inf * 0 from making a NaN gradient.
    ratio = torch.exp(torch.clamp(logp - logp_old, -20.0, 20.0))
    cut = torch.clamp(ratio, 1.0 - clip_low, 1.0 + clip_high)
    return -torch.minimum(ratio * advantage, cut * advantage), ratio


def k3(logp: Tensor, logp_ref: Tensor) -> Tensor:
    """Schulman's estimate of KL(pi || pi_ref) from samples of pi: `e^d - d - 1`, `d = ln pi_ref - ln pi`; >= 0."""
    delta = torch.clamp(logp_ref - logp, -20.0, 20.0)
    return torch.exp(delta) - delta - 1.0


def entropy(log_probabilities: Tensor) -> Tensor:
    """Entropy in nats over the last dimension; entries of -inf count as probability zero."""
    p = torch.exp(log_probabilities)
    return -(p * torch.where(p > 0.0, log_probabilities, torch.zeros_like(p))).sum(-1)


def grpo_loss(
    logp: Tensor,
    logp_old: Tensor,
    advantage: Tensor,
    settings: LossSettings,
    logp_ref: Tensor | None = None,
    entropy_now: Tensor | None = None,
    weight: Tensor | None = None,
) -> LossTerms:
    """The whole loss, a weighted mean over samples. `weight` [B] >= 0 (default 1) discounts replayed samples."""
    w = torch.ones_like(logp) if weight is None else weight
    total = w.sum().clamp_min(1e-12)
    per_sample, ratio = clipped_surrogate(logp, logp_old, advantage, settings.clip_low, settings.clip_high)
    surrogate = (w * per_sample).sum() / total
    zero = torch.zeros((), dtype=logp.dtype)
    kl = zero if logp_ref is None else (w * k3(logp, logp_ref)).sum() / total
    spread = zero if entropy_now is None else (w * entropy_now).sum() / total
    outside = (ratio < 1.0 - settings.clip_low) | (ratio > 1.0 + settings.clip_high)
    return LossTerms(
        loss=surrogate + settings.kl_weight * kl - settings.entropy_weight * spread,
        surrogate=surrogate,
        kl=kl,
        entropy=spread,
        clipped=float(outside.float().mean()) if outside.numel() else 0.0,
    )
