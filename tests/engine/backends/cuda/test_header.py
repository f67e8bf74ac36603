"""Reading a candidate's file: the launches it declares, and errors that name the line and the remedy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.backends.cuda.expressions import Number, parse
from workbench_engine.backends.cuda.header import HeaderError, read_file
from workbench_engine.backends.cuda.launch import Pointer, Scalar, TensorMapArgument

FILE = """\
// flags: -use_fast_math -DTILE=4
// compiler: nvcc
/* workbench
workspace = ["4 * rows", { bytes = 4, zero = true }]

[[launch]]
kernel = "tiles::softmax<float,  4>"
grid = ["ceil_div(rows, 8)", 2]
block = 256
shared = "4 * cols"
when = "cols % 4 == 0"
arguments = ["in[0]", "out[0]", "workspace[1]", "rows", 7, "int64(rows * cols)", "float32(1.0 / cols)"]

[[launch]]
kernel = "finish"
grid = ["rows"]
block = [32, 4]
cluster = [2]
cooperative = true
arguments = []
*/
__global__ void finish() {}
"""


def test_a_file_is_read() -> None:
    file = read_file(FILE)
    assert file.flags == ("-use_fast_math", "-DTILE=4") and file.compiler == "nvcc" and file.text == FILE
    first, second = file.spec.launches
    assert file.spec.kernels == ("tiles::softmax<float, 4>", "finish")
    assert first.grid == (parse("ceil_div(rows, 8)"), Number(2)) and first.block == (Number(256),)
    assert first.arguments[:5] == (
        Pointer("in", 0),
        Pointer("out", 0),
        Pointer("workspace", 1),
        Scalar("int32", parse("rows")),
        Scalar("int32", Number(7)),
    )
    assert [a.dtype for a in first.arguments[5:] if isinstance(a, Scalar)] == ["int64", "float32"]
    assert first.when == parse("cols % 4 == 0") and not first.cooperative and first.cluster == ()
    assert second.cooperative and second.cluster == (Number(2),) and second.shared == Number(0)
    assert [(room.bytes, room.zero) for room in file.spec.workspace] == [(parse("4 * rows"), False), (Number(4), True)]


def test_a_tensor_map_is_an_argument() -> None:
    declared = '{ tensor_map = "in[0]", dtype = "bfloat16", shape = ["cols", "rows"], box = [64, 8], swizzle = "128B" }'
    file = read_file(FILE.replace('"in[0]"', declared, 1))
    (argument, *_) = file.spec.launches[0].arguments
    assert isinstance(argument, TensorMapArgument) and argument.of == Pointer("in", 0)
    assert argument.map.dtype == "bfloat16" and argument.map.swizzle == "128B" and argument.map.strides == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("-DTILE=4", "--include=/etc/passwd", "line 1: flag not allowed: --include=/etc/passwd; allowed: "),
        ("nvcc", "clang", "line 2: no compiler is called 'clang'; write nvrtc or nvcc"),
        ("/* workbench", "/* launches", "declares no launch: .* docs/cuda-kernels.md"),
        ("__global__", "/* workbench\n*/ __global__", "line 22: a second `/\\* workbench` comment"),
        ("block = 256", "block = 256,", "line 9, column 12: the workbench comment is no TOML"),
        ("grid = [", "gird = [", "line 8: launch 1, gird: unknown key 'gird'; did you mean 'grid'"),
        ("rows, 8)", "rows, )", "line 8: launch 1, grid: .* column 16"),
        ("[32, 4]", "[32, 4, 1, 1]", "line 17: launch 2, block: write a list of 1 to 3"),
        ('kernel = "finish"', 'kernel = "f(); g"', "line 15: launch 2, kernel: 'f\\(\\); g' is no name of a kernel"),
        ('"in[0]"', '"in[x]"', "line 12: launch 1, arguments: 'in\\[x\\]' is no pointer; write in\\[0\\]"),
        ('"in[0]"', "1.5", "line 12: launch 1, arguments: 1.5 has no type; write float32\\(1.5\\)"),
        ('"in[0]"', "true", "is no expression"),
        ("zero = true", "zero = 1", "line 4: .*write true or false"),
        ("workspace =", "workplace =", "line 4: workplace: unknown key 'workplace'; did you mean 'workspace'"),
        ('grid = ["rows"]\n', "", "line 14: launch 2: grid is missing"),
        ("[[launch]]", "[launch]", "TOML|table"),
    ],
)
def test_an_error_names_the_line_and_the_remedy(old: str, new: str, says: str) -> None:
    assert old in FILE
    with pytest.raises(HeaderError, match=says) as caught:
        read_file(FILE.replace(old, new, 1))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("flag", ["-I/etc", "-o", "@file", "-Xptxas=-v", "-lineinfo;id", "--pre-include=x", "-dc"])
def test_only_listed_flags_are_taken(flag: str) -> None:
    with pytest.raises(HeaderError, match="flag not allowed"):
        read_file(FILE.replace("-use_fast_math", flag))


def test_directives_stand_at_the_head_alone() -> None:
    file = read_file(FILE.replace("// compiler: nvcc\n", "") + "// compiler: nvcc\n// flags: -I/etc\n")
    assert file.compiler == "" and file.flags == ("-use_fast_math", "-DTILE=4")


@given(st.text(max_size=200), st.integers(0, len(FILE)))
def test_any_text_is_read_or_refused_in_one_line(noise: str, place: int) -> None:
    for text in (noise, FILE[:place] + noise + FILE[place:], FILE[:place]):
        try:
            read_file(text)
        except HeaderError as error:
            assert str(error) and "\n" not in str(error)
