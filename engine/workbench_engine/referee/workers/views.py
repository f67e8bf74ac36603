"""Tensors over the arena's memory, for the workers that hold torch. Importable by path, like `wire`."""

from __future__ import annotations

from typing import Any

import torch


def tensors(arena: memoryview, entries: list[Any]) -> list[torch.Tensor]:
    """A view for each entry (byte offset, bytes, torch's name of the dtype, shape); writes reach the arena."""
    views = []
    for offset, nbytes, dtype, shape in entries:
        kind = getattr(torch, dtype)
        if nbytes == 0:
            views.append(torch.empty(shape, dtype=kind))
        else:
            views.append(torch.frombuffer(arena[offset : offset + nbytes], dtype=kind).view(shape))
    return views
