from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.policies.llm.kernels import KERNEL, MODULE, answer

from workbench_engine.policies.llm.extract import Kind, blocks, extract_code, is_whole, sections, tidied, unbalanced

DRAFT = KERNEL.replace("2.0f", "3.0f")
FILES: list[tuple[Kind, str]] = [("kernel", KERNEL), ("module", MODULE)]
# Prose that opens no fence and looks like no code of ours.
PROSE = st.text(st.sampled_from("abc xyz.,:;!?\n()*-_#1"), max_size=200)


@pytest.mark.parametrize(("kind", "code"), FILES)
def test_a_tidy_answer(kind: Kind, code: str) -> None:
    text = answer(code)
    found = sections(text)
    assert (found.analysis, found.design) == ("Memory bound.", "One pass.")
    assert extract_code(text, kind).code == code


@pytest.mark.parametrize(("kind", "code"), FILES)
@given(before=PROSE, after=PROSE)
def test_prose_around_the_block_does_not_matter(kind: Kind, code: str, before: str, after: str) -> None:
    assert extract_code(f"{before}\n```\n{code}```\n{after}", kind).code == code


@pytest.mark.parametrize("fence", ["```cpp", "```c++", "```C++ title", "~~~", "````", "  ```cpp", "``` cpp"])
def test_fences_of_all_sorts(fence: str) -> None:
    mark = fence.strip().split("c")[0].split("C")[0].strip()
    assert extract_code(f"Here:\n{fence}\n{KERNEL}{mark}\n", "kernel").code == KERNEL


@pytest.mark.parametrize(
    "text",
    [
        f"## Design\nA draft:\n```cpp\n{DRAFT}```\n## Code\n```cpp\n{KERNEL}```\n",
        f"```cpp\n{DRAFT}```\nbetter:\n```cpp\n{KERNEL}```\n",
        f"## Code\n```bash\ng++ x.cpp\n```\n```cpp\n{KERNEL}```\nUse it:\n```cpp\nint main() {{}}\n```",
        f"## Code\n```cpp\n{KERNEL}```\n```cpp\n{DRAFT[:200]}\n```",
        f"### 3. Code (C++)\n\n{KERNEL}",
        f"Sure!\n\n{KERNEL}\nThis doubles everything.",
    ],
    ids=["draft", "two", "others", "second-cut", "no-fence-heading", "no-fence"],
)
def test_the_right_block_of_many(text: str) -> None:
    assert extract_code(text, "kernel").code == KERNEL


def test_a_module_without_fences_ends_before_the_prose() -> None:
    text = f"Here is it.\n\n{MODULE}\nThis is faster because it's simple.\n"
    assert extract_code(text, "module").code == MODULE


@given(st.integers(1, len(KERNEL) - 3))
def test_a_cut_kernel_is_never_taken_for_a_whole_one(length: int) -> None:
    text = f"## Code\n```cpp\n{KERNEL[:length]}"
    found = extract_code(text, "kernel", cut_off=True)
    assert found.code == ""
    assert "cut off" in found.problem


def test_a_whole_file_whose_fence_alone_is_missing_is_taken() -> None:
    assert extract_code(f"## Code\n```cpp\n{KERNEL}", "kernel", cut_off=True).code == KERNEL


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("I am sorry.", "holds no code block and defines"),
        ("```cpp\nint main() {}\n```", "none of the code blocks defines"),
        (f"```cpp\n{KERNEL.replace('dim[1]', 'dim[1')}```", "line"),
        (f"```cpp\n{KERNEL[:-2]}```", "never closed"),
    ],
)
def test_a_problem_says_what_to_mend(text: str, said: str) -> None:
    found = extract_code(text, "kernel")
    assert found.code == "" and said in found.problem
    assert "\n" not in found.problem


def test_a_module_that_does_not_parse_is_named_by_its_line() -> None:
    assert "line 6" in extract_code(answer(MODULE.replace("-> torch.Tensor:", "-> ("), "python"), "module").problem


@given(st.text(max_size=400), st.sampled_from(["kernel", "module"]), st.booleans())
def test_no_text_is_an_exception(text: str, kind: Kind, cut_off: bool) -> None:
    found = extract_code(text, kind, cut_off)
    assert bool(found.code) != bool(found.problem)
    assert not found.code or is_whole(found.code, kind)
    sections(text)


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("## Performance analysis", "analysis"),
        ("**Performance Analysis**", "analysis"),
        ("1. Performance analysis:", "analysis"),
        ("### Section 2: Algorithm Design", "design"),
        ("__Algorithm design__", "design"),
        ("Design:", "design"),
    ],
)
def test_headings_of_all_sorts(heading: str, field: str) -> None:
    assert getattr(sections(f"{heading}\nbody\n\n## Code\n```\nx\n```"), field) == "body"


def test_headings_inside_code_do_not_count() -> None:
    text = "## Algorithm design\nreal\n## Code\n```python\n# Analysis\nx = 1\n```"
    assert sections(text).analysis == ""


@given(st.lists(st.tuples(st.sampled_from(["", "cpp", "python"]), PROSE), max_size=5))
def test_blocks_come_back_as_they_were(parts: list[tuple[str, str]]) -> None:
    text = "".join(f"prose\n```{language}\n{body}\n```\n" for language, body in parts)
    assert [(b.language, b.text, b.closed) for b in blocks(text)] == [(la, f"{body}\n", True) for la, body in parts]


@pytest.mark.parametrize(
    ("code", "fine"),
    [
        ("int f() { return '}' + 1'000; }", True),
        ('const char* s = "}{"; // }\n/* { */', True),
        ('auto s = R"x(}}})x";', True),
        ("#ifdef A\nfor (;;) {\n#else\nwhile (1) {\n#endif\n}", True),
        ("#if A\n{\n#if B\n{\n#else\n{{\n#endif\n}\n#endif\n}", True),
        ("#ifdef A\n{\n#endif\nx\n#ifdef A\n}\n#endif", True),
        ("#ifdef A\nfor (;;) {\n#else\nwhile (1) {\n#endif\n", False),
        ("int f() { (] }", False),
        ("}", False),
        ("{{}", False),
    ],
)
def test_brackets_in_literals_do_not_count(code: str, fine: bool) -> None:
    assert (unbalanced(code) == "") == fine


@given(PROSE)
def test_tidying_twice_changes_nothing(text: str) -> None:
    assert tidied(tidied(text)) == tidied(text)
