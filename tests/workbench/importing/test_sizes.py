"""Numbers of a task's source: which may be cut, and that nothing else changes."""

from __future__ import annotations

import ast

from workbench.importing.sizes import changed, sizes, titled, with_sizes

SOURCE = """# größe: ä
batch_size = 1024 * 4
input_shape = (32768, 3)
N: int = 2 ** 12
M, K = 512, 2048
kernel_size = 31
num_groups = 32
hidden_size = 768
scale = 64.0
flag = True
dim = 1
name = "x"
twice = N * 2
"""


def test_plain_numbers_and_tuples_are_found() -> None:
    found = {size.label: size.value for size in sizes(SOURCE)}
    assert found == {
        "batch_size": 4096,
        "input_shape[0]": 32768,
        "N": 4096,
        "M": 512,
        "K": 2048,
        "hidden_size": 768,
    }


def test_roles_follow_names() -> None:
    roles = {size.label: size.role for size in sizes(SOURCE)}
    assert roles["batch_size"] == "batch"
    assert roles["hidden_size"] == "feature"
    assert roles["input_shape[0]"] == roles["N"] == "extent"


def test_only_the_wanted_numbers_change() -> None:
    known = sizes(SOURCE)
    cut = with_sizes(SOURCE, known, {"batch_size": 8, "input_shape[0]": 16, "K": 32})
    expected = SOURCE.replace("1024 * 4", "8").replace("32768", "16").replace("2048", "32")
    assert cut == expected
    assert changed(known, {"batch_size": 8, "N": 4096}) == ("batch_size 4096 → 8",)
    assert with_sizes(SOURCE, known, {}) == SOURCE


def test_what_does_not_parse_has_no_sizes() -> None:
    assert sizes("N = (") == []


def test_a_title_becomes_the_first_line_of_the_docstring() -> None:
    bare = titled("from __future__ import annotations\nN = 1\n", "cut: N 4 → 1")
    assert ast.get_docstring(ast.parse(bare)) == "cut: N 4 → 1."
    compile(bare, "bare", "exec")
    described = titled('"""What it is.\n\nMore."""\nfrom __future__ import annotations\nN = 1\n', 'cut "so"')
    said = ast.get_docstring(ast.parse(described)) or ""
    assert said.splitlines()[0] == "cut 'so'."
    assert "What it is." in said
    compile(described, "described", "exec")
