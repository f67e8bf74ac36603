"""Is a task worth optimising: does its output depend on every input, vary, stay finite, and repeat?

A task whose output any constant would match within tolerance (there are such in KernelBench) would reward nonsense.
Runs inside the sandboxed reference worker. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from workbench_engine.tasks.contract import TensorSpec

CONSTANT = 1e-4
"""Relative change of the output between two draws of all inputs, below which a constant would pass."""
INERT = 1e-6
"""Relative change of the output below which one redrawn input does not matter."""
SPREAD = 0.01
"""Least standard deviation of an output, relative to its root mean square."""

Run = Callable[[list[Any]], list[Any]]


def lint(specs: tuple[TensorSpec, ...], first: list[Any], second: list[Any], run: Run) -> str | None:
    """What is wrong with the task, or None. `first` and `second` are two draws of the inputs, as `specs` has them."""
    outputs = run(first)
    for k, y in enumerate(outputs):
        name = f"output {k}" if len(outputs) > 1 else "the output"
        if y.numel() == 0:
            return f"{name} is empty"
        if y.is_floating_point() and not bool(torch.isfinite(y).all()):
            return f"{name} is not finite on its own get_inputs (NaN or infinity)"
        if y.numel() > 1 and _rms(y - y.double().mean()) <= SPREAD * _rms(y):
            return f"{name} has no spread (std ≤ {SPREAD:g} of its size): any constant would nearly match it"
    other = [_redraw(spec, a, b) for spec, a, b in zip(specs, first, second, strict=True)]
    if _change(outputs, run(other)) <= CONSTANT:
        return (
            f"the output does not depend on the inputs (changes by ≤ {CONSTANT:g} of its size): a constant would pass"
        )
    for k, spec in enumerate(specs):
        if spec.domain == "fixed":
            continue
        if _change(outputs, run([*first[:k], other[k], *first[k + 1 :]])) <= INERT:
            return f"input {spec.name!r} does not matter: the output stays the same when only it changes"
    return None


def repeats(inputs: list[Any], run: Run) -> bool:
    """Whether two runs on the same inputs agree (up to the noise of a parallel sum)."""
    return _change(run(inputs), run(inputs)) <= 1e-5


def _redraw(spec: TensorSpec, a: Any, b: Any) -> Any:
    """Another value of an input: the second draw, or a changed first one where get_inputs repeats itself."""
    if spec.domain == "fixed" or not torch.equal(a, b):
        return b
    if spec.domain == "bool":
        return ~a
    if spec.domain == "index":
        return (a + 1) % max(spec.high, 1)
    if spec.domain == "unit":
        return 1 - a if not torch.equal(a, 1 - a) else torch.rand_like(a)
    return a + torch.rand_like(a) * (a.abs().mean() + 1)


def _rms(y: Any) -> float:
    return float(y.double().square().mean().sqrt())


def _change(before: list[Any], after: list[Any]) -> float:
    """Largest relative change over the outputs; not finite or of another shape counts as a change."""
    largest = 0.0
    for a, b in zip(before, after, strict=True):
        if a.shape != b.shape:
            return float("inf")
        size = _rms(a)
        change = _rms(a.double() - b.double()) / size if size > 0 else float(not torch.equal(a, b))
        largest = max(largest, change if change == change else float("inf"))
    return largest
