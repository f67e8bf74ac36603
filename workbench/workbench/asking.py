"""A run whose policy asks a model: the section `[llm]` becomes part of its request."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec.structs import replace

from workbench.errors import UsageProblem
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.policies.registry import MODEL_POLICIES
from workbench_engine.settings import RunSettings


def with_model(settings: RunSettings, llm: LlmSettings, environment: Mapping[str, str] = os.environ) -> RunSettings:
    """The request with the model's settings; unchanged for a policy that asks none.

    Caps become the session's budget, so that a person can change them while it runs. Raises UsageProblem when nothing
    could be asked with these settings.
    """
    if settings.policy not in MODEL_POLICIES:
        return settings
    if settings.policy == "llm":
        from workbench_engine.llm.making import check_endpoints

        try:
            check_endpoints(llm, environment)
        except ValueError as error:
            raise UsageProblem(str(error)) from None
    budget = replace(settings.budget, tokens=llm.tokens or None, money=llm.money or None)
    return replace(
        settings,
        llm=llm,
        budget=budget,
        group_size=llm.n,
        exemplars=llm.exemplars,
        contrast=llm.contrast,
    )
