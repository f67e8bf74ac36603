"""From a task file to the `Task` that the engine knows: tensors, dims, cost, and whether it may be used at all.

Runs inside the sandboxed reference worker. Imports torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import torch

from workbench_engine.tasks.contract import DTYPES, Domain, ShapeCase, Task, TensorSpec
from workbench_engine.tasks.lint import lint, repeats
from workbench_engine.tasks.taskfile import INIT_SEED, TaskFile, outputs_of

_PRECISION = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def describe(source: str, path: str) -> Task:
    """The task in `source`. Raises TaskRejected with one line when it breaks the contract or fails the lint."""
    return describe_file(TaskFile(source, path))


def describe_file(file: TaskFile) -> Task:
    """As `describe`, for an executed file. Shapes of the other timed cases come from a run without data."""
    primary = "cpu" if "cpu" in file.cases else next(iter(file.cases))
    stochastic = _lint(file, file.cases[primary])
    cases = {name: _case(file, name, dims, real=name == primary) for name, dims in file.cases.items()}
    hidden = tuple(_case(file, f"hidden-{i}", dims, real=True) for i, dims in enumerate(file.hidden))
    dtype = cases[primary].of("output")[0].dtype
    return Task(
        name=file.name,
        title=file.title,
        source=file.source,
        path=file.path,
        dtype=dtype,
        cases=cases,
        hidden=hidden,
        stochastic=stochastic,
        declared_precision=file.choice("PRECISION", _precisions(dtype)),
        mode=cast(Literal["eval", "train", "both"], file.mode),
        lower_precision=cast(Literal["wrong", "label"], file.choice("LOWER_PRECISION", ("wrong", "label"))),
        library=cast(Literal["label", "forbid"], file.choice("LIBRARY", ("label", "forbid"))),
        weights=cast(Literal["variable", "constant"], file.choice("WEIGHTS", ("variable", "constant"))),
    )


def _precisions(dtype: str) -> tuple[str, ...]:
    """Precision classes a file may declare, that of its dtype first."""
    own = _PRECISION.get(dtype, "fp32")
    return (own, *(p for p in ("fp64", "fp32", "tf32", "fp16", "bf16") if p != own))


def forward(file: TaskFile, model: Any, values: list[Any], stochastic: bool = False) -> list[Any]:
    """The outputs of one run, as a list of contiguous tensors. A stochastic task is seeded first."""
    if stochastic:
        torch.manual_seed(INIT_SEED)
    with torch.no_grad():
        result = file.guarded(lambda: model(*values), "Model.forward")
    outputs = outputs_of(result)
    if outputs is None:
        raise file.reject(f"forward returned {type(result).__name__}, not a tensor or a tuple of tensors")
    return [y.contiguous() for y in outputs]


def _lint(file: TaskFile, dims: Mapping[str, int]) -> bool:
    """Refuses a useless task; returns whether it is stochastic (repeats only when seeded)."""
    model = file.model(dims)
    first, second = file.inputs(dims, seed=1), file.inputs(dims, seed=2)
    places = [i for i, v in enumerate(first) if isinstance(v, torch.Tensor)]
    specs = input_specs(file, model, first, dims)

    def run_with(stochastic: bool) -> Any:
        def run(tensors: list[Any]) -> list[Any]:
            values = list(first)
            for i, tensor in zip(places, tensors, strict=True):
                values[i] = tensor.clone()
            return forward(file, model, values, stochastic)

        return run

    tensors = [first[i] for i in places]
    outputs = run_with(False)(tensors)
    finite = all(bool(torch.isfinite(y).all()) for y in outputs)
    stochastic = finite and not repeats(tensors, run_with(False))
    if stochastic and not repeats(tensors, run_with(True)):
        raise file.reject(
            "differs between two runs on the same inputs even with the seed set: no output to compare with"
        )
    reason = lint(specs, tensors, [second[i] for i in places], run_with(stochastic))
    if reason is not None:
        raise file.reject(reason)
    return stochastic


def _case(file: TaskFile, name: str, dims: Mapping[str, int], *, real: bool) -> ShapeCase:
    model, values, outputs = _run(file, dims) if real else _run_without_data(file, dims)
    state = tuple(
        _spec(file, key, tensor, "state")
        for key, tensor in model.state_dict().items()
        if isinstance(tensor, torch.Tensor)
    )
    inputs = input_specs(file, model, values, dims)
    results = tuple(
        _spec(file, "output" if len(outputs) == 1 else f"output{k}", y, "output") for k, y in enumerate(outputs)
    )
    cost = file.cost(dims)
    return ShapeCase(
        name=name,
        dims=dict(dims),
        tensors=(*inputs, *state, *results),
        bytes_moved=cost.get("bytes"),
        flops=cost.get("flops"),
        accumulate=_accumulate(file, dims, (*inputs, *state)),
    )


def _run(file: TaskFile, dims: Mapping[str, int]) -> tuple[Any, list[Any], list[Any]]:
    model, values = file.model(dims), file.inputs(dims, seed=1)
    return model, values, forward(file, model, values)


def _run_without_data(file: TaskFile, dims: Mapping[str, int]) -> tuple[Any, list[Any], list[Any]]:
    """On torch's meta device, so that a GPU-sized case costs no memory; for real where the file cannot do that."""
    try:
        with torch.device("meta"):
            model, values = file.model(dims), file.inputs(dims, seed=1)
            return model, values, forward(file, model, values)
    except Exception:
        return _run(file, dims)


def input_specs(file: TaskFile, model: Any, values: list[Any], dims: Mapping[str, int]) -> tuple[TensorSpec, ...]:
    """Specs of the tensor inputs, named after forward's parameters, with the domains that INPUTS declares."""
    declared = file.optional("INPUTS", {})
    names = _names(model, len(values))
    for name in declared:
        if name not in names:
            raise file.reject(f"INPUTS names {name!r}, but forward takes {', '.join(names)}")
    return tuple(
        _spec(file, name, value, "input", declared.get(name, {}), dims)
        for name, value in zip(names, values, strict=True)
        if isinstance(value, torch.Tensor)
    )


def _names(model: Any, count: int) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return (names + [f"input{k}" for k in range(len(names), count)])[:count]


def _spec(
    file: TaskFile,
    name: str,
    tensor: Any,
    role: Any,
    declared: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise file.reject(f"{role} {name!r} has dtype {dtype}; known: {', '.join(DTYPES)}")
    domain, high = _domain(file, name, dtype, role, declared or {}, dims or {})
    return TensorSpec(name=name, shape=tuple(tensor.shape), dtype=dtype, role=role, domain=domain, high=high)


def _domain(
    file: TaskFile, name: str, dtype: str, role: str, declared: Mapping[str, Any], dims: Mapping[str, int]
) -> tuple[Domain, int]:
    """Undeclared: floats are real, bools bool, integers fixed (only get_inputs knows what they index)."""
    if role != "input":
        return "real", 0
    default = "real" if "float" in dtype else "bool" if dtype == "bool" else "fixed"
    domain = declared.get("domain", default)
    if domain not in get_args(Domain):
        raise file.reject(f"INPUTS[{name!r}]: unknown domain {domain!r}; known: {', '.join(get_args(Domain))}")
    high = declared.get("high", 0)
    if isinstance(high, str):
        if high not in dims:
            raise file.reject(f"INPUTS[{name!r}]: high is {high!r}, which is no dim; dims: {', '.join(dims)}")
        high = dims[high]
    if domain == "index" and high <= 0:
        raise file.reject(f"INPUTS[{name!r}]: an index needs high (a dim or a number > 0)")
    return cast(Domain, domain), int(high)


def _accumulate(file: TaskFile, dims: Mapping[str, int], tensors: tuple[TensorSpec, ...]) -> int:
    """ACCUMULATE: a dim, a number, or several of them (their product). Undeclared: the longest axis of all tensors."""
    declared = file.optional("ACCUMULATE", None)
    if declared is None:
        return max((extent for t in tensors for extent in t.shape), default=1)
    product = 1
    for factor in declared if isinstance(declared, (tuple, list)) else (declared,):
        if isinstance(factor, str) and factor not in dims:
            raise file.reject(f"ACCUMULATE names {factor!r}, which is no dim; dims: {', '.join(dims)}")
        product *= dims[factor] if isinstance(factor, str) else int(factor)
    return max(product, 1)
