from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench_screens.colouring import colour, language_of
from workbench_screens.diffview import marked, shifted, split_row
from workbench_screens.lines import plain, width_of
from workbench_screens.sidebyside import compare, hunk_starts, inside, unified

texts = st.lists(st.sampled_from(["a = 1;", "b = 2;", "", "}", "for (;;) {", "x[i] = y;"]), max_size=12).map("\n".join)


@given(texts, texts)
def test_both_sides_come_back_whole(left: str, right: str) -> None:
    made = compare(left, right)
    assert [row.left for row in made.rows if row.left] == list(range(1, len(left.splitlines()) + 1))
    assert [row.right for row in made.rows if row.right] == list(range(1, len(right.splitlines()) + 1))
    for row in made.rows:
        if row.kind == "same":
            assert row.left and row.right and made.left[row.left - 1] == made.right[row.right - 1]


@given(texts, texts)
def test_unified_shows_every_line_once_and_the_same_hunks(left: str, right: str) -> None:
    made = compare(left, right)
    rows = unified(made.rows)
    assert sorted(row.left for row in rows if row.left and row.kind == "removed") == [
        row.left for row in made.rows if row.left and row.kind != "same"
    ]
    assert len(hunk_starts(rows)) == len(made.hunks) == len(hunk_starts(list(made.rows)))


def test_equal_texts_have_no_hunk() -> None:
    assert compare("a\nb", "a\nb").hunks == ()


def test_only_what_changed_inside_a_line_is_marked() -> None:
    left, right = inside("for (int j = 0; j < 64; ++j)", "for (int j = 0; j < 128; ++j)")
    assert ["for (int j = 0; j < 64; ++j)"[a:b] for a, b in left] == ["64"]
    assert ["for (int j = 0; j < 128; ++j)"[a:b] for a, b in right] == ["128"]
    assert inside("import torch", "#pragma omp simd") == ((), ())


@given(st.text(alphabet="abc {}\n\t\"'/*#", max_size=120))
def test_colouring_keeps_the_text(text: str) -> None:
    assert [plain(line) for line in colour(text)] == (text.expandtabs(4).replace("\r", "").splitlines() or [""])


def test_languages() -> None:
    assert language_of("import torch\n") == "python"
    assert language_of('#include <cmath>\nextern "C" void kernel()') == "c++"
    assert language_of("__global__ void k() {}") == "cuda"


@given(st.text(alphabet="abcdef", max_size=30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_marks_and_shift_change_no_letter(text: str, a: int, b: int, by: int) -> None:
    low, high = min(a, b), max(a, b)
    line = marked([(text[:7], "x"), (text[7:], "")], ((low, high),), "hot", "base")
    assert plain(line) == text
    assert "".join(part for part, style in line if "hot" in style) == text[low:high]
    assert plain(shifted(line, by)) == text[by:]


def test_a_row_fills_its_width_and_has_signs() -> None:
    made = compare("a = 1;\nsame", "a = 2;\nsame")
    line = split_row(made.rows[0], colour("a = 1;\nsame"), colour("a = 2;\nsame"), 81, 0, "│")
    assert width_of(line) == 81
    assert " - a = 1;" in plain(line) and " + a = 2;" in plain(line)
