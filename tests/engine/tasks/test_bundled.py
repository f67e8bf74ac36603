"""Bundled tasks of rows and attention: contract, lint, space, and their kernels built and run."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench_engine.backends.cpu import ALLOWED_FLAGS
from workbench_engine.tasks.catalogue import bundled_path, bundled_space
from workbench_engine.tasks.cxx import COMPILER_DIMENSIONS
from workbench_engine.tasks.describe import describe
from workbench_engine.tasks.design import DesignSpace

NAMES = ("attention_short", "bias_gelu_scale", "cross_entropy", "layernorm", "rmsnorm", "softmax_rows")
RUNNER = Path(__file__).with_name("run_kernels.py")


def space_of(name: str) -> DesignSpace:
    space = bundled_space(name)
    assert space is not None, f"{name} has no design space"
    return space


def verdicts(name: str, points: list[tuple[int, ...]]) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(RUNNER)],
        input=json.dumps({"task": name, "points": points}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, f"{name}: the runner ended with {done.returncode}: {done.stderr[-2000:]}"
    answer: list[str] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("name", NAMES)
def test_contract_and_lint_hold(name: str) -> None:
    path = bundled_path(name)
    task = describe(path.read_text(), str(path))
    assert task.name == name
    assert not task.stochastic
    assert {"cpu", "gpu"} <= set(task.cases)
    assert 3 <= len(task.hidden) <= 6
    for case in (*task.cases.values(), *task.hidden):
        assert case.bytes_moved and case.flops, f"{name}/{case.name}: no cost"
        inputs_and_outputs = sum(t.nbytes for t in case.tensors)
        assert case.bytes_moved <= 1.5 * inputs_and_outputs, f"{name}/{case.name}: more bytes than tensors have"
        assert list(case.dims) == list(task.cases["cpu"].dims)
    big = sum(t.numel for t in task.cases["gpu"].tensors)
    assert big >= 4 * sum(t.numel for t in task.cases["cpu"].tensors)


@pytest.mark.parametrize("name", NAMES)
def test_space_is_large_and_compositional(name: str) -> None:
    space = space_of(name)
    assert space.task == name
    assert space.size >= 100_000
    own = [d for d in space.dimensions if d.name not in {c.name for c in COMPILER_DIMENSIONS}]
    assert len({d.group for d in own}) >= 3, "choices of one kind only"
    assert len({d.name for d in space.dimensions}) == len(space.dimensions)
    for dimension in space.dimensions:
        assert len(set(dimension.values)) == len(dimension.values) >= 2


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_points_round_trip_and_render_the_same_twice(name: str, data: st.DataObject) -> None:
    space = space_of(name)
    indices = tuple(data.draw(st.integers(0, len(d.values) - 1)) for d in space.dimensions)
    point = space.decode(indices)
    assert space.encode(point) == indices
    assert space.point(point.values) == point
    kernel = space.render(point)
    assert kernel == space.render(space.decode(indices))
    assert all(ALLOWED_FLAGS.fullmatch(flag) for flag in kernel.flags), kernel.flags
    assert 'extern "C" void kernel_run(' in kernel.source
    for header in ("<immintrin.h>", "<vector>", "<cmath>", "<algorithm>"):
        assert header not in kernel.source, "a slow header"


@pytest.mark.parametrize("name", NAMES)
def test_every_dimension_changes_the_kernel_somewhere(name: str) -> None:
    space, rng = space_of(name), random.Random(3)
    points = [space.encode(space.sample(rng)) for _ in range(30)]
    for k, dimension in enumerate(space.dimensions):
        distinct = 0
        for point in points:
            renders = {
                space.render(space.decode((*point[:k], i, *point[k + 1 :]))).text()
                for i in range(len(dimension.values))
            }
            distinct = max(distinct, len(renders))
        assert distinct >= 2, f"{name}: {dimension.name} never changes anything"


@pytest.mark.parametrize("name", NAMES)
def test_naive_is_right_and_random_points_fail_only_as_designed(name: str) -> None:
    space, rng = space_of(name), random.Random(20)
    points = [space.encode(space.naive), *(space.encode(space.sample(rng)) for _ in range(6))]
    naive, *others = verdicts(name, points)
    assert naive == "ok"
    for verdict in others:
        if verdict.startswith("build: "):
            assert "static assertion failed" in verdict, verdict
    assert others.count("ok") >= 1, others
