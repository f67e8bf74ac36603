"""The models of a run, made from its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from workbench_engine.llm.bandit import RoutingModel
from workbench_engine.llm.client import OpenAIModel
from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.meter import Meter
from workbench_engine.llm.settings import LlmSettings, endpoints_of, key_of


class ClosingModel(Protocol):
    """A `Model` that holds connections."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Preparing(Protocol):
    """A model that must be made ready first."""

    async def prepare(self) -> None:
        """Raises ModelUnavailable while it is not ready yet, another ModelError when it never will be."""
        ...


def check_endpoints(settings: LlmSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Raises ValueError, in one line, when no model could be asked with these settings; asks nothing."""
    from workbench_engine.llm.errors import BadCredentials

    if settings.replay:
        if not Path(settings.replay).is_file():
            raise ValueError(f"llm.replay: no such file: {settings.replay}; give a session or recorded answers")
        return
    for endpoint in endpoints_of(settings):
        try:
            key_of(endpoint, environment)
        except BadCredentials as error:
            raise ValueError(str(error)) from None


def make_model(
    settings: LlmSettings, meter: Meter, environment: Mapping[str, str] = os.environ, seed: int = 0
) -> ClosingModel:
    """One client, or several behind a choice. Raises ValueError, BadCredentials."""
    endpoints = endpoints_of(settings)
    labels = [e.label for e in endpoints]
    if len(set(labels)) < len(labels):
        raise ValueError(f"llm.endpoints: two have the same name; {', '.join(labels)}")
    clients = {e.label: OpenAIModel(e, meter, environment=environment) for e in endpoints}
    return RoutingModel(dict(clients), seed) if len(clients) > 1 else clients[labels[0]]
