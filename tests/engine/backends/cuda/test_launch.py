"""Launches in numbers: what the card would refuse is refused here, by name."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.backends.cuda.arch import Capacity, arch_of, capacity_of
from workbench_engine.backends.cuda.header import read_file
from workbench_engine.backends.cuda.launch import LaunchError, Plan, Pointer, ScalarValue, TensorMapEncoding, plan

DIMS = {"rows": 1000, "cols": 2048}
HOPPER = capacity_of("sm_90a")


def planned(body: str, dims: dict[str, int] = DIMS, capacity: Capacity = HOPPER, top: str = "") -> Plan:
    defaults = {"kernel": '"k"', "grid": '["rows"]', "block": "[256]", "arguments": '["in[0]", "out[0]"]'}
    given_keys = {line.partition("=")[0].strip() for line in body.splitlines()}
    rest = "\n".join(f"{key} = {value}" for key, value in defaults.items() if key not in given_keys)
    file = read_file(f"/* workbench\n{top}\n[[launch]]\n{body}\n{rest}\n*/\n")
    return plan(file.spec, dims, 2, 1, capacity)


def test_expressions_become_numbers() -> None:
    made = planned(
        'grid = ["ceil_div(rows, 8)", "2"]\nblock = [32, 8]\nshared = "4 * cols"\ncluster = [1, 2]\n'
        'arguments = ["in[1]", "workspace[0]", "rows", "int64(rows * cols)", "float32(1 / cols)", "float64(1e-5)"]',
        top='workspace = ["4 * rows", { bytes = 8, zero = true }]',
    )
    (launch,) = made.launches
    assert launch.grid == (125, 2, 1) and launch.block == (32, 8, 1) and launch.cluster == (1, 2, 1)
    assert launch.shared_bytes == 8192 and made.workspace == ((4000, False), (8, True))
    assert launch.arguments == (
        Pointer("in", 1),
        Pointer("workspace", 0),
        ScalarValue("int32", struct.pack("<i", 1000)),
        ScalarValue("int64", struct.pack("<q", 2_048_000)),
        ScalarValue("float32", struct.pack("<f", 1 / 2048)),
        ScalarValue("float64", struct.pack("<d", 1e-5)),
    )


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('block = ["cols"]', r"launch 1 \(k\), block: x is 2048; it must be between 1 and 1024"),
        ("block = [32, 33]", "block: 1056 threads; a block has at most 1024"),
        ("block = [1, 1, 65]", "z is 65; it must be between 1 and 64"),
        ('grid = ["rows // 2000"]', "grid: x is 0"),
        ('grid = [1, "rows * 100"]', "grid: y is 100000; it must be between 1 and 65535"),
        ('shared = "cols * 120"', r"shared: \(cols \* 120\) = 245760 bytes; a block has at most 232448"),
        ('shared = "-4"', "shared: -4 = -4 bytes"),
        ('grid = ["row"]', "grid: no dim is called 'row'; known: rows, cols"),
        ('arguments = ["in[2]"]', r"argument 0: there is no in\[2\]; there is in\[0\] to in\[1\]"),
        ('arguments = ["workspace[0]"]', r"there is no workspace\[0\]; there is none"),
        ('arguments = ["rows * cols * 2000"]', r"does not fit into int32; write int64\("),
        ('arguments = ["float32(1e39)"]', "does not fit into float32"),
        ("cluster = [3]", r"the grid \(1000, 1, 1\) is no multiple of \(3, 1, 1\)"),
        ("cluster = [4, 8]", "more than 16 blocks"),
        ('when = "cols == 1"', "no launch is left"),
    ],
)
def test_what_cannot_be_launched_is_named(body: str, says: str) -> None:
    with pytest.raises(LaunchError, match=says) as caught:
        planned(body)
    assert "\n" not in str(caught.value)


def test_a_skipped_launch_is_not_looked_at() -> None:
    text = '/* workbench\n[[launch]]\nkernel="wide"\ngrid=["rows // 2000"]\nblock=128\nwhen="cols % 4 == 0"\n'
    text += "arguments=[]\n"
    text += '[[launch]]\nkernel="any"\ngrid=1\nblock=128\nwhen="cols % 4"\narguments=[]\n*/'
    spec = read_file(text).spec
    assert [one.kernel for one in plan(spec, {"rows": 7, "cols": 129}, 1, 1, HOPPER).launches] == ["any"]
    with pytest.raises(LaunchError, match=r"launch 1 \(wide\), grid"):
        plan(spec, {"rows": 7, "cols": 128}, 1, 1, HOPPER)


def test_an_older_card_takes_less() -> None:
    with pytest.raises(LaunchError, match="at most 101376"):
        planned('shared = "60 * cols"', capacity=capacity_of("sm_89"))
    with pytest.raises(LaunchError, match="clusters need compute capability"):
        planned("cluster = [2]", capacity=capacity_of("sm_80"))
    assert planned('shared = "60 * cols"').launches[0].shared_bytes == 122_880
    assert (arch_of(9, 0), arch_of(8, 6), arch_of(12, 1)) == ("sm_90a", "sm_86", "sm_121a")


def tensor_map(extra: str = "", box: str = "[32, 8]", dtype: str = "float32") -> str:
    return (
        f'arguments = [{{ tensor_map = "in[0]", dtype = "{dtype}", shape = ["cols", "rows"], box = {box}{extra} }}]\n'
    )


def test_a_tensor_map_in_numbers() -> None:
    (argument,) = planned(tensor_map(', swizzle = "128B"')).launches[0].arguments
    assert isinstance(argument, TensorMapEncoding)
    assert (argument.map.shape, argument.map.strides, argument.map.box) == ((2048, 1000), (8192,), (32, 8))


@pytest.mark.parametrize(
    ("body", "dims", "says"),
    [
        (tensor_map(), {"rows": 7, "cols": 129}, "multiple of 16 bytes; guard the launch with `when`"),
        (tensor_map(box="[3, 8]"), DIMS, "12 bytes; it must be a multiple of 16"),
        (tensor_map(', swizzle = "64B"'), DIMS, "128 bytes, more than swizzle 64B"),
        (tensor_map(box="[512, 1]"), DIMS, "each extent must be between 1 and 256"),
    ],
)
def test_the_rules_of_a_tensor_map(body: str, dims: dict[str, int], says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        planned(body, dims)


SIZES = st.sampled_from(["rows", "cols", "rows * cols", "ceil_div(cols, 128)", "rows - cols", "cols // rows", "0", "7"])


@given(SIZES, SIZES, SIZES, SIZES, st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_a_plan_keeps_the_limits_or_is_refused(
    grid: str, block: str, shared: str, number: str, rows: int, cols: int
) -> None:
    body = f'grid = ["{grid}"]\nblock = ["{block}"]\nshared = "{shared}"\narguments = ["in[0]", "{number}"]'
    try:
        (launch,) = planned(body, {"rows": rows, "cols": cols}).launches
    except LaunchError:
        return
    assert 1 <= launch.grid[0] < 2**31 and 1 <= launch.block[0] <= 1024 and 0 <= launch.shared_bytes <= 232_448
    assert isinstance(launch.arguments[1], ScalarValue) and len(launch.arguments[1].packed) == 4
