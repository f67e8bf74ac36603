"""What refusals mean, and the counts of an import."""

from __future__ import annotations

import pytest

from workbench.importing.rows import Row, classified, counted


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("the output has no spread (std ≤ 0.01 of its size): any constant would nearly match it", "no spread"),
        ("the output does not depend on the inputs (changes by ≤ 0.0001 of its size)", "constant"),
        ("input 'x' does not matter: the output stays the same when only it changes", "idle input"),
        ("the output is not finite on its own get_inputs (NaN or infinity)", "not finite"),
        ("draws random numbers in forward: two runs differ", "random"),
    ],
)
def test_useless_tasks_are_degenerate(reason: str, expected: str) -> None:
    assert classified(reason) == ("degenerate", expected)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("importing it raised ModuleNotFoundError: No module named 'transformers.models'", "needs transformers"),
        ("get_inputs() raised AssertionError: Torch not compiled with CUDA enabled (line 9)", "needs CUDA"),
        ("too large: describing it takes about 80.0 GiB, 8.0 GiB are allowed", "too large"),
        ("Model.forward raised RuntimeError: DefaultCPUAllocator: can't allocate memory", "too large"),
        ("the worker process ended: SIGKILL (killed)", "too large"),
        ("no answer within 9.9 s: killed", "too slow"),
        ("line 1: not valid Python: invalid syntax", "not Python"),
        ("lacks class Model(nn.Module); a task file defines all of", "contract"),
        ("Model() raised ValueError: what it is", "raised"),
    ],
)
def test_what_could_not_be_opened_says_why(reason: str, expected: str) -> None:
    assert classified(reason) == ("cannot open", expected)


def test_counts_are_per_level_and_over_all() -> None:
    rows = [
        Row(1, 1, "1_A", "a", "0", "clean"),
        Row(1, 2, "2_B", "b", "0", "degenerate", cause="constant"),
        Row(2, 1, "1_C", "c", "0", "cannot open", cause="too large"),
        Row(2, 2, "2_D", "d", "0", "clean", sizes=("N 4096 → 8",)),
    ]
    one, two, both = counted(rows)
    assert (one.level, one.files, one.clean, one.degenerate, one.cannot_open) == (1, 2, 1, 1, 0)
    assert (two.level, two.cut, two.causes) == (2, 1, {"cannot open: too large": 1})
    assert (both.level, both.files, both.clean) == (0, 4, 2)
    assert len(counted(rows[:2])) == 1
