import pytest

from workbench_engine.search.novelty import fingerprint, normalised

KERNEL = """// flags: -O3 -ffast-math
#include <cmath>
extern "C" void kernel_run(const void* const* in, void* const* out, const long long* dim) {
  float a = 1.0f; /* block */ a += 2; // line
}
"""


def test_comments_and_white_space_do_not_make_a_new_kernel() -> None:
    same = KERNEL.replace("/* block */ ", "").replace(" // line", "\n\n").replace("a += 2", "a+=\t2")
    assert fingerprint(same) == fingerprint(KERNEL)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-O3", "-O2"),
        ("1.0f", "1.5f"),
        ("float a", "floata"),
        ("<cmath>", "<math.h>"),
        ("a += 2", "a + = 2"),
        ("#include <cmath>\n", "#include <cmath> "),
    ],
)
def test_what_the_compiler_sees_counts(old: str, new: str) -> None:
    assert fingerprint(KERNEL.replace(old, new)) != fingerprint(KERNEL)


def test_strings_keep_their_blanks_and_their_slashes() -> None:
    assert fingerprint('f("a  b");') != fingerprint('f("a b");')
    assert "//x" in normalised('f("//x"); // gone')
    assert "gone" not in normalised('f("//x"); // gone')


def test_python_keeps_its_indentation() -> None:
    a = "def f(x):\n    if x:\n        y = 1\n    return y\n"
    same = "# hi\n" + a.replace("    ", "  ").replace("= 1", "=  1  # c")
    assert fingerprint(a, "module") == fingerprint(same, "module")
    assert fingerprint(a, "module") != fingerprint(a.replace("    return", "        return"), "module")


def test_text_that_is_not_python_is_only_itself() -> None:
    assert fingerprint("def f(:\n  '", "module") == fingerprint("def f(:\n  '", "module")
    assert fingerprint("def f(:\n  '", "module") != fingerprint("def f(:\n   '", "module")


def test_kinds_do_not_collide() -> None:
    assert fingerprint("x", "kernel") != fingerprint("x", "module")
