"""What a task would cost, told without its data: the file runs on torch's meta device, where tensors have no contents.

Executes the file, so only inside a sandboxed reference worker. Imports torch.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from workbench_engine.tasks.contract import TaskRejected
from workbench_engine.tasks.cost import Estimate
from workbench_engine.tasks.taskfile import TaskFile, outputs_of


def estimate(source: str, path: str) -> Estimate:
    """The cost of the task in `source`. Raises TaskRejected when the file itself cannot be executed or breaks the
    contract; what merely cannot run without data makes the estimate incomplete."""
    file = TaskFile(source, path)
    dims = file.cases["cpu"] if "cpu" in file.cases else next(iter(file.cases.values()))
    inputs = state = 0
    try:
        # Modes are per thread and nest: whatever the file makes without naming a device is made there.
        with torch.device("meta"), torch.no_grad():
            values = file.inputs(dims, seed=1)
            inputs = sum(_bytes(v) for v in values if isinstance(v, torch.Tensor))
            model = file.model(dims)
            own = [t for t in model.state_dict().values() if isinstance(t, torch.Tensor)]
            state = sum(map(_bytes, own))
            given = [*own, *(v for v in values if isinstance(v, torch.Tensor))]
            with FlopCounterMode(display=False) as flops, _Watch(given) as watch:
                result = file.guarded(lambda: model(*values), "Model.forward")
    except TaskRejected as error:
        return Estimate(inputs=inputs, state=state, complete=False, note=str(error).removeprefix(f"{path}: "))
    outputs = sum(_bytes(y) for y in outputs_of(result) or [])
    return Estimate(inputs, state, outputs, watch.peak, watch.traffic, int(flops.get_total_flops()))


def _bytes(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


class _Watch(TorchDispatchMode):  # type: ignore[misc]
    """Sees every operator: what it reads and writes, and how much of what was made is still held."""

    def __init__(self, given: list[torch.Tensor]) -> None:
        super().__init__()
        self._given = {t.untyped_storage()._cdata for t in given}
        self.peak = 0
        self.traffic = 0
        self._live = 0
        self._held: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        if not func.is_view:
            read = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
            self.traffic += sum(map(_bytes, made)) + sum(map(_bytes, read))
        for tensor in made:
            self._hold(tensor)
        return result

    def _hold(self, tensor: torch.Tensor) -> None:
        # Views share a storage: it is counted once, until the last of them is gone.
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._given:
            return
        self._held[key] = self._held.get(key, 0) + 1
        if self._held[key] == 1:
            self._live += size
            self.peak = max(self.peak, self._live)
        weakref.finalize(tensor, self._drop, key, size)

    def _drop(self, key: int, size: int) -> None:
        self._held[key] -= 1
        if not self._held[key]:
            del self._held[key]
            self._live -= size
