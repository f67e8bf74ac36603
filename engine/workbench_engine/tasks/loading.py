"""A task ready to run: models per case, state put in, outputs in the task's dtype and in float64.

Runs inside the sandboxed reference worker. Imports torch.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch

from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_engine.tasks.describe import describe_file, forward
from workbench_engine.tasks.taskfile import TaskFile

Case = str | int
"""Name of a timed case, "hidden-N", or the index N of a hidden shape."""


class LoadedTask:
    """The reference in a worker. Models are built once a case and kept, in the declared mode and without gradients."""

    def __init__(self, source: str, path: str, task: Task | None = None, device: str = "cpu") -> None:
        """Describes and lints the file unless its `task` is known already. Raises TaskRejected with one line."""
        self._file = TaskFile(source, path)
        self.task = describe_file(self._file) if task is None else task
        self._device = device
        self._models: dict[str, Any] = {}
        self._doubles: dict[str, Any] = {}

    def case(self, case: Case) -> ShapeCase:
        """The shapes of a case. Raises KeyError naming the known ones."""
        name = f"hidden-{case}" if isinstance(case, int) else case
        for known in (*self.task.cases.values(), *self.task.hidden):
            if known.name == name:
                return known
        raise KeyError(f"task {self.task.name} has no case {name!r}; known: {', '.join(self.case_names())}")

    def case_names(self) -> list[str]:
        """Names of all cases, the timed ones first."""
        return [*self.task.cases, *(h.name for h in self.task.hidden)]

    def init_inputs(self, case: Case) -> list[Any]:
        """What `get_init_inputs` gives for a case, after seeding: the constructor's arguments."""
        return self._file.init_inputs(self.case(case).dims)

    def model_for(self, case: Case) -> Any:
        """The `nn.Module` of a case, as its constructor left it or with the state that was set."""
        shapes = self.case(case)
        if shapes.name not in self._models:
            self._models[shapes.name] = self._file.model(shapes.dims).to(self._device)
        return self._models[shapes.name]

    def state_arrays(self, case: Case) -> list[Any]:
        """Copies of parameters and buffers as CPU tensors, in state_dict order."""
        return [t.detach().cpu().contiguous().clone() for t in self._state(case)]

    def set_state(self, case: Case, arrays: Sequence[Any]) -> None:
        """Overwrites parameters and buffers (tensors or numpy arrays, in state_dict order).

        Raises ValueError when their number or a shape differs.
        """
        state = self._state(case)
        if len(arrays) != len(state):
            raise ValueError(f"task {self.task.name}: {len(arrays)} state arrays given, the model has {len(state)}")
        with torch.no_grad():
            for tensor, array in zip(state, arrays, strict=True):
                value = torch.as_tensor(array)
                if tuple(value.shape) != tuple(tensor.shape):
                    raise ValueError(f"task {self.task.name}: state of shape {value.shape} given for {tensor.shape}")
                tensor.copy_(value)
        self._doubles.pop(self.case(case).name, None)

    def set_mode(self, train: bool) -> None:
        """Training or evaluation mode of every model built so far, for a task of mode "both"."""
        for model in (*self._models.values(), *self._doubles.values()):
            model.train(train)

    def inputs_for(self, case: Case, seed: int = 1) -> list[Any]:
        """The tensors of the file's own `get_inputs` under `seed` (the only source for domain "fixed")."""
        values = self._file.inputs(self.case(case).dims, seed)
        return [v.to(self._device) for v in values if isinstance(v, torch.Tensor)]

    def run(self, case: Case, inputs: Sequence[Any]) -> list[Any]:
        """Outputs in the task's dtype, contiguous. `inputs` are the tensor inputs in the order of forward."""
        return forward(self._file, self.model_for(case), self.arguments(case, inputs), self.task.stochastic)

    def run_fp64(self, case: Case, inputs: Sequence[Any]) -> list[Any]:
        """The same in float64: floating inputs and state cast up, after they had the task's dtype."""
        name = self.case(case).name
        if name not in self._doubles:
            self._doubles[name] = _widened(copy.deepcopy(self.model_for(case)))
        wide = [t.double() if t.is_floating_point() else t for t in inputs]
        return forward(self._file, self._doubles[name], self.arguments(case, wide), self.task.stochastic)

    def _state(self, case: Case) -> list[Any]:
        return [t for t in self.model_for(case).state_dict().values() if isinstance(t, torch.Tensor)]

    def arguments(self, case: Case, tensors: Sequence[Any]) -> list[Any]:
        """All arguments of forward: the given tensors, and the file's own values for what is no tensor."""
        shapes = self.case(case)
        with torch.device("meta"):
            try:
                values = self._file.inputs(shapes.dims, seed=1)
            except Exception:
                values = []
        if not values or sum(isinstance(v, torch.Tensor) for v in values) != len(tensors):
            values = self._file.inputs(shapes.dims, seed=1)
        rest = iter(tensors)
        return [next(rest) if isinstance(v, torch.Tensor) else v for v in values]


def _widened(model: Any) -> Any:
    """The model in float64, tensors that are plain attributes of a module included (`double()` passes them over)."""
    model.double()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.double())
    return model
