"""Policies by name. torch is imported only when a policy needs it."""

from __future__ import annotations

import difflib

from workbench_engine.policies.contract import Policy
from workbench_engine.tasks.design import DesignSpace

POLICY_NAMES: tuple[str, ...] = ("design-space", "best-of-n", "random")
"""Those that sample a design space: they need nothing from outside."""

MODEL_POLICIES: tuple[str, ...] = ("llm", "vllm", "llm-points", "manual")
"""Those that ask: a language model, one that we serve too, one that chooses design points, or a person."""


def make_policy(name: str, space: DesignSpace | None, seed: int) -> Policy:
    """A fresh policy. Raises ValueError for an unknown name (with the nearest) or when it lacks the space it needs."""
    known = (*POLICY_NAMES, *MODEL_POLICIES)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise ValueError(f"policy {name!r} is unknown; {hint}")
    if name in MODEL_POLICIES:
        if name == "manual":
            from workbench_engine.policies.llm.manual import manual_policy

            return manual_policy()
        from workbench_engine.policies.answering import AnsweringPolicy, served
        from workbench_engine.policies.llm.policy import configured

        if name == "llm-points" and space is not None:
            from workbench_engine.policies.llm_points import PointsPolicy

            return PointsPolicy(space)
        if name != "llm-points":
            return AnsweringPolicy(name, space, served if name == "vllm" else configured)
    if space is None:
        raise ValueError(
            f"policy {name!r} samples a design space and this task has none; choose a bundled task that has one"
        )
    if name == "random":
        from workbench_engine.policies.baselines import RandomPolicy

        return RandomPolicy(space, seed)
    from workbench_engine.policies.design_space import BestOfNPolicy, DesignSpacePolicy

    return BestOfNPolicy(space, seed) if name == "best-of-n" else DesignSpacePolicy(space, seed)
