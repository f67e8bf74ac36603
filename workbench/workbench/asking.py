"""A run whose policy asks a model: the section `[llm]` becomes part of its request."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from workbench.errors import UsageProblem
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.llm.vllm_settings import VllmSettings
from workbench_engine.policies.registry import MODEL_POLICIES
from workbench_engine.settings import RunSettings


def with_model(
    settings: RunSettings,
    llm: LlmSettings,
    environment: Mapping[str, str] = os.environ,
    vllm: VllmSettings = VllmSettings(),
) -> RunSettings:
    """The request with the model's settings; unchanged for a policy that asks none.

    Caps become the session's budget, so that a person can change them while it runs. Raises UsageProblem when nothing
    could be asked with these settings.
    """
    if settings.policy not in MODEL_POLICIES:
        return settings
    if llm.replay:
        # The engine works in another folder.
        llm = replace(llm, replay=str(Path(llm.replay).expanduser().absolute()))
    if llm.templates:
        llm = replace(llm, templates=str(Path(llm.templates).expanduser().absolute()))
    if settings.policy == "vllm" and not llm.replay:
        llm = with_server(llm, vllm)
    if settings.policy in ("llm", "llm-points") or llm.replay:
        from workbench_engine.llm.making import check_endpoints

        try:
            check_endpoints(llm, environment)
        except ValueError as error:
            raise UsageProblem(str(error)) from None
    budget = replace(settings.budget, tokens=llm.tokens or None, money=llm.money or None)
    return replace(
        settings,
        llm=llm,
        vllm=vllm,
        budget=budget,
        group_size=llm.n,
        exemplars=llm.exemplars,
        contrast=llm.contrast,
    )


def with_server(llm: LlmSettings, vllm: VllmSettings) -> LlmSettings:
    """The settings of a run that serves its model, checked as far as possible. Raises UsageProblem."""
    if vllm.attach:
        return llm
    if not llm.model:
        raise UsageProblem("policy 'vllm' serves a model and none is named; give --model PATH, a folder or a name")
    if shutil.which(vllm.command[0]) is None:
        raise UsageProblem(
            f"vllm.command: no program {vllm.command[0]!r}; install vLLM in an environment of its own and set "
            "vllm.command to the path of its `vllm`, or vllm.attach to a running server"
        )
    folder = Path(llm.model).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise UsageProblem(f"--model {llm.model}: the folder holds no model (no config.json)")
        return replace(llm, model=str(folder.absolute()))
    if llm.model.startswith(("/", "./", "../", "~")):
        raise UsageProblem(f"--model {llm.model}: no such folder")
    return llm
