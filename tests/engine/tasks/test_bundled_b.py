"""Seven bundled tasks: their references keep the contract, their spaces render kernels that are right on every shape.

Kernels are built with g++ and run in a process of their own, against fp64 torch, under the referee's tolerance.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from workbench_engine.tasks.catalogue import bundled_path, bundled_space
from workbench_engine.tasks.describe import describe
from workbench_engine.tasks.design import DesignPoint, DesignSpace, Kernel, Value

NAMES = (
    "conv_bias_relu",
    "cumsum_rows",
    "diag_matmul",
    "linear_sum",
    "reduce_middle",
    "swish_chain",
    "tall_skinny_gram",
)
SAMPLED = 3
RUNNER = Path(__file__).with_name("kernel_runner.py")

# Values that are wrong by construction, each for a reason that a search has to find out.
TRAPS: Mapping[str, tuple[Value, ...]] = {
    "tail": ("none",),
    # Rescaling after every row or two multiplies up what an approximate exp(0) is off by: right with an exact one only.
    "chunk": ("no maximum", "1", "4"),
    # Right or wrong by what is done with it: a sum of exps is off by 3e-6, a clamp of their product less.
    "exp": ("poly4", "poly3"),
    "log": ("poly5",),
    "width": ("12 only",),
    "math_flags": ("fast",),
}
# One whole point for each task that must be caught, as changes to its naive point.
CAUGHT: Mapping[str, Mapping[str, Value]] = {
    "conv_bias_relu": {"algorithm": "split stencil", "vector": "vec8", "tail": "none"},
    "cumsum_rows": {"algorithm": "vector scan", "tail": "none"},
    "diag_matmul": {"algorithm": "scale rows", "vector": "vec16", "tail": "none"},
    "linear_sum": {"group": "all", "vector": "vec8", "tail": "none"},
    "reduce_middle": {"chunk": "no maximum", "exp": "poly6"},
    "swish_chain": {"vector": "vec8", "tail": "none"},
    "tall_skinny_gram": {"algorithm": "register tiles", "width": "12 only", "vector": "vec16"},
}


def space_of(name: str) -> DesignSpace:
    space = bundled_space(name)
    assert space is not None
    return space


def without_traps(space: DesignSpace, rng: random.Random) -> DesignPoint:
    """A random point that nothing excuses from being right."""
    values = {}
    for d in space.dimensions:
        # cumsum_rows also has a "width", of numbers: only the values listed are traps.
        values[d.name] = rng.choice([v for v in d.values if v not in TRAPS.get(d.name, ())])
    return space.point(values)


@pytest.mark.parametrize("name", NAMES)
def test_reference_keeps_the_contract(name: str) -> None:
    path = bundled_path(name)
    task = describe(path.read_text(), str(path))  # runs the lint: spread, every input matters, repeats
    assert {"cpu", "gpu"} <= set(task.cases)
    assert 3 <= len(task.hidden) <= 5
    cpu, gpu = task.cases["cpu"], task.cases["gpu"]
    for case in (cpu, gpu):
        # Compulsory traffic: every tensor crosses once.
        assert case.bytes_moved == sum(t.nbytes for t in case.tensors)
        assert case.flops is not None and case.flops > 0
    assert gpu.bytes_moved is not None and cpu.bytes_moved is not None
    assert gpu.bytes_moved >= 10 * cpu.bytes_moved
    assert all(list(h.dims) == list(cpu.dims) for h in task.hidden)


@pytest.mark.parametrize("name", NAMES)
def test_reference_works_without_arguments(name: str) -> None:
    names: dict[str, Any] = {"__name__": name}
    exec(compile(bundled_path(name).read_text(), name, "exec"), names)
    model = names["Model"](*names["get_init_inputs"]())
    inputs = names["get_inputs"]()
    defaults = describe(bundled_path(name).read_text(), name).cases["cpu"]
    assert [tuple(x.shape) for x in inputs] == [t.shape for t in defaults.of("input")]
    assert tuple(model(*inputs).shape) == defaults.of("output")[0].shape


@pytest.mark.parametrize("name", NAMES)
def test_space_is_large_and_typed(name: str) -> None:
    space = space_of(name)
    assert space.task == name
    assert space.size >= 100_000
    assert len({d.name for d in space.dimensions}) == len(space.dimensions)
    assert all(len(set(d.values)) == len(d.values) >= 2 and d.doc for d in space.dimensions)


@pytest.mark.parametrize("name", NAMES)
def test_points_round_trip_and_render_deterministically(name: str) -> None:
    space = space_of(name)
    rng = random.Random(name)
    sources = set()
    for _ in range(40):
        point = space.sample(rng)
        assert space.decode(space.encode(point)) == point
        kernel = space.render(point)
        assert kernel == space.render(space.point(dict(reversed(point.values.items()))))
        assert 'extern "C" void kernel_run(' in kernel.source
        assert not any(flag.startswith("-l") or flag.startswith("-march") for flag in kernel.flags)
        sources.add(kernel.text())
    assert len(sources) > 30


@pytest.mark.parametrize("name", NAMES)
def test_every_dimension_changes_some_kernel(name: str) -> None:
    """No dimension is decoration: any two of its values differ in the kernel's text, at one of a few points."""
    space = space_of(name)
    rng = random.Random(f"dimension {name}")
    points = [space.sample(rng) for _ in range(60)]
    for d in space.dimensions:
        texts = [[space.render(space.point({**p.values, d.name: v})).text() for p in points] for v in d.values]
        assert len({tuple(t) for t in texts}) == len(d.values), d.name


def build(kernel: Kernel, stem: Path) -> str:
    """The compiler's message, empty if it built. Linked without the flags: -ffast-math must not reach the linker."""
    source, unit = stem.with_suffix(".cc"), stem.with_suffix(".o")
    source.write_text(kernel.source)
    common = ["g++", "-march=native", "-fopenmp", "-fPIC"]
    for command in (
        [*common, *kernel.flags, "-c", str(source), "-o", str(unit)],
        [*common, "-shared", str(unit), "-o", str(stem.with_suffix(".so"))],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode:
            return done.stderr
    return ""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, str]]]:
    """For each task: what became of its naive point, of sampled points without a trap, and of the point to catch."""
    folder = tmp_path_factory.mktemp("kernels")
    jobs: list[tuple[str, str, Kernel]] = []
    for name in NAMES:
        space = space_of(name)
        rng = random.Random(f"sample {name}")
        jobs.append((name, "naive", space.render(space.naive)))
        jobs.append((name, "trap", space.render(space.point({**space.naive.values, **CAUGHT[name]}))))
        for _ in range(SAMPLED):
            point = without_traps(space, rng)
            jobs.append((name, json.dumps(point.values), space.render(point)))
    with ThreadPoolExecutor(2) as pool:
        stems = [folder / str(i) for i in range(len(jobs))]
        built = list(pool.map(build, [kernel for _, _, kernel in jobs], stems))
    for (name, label, _), message in zip(jobs, built, strict=True):
        assert message == "", f"{name} {label}: {message[:2000]}"
    order = folder / "order.json"
    order.write_text(
        json.dumps([[n, str(bundled_path(n)), str(s) + ".so"] for (n, _, _), s in zip(jobs, stems, strict=True)])
    )
    done = subprocess.run([sys.executable, str(RUNNER), str(order)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    answers: dict[str, dict[str, str]] = {name: {} for name in NAMES}
    for (name, label, _), answer in zip(jobs, json.loads(done.stdout), strict=True):
        answers[name][label] = answer
    yield answers


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_right_on_every_shape(name: str, results: dict[str, dict[str, str]]) -> None:
    assert {label: answer for label, answer in results[name].items() if label != "trap" and answer != "ok"} == {}
    assert len(results[name]) == SAMPLED + 2


@pytest.mark.parametrize("name", NAMES)
def test_traps_are_wrong(name: str, results: dict[str, dict[str, str]]) -> None:
    assert results[name]["trap"].startswith("wrong")
