from __future__ import annotations

import pytest
from tests.workbench.auditing.conftest import REFERENCE, candidate

from workbench.auditing.rows import Row
from workbench.auditing.screening import screen


def row(code: str | None, **more: object) -> Row:
    return Row(1, "1", "7", REFERENCE, code, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "state", "found"),
    [
        (None, "NO CODE", "no-code"),
        ("", "NO CODE", "no-code"),
        ("  \n", "NO CODE", "no-code"),
        ("None", "NO CODE", "no-code"),
        (" null\n", "NO CODE", "no-code"),
        ("class ModelNew(:\n", "NOT PYTHON", "not-python"),
        ("```python\nclass ModelNew: pass\n```", "NOT PYTHON", "not-python"),
        ("class ModelNew: pass\n\0", "NOT PYTHON", "not-python"),
        ("import torch\n\nclass Model2: pass\n", "NO MODELNEW", "no-modelnew"),
        ("# ModelNew is left as an exercise\n", "NO MODELNEW", "no-modelnew"),
        (REFERENCE, "UNCHANGED", "same-as-reference"),
        (REFERENCE.replace("Model", "ModelNew").replace("Softmax", "Very fast"), "UNCHANGED", "same-as-reference"),
    ],
)
def test_what_needs_no_referee_has_a_state_and_a_finding(code: str | None, state: str, found: str) -> None:
    screened = screen(row(code))
    assert screened.state == state
    assert [f.code for f in screened.findings] == [found]
    assert screened.reason


@pytest.mark.parametrize(
    "code",
    [
        candidate("return torch.softmax(x, dim=1)"),
        "from somewhere import ModelNew\n",
        "import torch\nModelNew = type('ModelNew', (torch.nn.Module,), {})\n",
        "if True:\n    class ModelNew: pass\n",
        "exec('class ModelNew: pass')\n",
        REFERENCE.replace("Model", "ModelNew").replace("dim=1", "dim=0"),
    ],
)
def test_everything_else_is_for_the_referee(code: str) -> None:
    assert screen(row(code)).state == ""


def test_a_smaller_batch_of_its_own_is_a_finding() -> None:
    tail = "batch_size = 4\ndim = 256\ndef get_inputs():\n    return [torch.zeros(batch_size, dim)]\n"
    screened = screen(row(candidate("return x", tail=tail)))
    assert screened.state == ""
    said = [f.text for f in screened.findings]
    assert said == ["sets batch_size = 4, the reference 16", "has another get_inputs than the reference"]


def test_the_same_sizes_and_inputs_are_none() -> None:
    tail = REFERENCE[REFERENCE.index("batch_size") :]
    assert screen(row(candidate("return x", tail=tail))).findings == []


def test_constants_are_overridden_on_both_sides() -> None:
    screened = screen(row(candidate("return x", tail="batch_size = 16")), {"batch_size": 2})
    assert "batch_size = 2\n" in screened.reference and "batch_size = 2\n" in screened.candidate
    assert screened.changed == ["batch_size 16 → 2", "batch_size 16 → 2 (candidate)"]


def test_device_code_is_seen_in_texts_and_imports_only() -> None:
    cuda = candidate("return x", head='source = r"""\n__global__ void k(float* x) {}\n"""')
    assert screen(row(cuda)).device_code
    assert screen(row(candidate("return x", head="import triton.language as tl"))).device_code
    assert screen(row(candidate("return x", head="from triton import jit"))).device_code
    assert not screen(row(candidate("return x", head="# __global__ import triton\nimport tritonic"))).device_code


def test_a_row_with_a_problem_is_bad_whatever_it_holds() -> None:
    screened = screen(row(candidate("return x"), problem="has no ref_code", where="line 4"))
    assert (screened.state, screened.reason) == ("BAD ROW", "line 4: has no ref_code")


def test_sources_too_deep_for_the_parser_are_a_state() -> None:
    deep = "x = " + "+".join(["1"] * 200_000) + "\nclass ModelNew: pass\n"
    assert screen(row(deep)).state in ("NOT PYTHON", "")
    assert screen(row("class ModelNew: pass\nx = " + "(" * 5000)).state == "NOT PYTHON"
