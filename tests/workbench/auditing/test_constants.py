from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from workbench.auditing.constants import constants, override, parse

SOURCE = """# é comment before
batch_size = 16  # kept
N, M = 4 * 1024, 2
dim: int = 256
name = "batch_size"
flag = True
ratio = 1.5
other = N // 2

class Model:
    batch_size = 3
    def f(self):
        dim = 9
"""


def test_module_level_integers_change_and_nothing_else() -> None:
    text, changes = override(SOURCE, {"batch_size": 4, "N": 8, "dim": 32, "flag": 7, "ratio": 9, "absent": 1})
    assert changes == ["batch_size 16 → 4", "N 4 * 1024 → 8", "dim 256 → 32"]
    expected = SOURCE.replace("batch_size = 16", "batch_size = 4").replace("4 * 1024", "8").replace("256", "32")
    assert text == expected


def test_characters_before_a_number_do_not_shift_it() -> None:
    assert override("s = 'é'; batch = 10; t = 'ü'", {"batch": 123})[0] == "s = 'é'; batch = 123; t = 'ü'"
    assert override("a = b = 5\r\nx = 1\r\n", {"b": 6, "x": 2})[0] == "a = 6\nx = 2\n".replace("a = 6", "a = b = 6")


def test_a_chained_name_is_one_edit() -> None:
    assert override("a = a = 5", {"a": 6}) == ("a = a = 6", ["a 5 → 6"])


def test_what_does_not_parse_is_left_alone() -> None:
    assert override("batch_size = (", {"batch_size": 4}) == ("batch_size = (", [])
    assert isinstance(parse("x\0"), str) and isinstance(parse("(" * 500), str)
    assert isinstance(parse("-" * 100_000 + "1"), str | ast.Module)


def test_constants_are_the_last_plain_bindings() -> None:
    tree = parse("a = 1\na = 2\nb = a\nc = True\nd, e = 3, 4\n")
    assert isinstance(tree, ast.Module)
    assert constants(tree) == {"a": 2, "d": 3, "e": 4}


names = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(names, st.integers(0, 10**6)), max_size=6), st.dictionaries(names, st.integers(-5, 99)))
def test_afterwards_the_constants_are_what_was_asked_for(pairs: list[tuple[str, int]], values: dict[str, int]) -> None:
    source = "\n".join(f"{name} = {value}" for name, value in pairs)
    scope: dict[str, int] = {}
    exec(override(source, values)[0], scope)
    assert {n: scope[n] for n, _ in pairs} == {n: values.get(n, v) for n, v in dict(pairs).items()}
