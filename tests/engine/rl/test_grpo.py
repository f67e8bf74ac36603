import math

import pytest
import torch

from workbench_engine.rl.grpo import LossSettings, clipped_surrogate, entropy, grpo_loss, k3


def test_surrogate_by_hand() -> None:
    old = torch.log(torch.tensor([0.5, 0.5, 0.5, 0.5]))
    now = torch.log(torch.tensor([0.75, 0.75, 0.25, 0.25]))
    advantage = torch.tensor([2.0, -2.0, 2.0, -2.0])
    # ratios 1.5, 1.5, .5, .5; clipped to [.8, 1.28]
    loss, ratio = clipped_surrogate(now, old, advantage, 0.2, 0.28)
    assert ratio.tolist() == pytest.approx([1.5, 1.5, 0.5, 0.5])
    assert loss.tolist() == pytest.approx([-2.56, 3.0, -1.0, 1.6])


def test_a_clipped_sample_has_no_gradient() -> None:
    now = torch.log(torch.tensor([0.9, 0.5])).requires_grad_(True)
    old = torch.log(torch.tensor([0.5, 0.5]))
    loss, _ = clipped_surrogate(now, old, torch.tensor([1.0, 1.0]), 0.2, 0.2)
    (gradient,) = torch.autograd.grad(loss.sum(), now)
    # unclipped at ratio 1: d(-rho A)/d logp = -rho A = -1
    assert gradient.tolist() == pytest.approx([0.0, -1.0])


def test_k3_by_hand_and_never_negative() -> None:
    now, ref = torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)])
    assert k3(now, ref).item() == pytest.approx(0.5 + math.log(2) - 1)
    assert k3(now, now).item() == 0.0
    assert bool((k3(torch.linspace(-9, 0, 50), torch.linspace(0, -9, 50)) >= 0).all())


def test_entropy_in_nats_with_impossible_values() -> None:
    log_p = torch.log(torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))
    assert entropy(log_p).tolist() == pytest.approx([math.log(2), 0.0])
    logits = torch.tensor([[0.3, 0.1, float("-inf")]], requires_grad=True)
    (gradient,) = torch.autograd.grad(entropy(torch.log_softmax(logits, -1)).sum(), logits)
    assert bool(torch.isfinite(gradient[0, :2]).all())


def test_whole_loss_by_hand() -> None:
    old = torch.log(torch.tensor([0.5, 0.4]))
    now = torch.log(torch.tensor([0.5, 0.2]))
    ref = torch.log(torch.tensor([0.25, 0.2]))
    spread = torch.tensor([1.0, 0.5])
    settings = LossSettings(clip_low=0.2, clip_high=0.2, kl_weight=0.1, entropy_weight=0.01)
    terms = grpo_loss(now, old, torch.tensor([1.0, -1.0]), settings, ref, spread, weight=torch.tensor([3.0, 1.0]))
    # sample 1: ratio 1 -> -1; sample 2: ratio .5, A -1: min(-.5, -.8) = -.8 -> +.8
    surrogate = (3 * -1.0 + 1 * 0.8) / 4
    kl = (3 * (0.5 + math.log(2) - 1) + 0.0) / 4
    assert terms.surrogate.item() == pytest.approx(surrogate)
    assert terms.kl.item() == pytest.approx(kl, rel=1e-5)
    assert terms.entropy.item() == pytest.approx(3.5 / 4)
    assert terms.loss.item() == pytest.approx(surrogate + 0.1 * kl - 0.01 * 3.5 / 4, rel=1e-5)
    assert terms.clipped == 0.5


def test_absurd_ratios_stay_finite() -> None:
    now = torch.tensor([0.0, -500.0], requires_grad=True)
    terms = grpo_loss(now, torch.tensor([-500.0, 0.0]), torch.tensor([-1.0, 1.0]), LossSettings(kl_weight=0.1), now * 2)
    (gradient,) = torch.autograd.grad(terms.loss, now)
    assert bool(torch.isfinite(gradient).all()) and math.isfinite(terms.loss.item())
