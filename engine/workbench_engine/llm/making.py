"""The models of a run, made from its settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from workbench_engine.llm.client import OpenAIModel
from workbench_engine.llm.contract import Completion, OnChunk, Request
from workbench_engine.llm.meter import Meter
from workbench_engine.llm.settings import LlmSettings, endpoints_of, key_of


class ClosingModel(Protocol):
    """A `Model` that holds connections."""

    async def complete(self, request: Request, on_chunk: OnChunk | None = None) -> Completion: ...

    async def aclose(self) -> None: ...


def check_endpoints(settings: LlmSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Raises ValueError, in one line, when no model could be asked with these settings; asks nothing."""
    from workbench_engine.llm.errors import BadCredentials

    for endpoint in endpoints_of(settings):
        try:
            key_of(endpoint, environment)
        except BadCredentials as error:
            raise ValueError(str(error)) from None


def make_model(settings: LlmSettings, meter: Meter, environment: Mapping[str, str] = os.environ) -> ClosingModel:
    """One client, or several behind a choice. Raises ValueError, BadCredentials."""
    endpoints = endpoints_of(settings)
    if len(endpoints) > 1:
        raise ValueError("several endpoints in one run are not possible yet; name one in [llm.endpoints]")
    return OpenAIModel(endpoints[0], meter, environment=environment)
