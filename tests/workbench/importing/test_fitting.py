"""The search for smaller sizes, with an oracle that computes what a real one would measure."""

from __future__ import annotations

from workbench.importing.fitting import Target, fit
from workbench_engine.tasks.cost import Estimate

MIB = 1 << 20
SOURCE = "batch_size = 4096\nfeatures = 1024\nnum_heads = 16\n"


def numbers(source: str) -> dict[str, int]:
    names: dict[str, int] = {}
    exec(source, {}, names)
    return names


def costs(source: str) -> Estimate:
    """A linear layer."""
    n = numbers(source)
    b, f = n["batch_size"], n["features"]
    return Estimate(inputs=4 * b * f, state=4 * f * f, outputs=4 * b * f, peak=4 * b * f, flops=2 * b * f * f)


def test_nothing_is_cut_that_is_small_enough() -> None:
    fitted = fit(SOURCE, costs(SOURCE), Target(tensors=1 << 40, flops=1 << 60), costs)
    assert fitted.values == {}
    assert fitted.found == costs(SOURCE)


def test_the_batch_goes_before_the_features() -> None:
    fitted = fit(SOURCE, costs(SOURCE), Target(tensors=8 * MIB), costs)
    assert set(fitted.values) == {"batch_size"}
    assert Target(tensors=8 * MIB).met(fitted.found)
    # Not cut further than it had to be.
    assert not Target(tensors=8 * MIB).met(costs(f"batch_size = {fitted.values['batch_size'] * 2}\nfeatures = 1024\n"))


def test_features_go_when_the_batch_is_not_enough() -> None:
    fitted = fit(SOURCE, costs(SOURCE), Target(tensors=MIB), costs)
    assert fitted.values["features"] < 1024
    assert fitted.values["batch_size"] >= 2
    assert Target(tensors=MIB).met(fitted.found)


def test_a_size_that_the_model_cannot_lose_is_left_alone() -> None:
    def oracle(source: str) -> Estimate | None:
        return costs(source) if numbers(source)["batch_size"] == 4096 else None

    fitted = fit(SOURCE, costs(SOURCE), Target(tensors=8 * MIB), oracle)
    assert set(fitted.values) == {"features"}


def test_a_cut_that_saves_nothing_is_taken_back() -> None:
    source = "length = 4096\nbatch_size = 1024\nfeatures = 1024\n"
    fitted = fit(source, costs(source), Target(tensors=6 * MIB), costs)
    assert "length" not in fitted.values


def test_what_cannot_be_made_small_ends_all_the_same() -> None:
    fixed = Estimate(state=1 << 40)
    assert fit(SOURCE, fixed, Target(), lambda source: fixed).values == {}
