"""The models of a collection by name: configured endpoints, one that is served, or the answers of an earlier one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from workbench.collecting.journal import read_about
from workbench.collecting.remembering import Answering, Remembering, kept_traffic, spent_on, traffic_file
from workbench.config import Config
from workbench.errors import UsageProblem
from workbench_engine.llm.errors import ModelError
from workbench_engine.llm.meter import Caps, Meter
from workbench_engine.llm.settings import Endpoint, LlmSettings, endpoints_of

SAMPLED_BY = ("model", "temperature", "top_p", "max_tokens", "extra")
"""Settings of an endpoint that change what it answers."""

Note = Callable[[str], None]


def sampled(config: Config, serve: bool) -> dict[str, dict[str, Any]]:
    """How each model is sampled, by name. Raises UsageProblem, in one line, when none can be asked."""
    if serve:
        from workbench.asking import with_server
        from workbench_engine.llm.vllm_settings import served_name

        name = served_name(with_server(config.llm, config.vllm).model) or "vllm"
        return {name: {**_sampling(config.llm), "model": name}}
    try:
        return {name: _sampling(endpoint) for name, endpoint in by_name(config.llm).items()}
    except ValueError as error:
        raise UsageProblem(str(error)) from None


def by_name(llm: LlmSettings) -> dict[str, Endpoint]:
    """Raises ValueError when there is none, or two of one name."""
    found: dict[str, Endpoint] = {}
    for endpoint in endpoints_of(llm):
        if endpoint.label in found:
            raise ValueError(f"llm.endpoints: two have the name {endpoint.label}")
        found[endpoint.label] = endpoint
    return found


@asynccontextmanager
async def asked(
    config: Config, folder: Path, names: Mapping[str, Any], serve: bool, note: Note
) -> AsyncIterator[dict[str, Answering]]:
    """The models that are asked, behind one meter that knows what earlier calls have spent on `names`.

    Raises UsageProblem.
    """
    from workbench_engine.llm.client import OpenAIModel

    llm = config.llm
    traffic = {name: traffic_file(folder, name) for name in names}
    models: dict[str, Answering] = {}
    try:
        before = spent_on(one for path in sorted((folder / "traffic").glob("*.jsonl")) for one in kept_traffic(path))
        meter = Meter(Caps(llm.money or None, llm.tokens or None, llm.requests or None), before)
        if serve:
            from workbench.asking import with_server
            from workbench_engine.llm.vllm_server import VllmModel, VllmServer

            llm = with_server(llm, config.vllm)
            server = VllmServer(
                config.vllm, llm, folder / "vllm.log", lambda state: note(f"vllm {state.state}: {state.text}")
            )
            models = {name: Remembering(VllmModel(server, meter), traffic[name]) for name in names}
        else:
            for name, endpoint in by_name(llm).items():
                models[name] = Remembering(OpenAIModel(endpoint, meter), traffic[name])
    except (ValueError, ModelError) as error:
        raise UsageProblem(str(error)) from None
    try:
        yield models
    finally:
        for one in models.values():
            await one.aclose()


@asynccontextmanager
async def recorded(source: Path) -> AsyncIterator[dict[str, Answering]]:
    """The models of an earlier collection, which answer as they did. Raises UsageProblem."""
    from workbench_engine.llm.recording import RecordingProblem, ReplayModel

    models: dict[str, Answering] = {}
    try:
        for name in read_about(source).get("models", {}):
            models[name] = ReplayModel(kept_traffic(traffic_file(source, name)), "turn", source.name)
    except RecordingProblem as problem:
        raise UsageProblem(str(problem)) from None
    if not models:
        raise UsageProblem(f"{source}: no model was asked there")
    yield models


def _sampling(settings: LlmSettings | Endpoint) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in SAMPLED_BY}
