"""Faults put into kernels: that each is one edit of the kernel's own code, and how mutants are counted."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.benching.mutating import battery, cxx, python
from workbench.benching.mutating.drawing import Honest, drawn, kernels, module
from workbench.benching.mutating.edits import difference, mutant_of
from workbench.benching.mutating.modules import MODULES
from workbench.benching.mutating.results import Results, Tried, cells, load, row, rows, save
from workbench.benching.mutating.running import quotas
from workbench.errors import UsageProblem
from workbench_engine.tasks.catalogue import bundled_names, bundled_space
from workbench_engine.tasks.contract import TensorSpec

KERNEL = """\
const long rows = dim[0], n = dim[1];
const float* X = (const float*)in[0]; float* Y = (float*)out[0];
for (long i = 0; i < rows; ++i) {
const float* x = X + i * n;
float s = 0.0f, m = LOWEST;
long j = 0;
for (; j + 8 <= n; j += 8) { s += x[j]; }
for (; j < n; ++j) { s += x[j] * x[j]; m = most(m, x[j]); }
const float r = 1.0f / sqrtf(s / n + 1e-5f);
for (long k = 0; k < n; ++k) Y[i * n + k] = x[k] * r - m;
}
"""


def kernel() -> str:
    from workbench_engine.tasks.cxx.preamble import kernel_file

    return cxx.with_helpers(kernel_file('extern "C" float sqrtf(float) noexcept;', KERNEL))


def notes(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for edit in cxx.edits(text):
        found.setdefault(edit.fault, set()).add(edit.note)
    return found


def test_every_kind_of_fault_is_found_in_a_plain_kernel() -> None:
    found = notes(kernel())
    assert "i < rows → i <= rows" in found["off by one"]
    assert "n → (n) - 1" in found["off by one"]
    assert "start long i = 0; at 1" in found["dropped row or column"]
    assert "++k → k += 2" in found["dropped row or column"]
    assert any(note.startswith("skip for (; j < n; ++j)") for note in found["skipped tail"])
    assert "n → (n) - (n) / 8" in found["early end"]
    assert "i * n + k → k * n + i" in found["swapped indices"]
    assert {"LOWEST → 0.0f", "0.0f → 0.5f"} <= found["wrong start value"]
    assert "1e-5f → 0.0f" in found["dropped term"]
    assert "1.0f → 1.001000000e+00f" in found["wrong constant"]
    assert "x[k] * r - m → (m - x[k] * r)" in found["swapped operands"]
    assert "s += x[j] → s -= x[j]" in found["wrong operator"]
    assert "without s += x[j];" in found["deleted statement"]
    assert "sqrtf → rough_sqrt_" in found["fast approximation"]
    assert any("rounded to bf16" in note or "bf16_(" in note for note in found["precision"])
    assert any("as half" in note for note in found["wrong type"])
    assert "dim[0]" not in {note.split(" → ")[0] for note in found["dropped term"]}


@pytest.mark.parametrize("task", bundled_names())
def test_faults_lie_in_the_kernels_own_code_and_change_it(task: str) -> None:
    space = bundled_space(task)
    assert space is not None
    text = cxx.with_helpers(space.render(space.sample(random.Random(task))).text())
    own = len(text[: text.index(cxx.HELPERS) + len(cxx.HELPERS)].encode())
    found = cxx.edits(text)
    assert len(found) > 50
    for edit in found:
        assert edit.start >= own
        assert edit.apply(text) != text
        assert difference(text, edit.apply(text))


def test_a_kernel_without_the_preamble_is_refused() -> None:
    with pytest.raises(ValueError, match="preamble"):
        cxx.with_helpers('extern "C" void kernel_run() {}')


@pytest.mark.parametrize("task", sorted(MODULES))
def test_faults_of_a_module_parse(task: str) -> None:
    found = python.edits(MODULES[task])
    assert len(found) >= 8
    for edit in found:
        changed = edit.apply(MODULES[task])
        assert changed != MODULES[task]
        compile(changed, "mutant", "exec")


def test_every_bundled_task_has_an_honest_module() -> None:
    assert set(MODULES) == set(bundled_names())


def test_the_same_seed_draws_the_same_mutants_and_all_kinds_take_turns() -> None:
    honest: list[Honest] = [*islice(kernels("layernorm", 0), 2)]
    python_one = module("layernorm")
    assert python_one is not None
    honest.append(python_one)
    first = [m.key for m in islice(drawn(honest, 0), 40)]
    assert first == [m.key for m in islice(drawn(honest, 0), 40)]
    assert first != [m.key for m in islice(drawn(honest, 1), 40)]
    many = list(islice(drawn(honest, 0), 40))
    assert len({m.fault for m in many}) >= 12
    assert 2 <= sum(m.kind == "module" for m in many) <= 20
    assert len({m.text for m in many}) == 40


def test_the_line_of_a_fault_is_that_of_the_file() -> None:
    text = kernel()
    edit = next(e for e in cxx.edits(text) if e.note == "LOWEST → 0.0f")
    mutant = mutant_of("t", "o", "kernel", text, edit)
    assert "LOWEST" in text.splitlines()[mutant.line - 1]
    assert "LOWEST" not in mutant.text.splitlines()[mutant.line - 1]


# --- witnesses -------------------------------------------------------------------------------------------------------

SHAPE = (4, 32)


def honest_answer(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    truth = np.random.default_rng(seed).standard_normal(SHAPE).reshape(-1)
    return truth.astype(np.float32), truth


def witness(mutant: np.ndarray, honest: np.ndarray, truth: np.ndarray, accumulate: int = 32) -> object:
    kept = battery.own(honest, truth, "float32", SHAPE)
    return battery.difference(mutant, kept, truth, "float32", SHAPE, accumulate, "x")


@given(st.integers(0, 1000), st.integers(1, 4096))
@settings(max_examples=30, deadline=None)
def test_rounding_alone_is_no_witness(seed: int, accumulate: int) -> None:
    honest, truth = honest_answer(seed)
    assert witness(np.nextafter(honest, np.float32(np.inf)), honest, truth, accumulate) is None
    assert witness(honest, honest, truth, accumulate) is None


@pytest.mark.parametrize("wrong", [0.0, np.nan, np.inf, -1.0])
def test_one_wrong_element_is_a_witness(wrong: float) -> None:
    honest, truth = honest_answer()
    mutant = honest.copy()
    mutant[70] = wrong
    found = witness(mutant, honest, truth)
    assert isinstance(found, battery.Difference) and found.index == 70 and found.factor > 1.0


def test_low_precision_is_a_witness_and_an_honest_error_excuses_its_row_only() -> None:
    honest, truth = honest_answer()
    half = honest.astype(np.float16).astype(np.float32)
    assert witness(half, honest, truth) is not None
    rough = honest.copy()
    rough[:32] = half[:32]
    # The honest kernel is as rough in its first row, so the mutant may be too; not in the others.
    assert witness(rough, rough, truth) is None
    assert witness(half, rough, truth) is not None


def test_where_the_honest_kernel_overflows_the_mutant_may() -> None:
    honest, truth = honest_answer()
    broken, clean = honest.copy(), honest.copy()
    broken[3] = np.inf
    assert witness(broken, broken, truth) is None
    assert witness(clean, broken, truth) is None
    assert witness(broken, clean, truth) is not None


def test_integers_must_be_equal() -> None:
    a = np.array([1, 2, 3])
    kept = battery.own(a, a.astype(float), "int64", (3,))
    assert battery.difference(a, kept, a.astype(float), "int64", (3,), 1, "x") is None
    assert battery.difference(a + 1, kept, a.astype(float), "int64", (3,), 1, "x") is not None


@pytest.mark.parametrize("label", battery.LABELS)
def test_the_battery_keeps_to_the_domain(label: str) -> None:
    rng = np.random.default_rng(1)
    unit = battery.contents(TensorSpec("x", (3, 40), "float32", "input", "unit"), label, rng)
    assert unit.shape == (120,) and float(unit.min()) >= 0.0 and float(unit.max()) <= 1.0
    index = battery.contents(TensorSpec("x", (50,), "int64", "input", "index", 7), label, rng)
    assert index.min() >= 0 and index.max() <= 6
    assert np.isfinite(battery.contents(TensorSpec("x", (3, 40), "float32", "input"), label, rng)).all()
    assert battery.contents(TensorSpec("x", (), "float32", "input"), label, rng).shape == (1,)


# --- counting --------------------------------------------------------------------------------------------------------


def tried(fate: str, fault: str = "precision", kernelbench: bool | None = None, key: str = "k") -> Tried:
    return Tried(key, "t", "o", "kernel", fault, "n", 1, "", fate, kernelbench=kernelbench)  # type: ignore[arg-type]


def test_only_witnessed_faults_count() -> None:
    found = row(
        "all",
        [tried("caught", kernelbench=True), tried("caught", kernelbench=False), tried("survived", kernelbench=True)]
        + [tried("equivalent")] * 5
        + [tried("not built")],
    )
    assert (found.faults, found.caught, found.kernelbench, found.equivalent, found.not_built) == (3, 2, 2, 5, 1)
    assert found.share == pytest.approx(2 / 3)
    assert cells(found)[3].startswith("66.7% [")


def test_rows_by_kind_sum_to_all() -> None:
    many = [tried("caught", "early end"), tried("survived", "precision"), tried("equivalent", "wrong type")]
    table = rows(many, "fault")
    assert [r.name for r in table] == ["early end", "precision", "wrong type", "all"]
    assert sum(r.faults for r in table[:-1]) == table[-1].faults == 2
    assert table[2].share == 1.0


def test_results_are_kept_and_belong_to_a_seed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.json"
    assert load(path, 3) == Results(3)
    assert load(None, 3) == Results(3)
    kept = Results(3, {"t": ["o"]}, [tried("caught")])
    save(path, kept)
    assert load(path, 3) == kept
    with pytest.raises(UsageProblem, match="seed 3, not 4"):
        load(path, 4)
    path.write_text("[]")
    with pytest.raises(UsageProblem, match="choose another file"):
        load(path, 3)


@given(st.integers(1, 500), st.integers(1, 13))
def test_quotas_add_up(count: int, tasks: int) -> None:
    found = quotas([f"t{i}" for i in range(tasks)], count)
    assert sum(found.values()) == count
    assert max(found.values()) - min(found.values()) <= 1
