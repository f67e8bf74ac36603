from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.policies.llm.kernels import KERNEL, MODULE, answer

from workbench_engine.llm.contract import Choice
from workbench_engine.policies.llm import diff
from workbench_engine.policies.llm.answers import read_answer
from workbench_engine.policies.llm.diff import Change, PatchError
from workbench_engine.policies.llm.frozen import FrozenError, check_untouched, frozen_texts, has_frozen, kept, regions

LINES = st.lists(st.text(st.sampled_from("abcdef {}();"), min_size=1, max_size=12), min_size=1, max_size=30)


LINE = '    y[i] = x[i] * 2.0f;  // doubles } "quoted"'


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n"


@given(lines=LINES, at=st.integers(0, 29), size=st.integers(1, 5), new=LINES, indent=st.sampled_from(["", "  ", "\t"]))
def test_what_is_found_once_is_replaced_there(
    lines: list[str], at: int, size: int, new: list[str], indent: str
) -> None:
    at %= len(lines)
    search = lines[at : at + size]
    assume(search[0].strip() and search[-1].strip() and new[0].strip() and new[-1].strip())
    squeezed = ["".join(line.split()) for line in lines]
    places = [
        i
        for i in range(len(lines) - len(search) + 1)
        if squeezed[i : i + len(search)] == squeezed[at : at + len(search)]
    ]
    assume(places == [at])
    after = [*lines[:at], *new, *lines[at + len(search) :]]
    assume("\n".join(after).split() != "\n".join(lines).split())
    text = f"Changes:\n```\n{block(chr(10).join(indent + s for s in search), chr(10).join(indent + n for n in new))}```"
    child = diff.apply("\n".join(lines), diff.parse(text))
    assert [line.split() for line in child.splitlines()] == [line.split() for line in after]


def test_indentation_follows_the_file() -> None:
    child = diff.apply(
        KERNEL, [Change(('y[i] = x[i] * 2.0f;  // doubles } "quoted"',), ("if (x) {", "  y[i] = 1;", "}"))]
    )
    assert "    if (x) {\n      y[i] = 1;\n    }\n" in child


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no changes here", "no SEARCH/REPLACE block"),
        ("<<<<<<< SEARCH\na\n", "has no `=======`"),
        ("<<<<<<< SEARCH\na\n=======\nb\n", "has no `>>>>>>> REPLACE`"),
        ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", "not closed before the next"),
        (block("", "b"), "searches for nothing"),
        (block("float* z", "b"), "is not in the file"),
        (block("  float* y = (float*)out[1];", "b"), "it has `float* y = (float*)out[0];` where you wrote"),
        (block("#include <cmath>", "#include  <cmath>"), "leave the file as it was"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(text: str, said: str) -> None:
    with pytest.raises(PatchError) as caught:
        diff.apply(KERNEL, diff.parse(text))
    assert said in str(caught.value)


def test_a_change_that_fits_several_places_is_refused() -> None:
    with pytest.raises(PatchError, match=r"fits 2 places \(lines 1, 3\); add lines around it"):
        diff.apply("int x;\nint y;\n  int  x;\n", diff.parse(block(" int x;", "long x;")))


def test_the_nearest_lines_are_shown_with_their_numbers() -> None:
    with pytest.raises(PatchError) as caught:
        diff.apply(KERNEL, diff.parse(block("  for (long i = 0; i < dim[0]; ++i) {", "x")))
    assert "   6|   for (long i = 0; i < dim[0] * dim[1]; ++i) {" in str(caught.value)
    assert "   3| extern" in str(caught.value)


FROZEN = "a\n// frozen: begin\nkeep(1);\n// frozen: end\nb\n"
EVOLVE = "keep0\n// EVOLVE-BLOCK-START\nx\n// EVOLVE-BLOCK-END\nkeep1\n# EVOLVE-BLOCK-START\ny\n# EVOLVE-BLOCK-END\n"


def test_both_kinds_of_markers() -> None:
    assert frozen_texts(FROZEN) == ["// frozen: begin\nkeep(1);\n// frozen: end\n"]
    assert [r.frozen for r in regions(EVOLVE)] == [True, False, True, False, True]
    assert not has_frozen(KERNEL) and regions(KERNEL) == regions(KERNEL)[:1]


@pytest.mark.parametrize("broken", ["// frozen: begin\nx\n", "// frozen: end\n", "// EVOLVE-BLOCK-START\nx\n"])
def test_markers_that_do_not_pair(broken: str) -> None:
    with pytest.raises(FrozenError):
        regions(broken)
    assert not has_frozen(broken)


def test_a_whole_file_gets_the_frozen_text_back() -> None:
    child = "new\n// frozen: begin\nkeep(999);\n// frozen: end\nother\n"
    assert kept(FROZEN, child) == "new\n// frozen: begin\nkeep(1);\n// frozen: end\nother\n"
    assert kept(KERNEL, child) == child
    with pytest.raises(FrozenError, match="keeps 0 of them"):
        kept(FROZEN, "new\n")


@given(LINES, LINES)
def test_kept_text_passes_its_own_check(before: list[str], after: list[str]) -> None:
    child = "\n".join([*before, "// frozen: begin", *after, "// frozen: end", "z"])
    check_untouched(FROZEN, kept(FROZEN, child))


def test_a_diff_may_not_touch_what_is_frozen() -> None:
    with pytest.raises(PatchError, match=r"frozen region was changed at `keep\(1\);`"):
        diff.apply(FROZEN, diff.parse(block("keep(1);", "keep(2);")))
    assert "c\n" in diff.apply(FROZEN, diff.parse(block("b", "c")))


def test_an_answer_with_changes_is_a_whole_file() -> None:
    changes = block(LINE, "    y[i] = x[i] * 3.0f;")
    read = read_answer(Choice(answer(changes, design="Triple.")), "diff", "kernel", KERNEL)
    assert read.problem == "" and "3.0f" in read.code and read.note == "Triple."


def test_a_whole_file_instead_of_changes_is_as_good() -> None:
    other = KERNEL.replace("2.0f", "4.0f")
    assert read_answer(Choice(answer(other)), "diff", "kernel", KERNEL).code == other


def test_changes_that_leave_half_a_file_are_refused() -> None:
    read = read_answer(Choice(block(LINE, "{")), "diff", "kernel", KERNEL)
    assert "not whole" in read.problem and read.mendable


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice("I cannot help", finish="refusal"), "the model refused: I cannot help"),
        (Choice("", finish="length"), "raise llm.max_tokens"),
        (Choice(" \n"), "empty"),
    ],
)
def test_what_another_turn_cannot_mend(choice: Choice, said: str) -> None:
    read = read_answer(choice, "full", "kernel")
    assert said in read.problem and not read.mendable and read.code == ""


@pytest.mark.parametrize("patch", ["full", "cross"])
def test_frozen_regions_of_the_parent_survive_a_rewrite(patch: str) -> None:
    parent = KERNEL.replace("#include <cmath>\n", "// frozen: begin\n#include <cmath>\n// frozen: end\n")
    given_ = parent.replace("<cmath>", "<math.h>").replace("2.0f", "5.0f")
    read = read_answer(Choice(answer(given_)), patch, "kernel", parent)  # type: ignore[arg-type]
    assert "#include <cmath>" in read.code and "5.0f" in read.code
    lost = read_answer(Choice(answer(KERNEL)), patch, "kernel", parent)  # type: ignore[arg-type]
    assert "copy every frozen region" in lost.problem


@given(st.text(max_size=300))
def test_no_answer_is_an_exception(text: str) -> None:
    for patch in ("full", "diff"):
        read = read_answer(Choice(text), patch, "kernel", KERNEL)
        assert bool(read.code) != bool(read.problem)
    assert MODULE
