"""The pure parts: settings, clock, gate, telemetry, host, decoding of saved state."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_engine.__main__ import main
from workbench_engine.conducting.clock import RunClock
from workbench_engine.conducting.gate import MOST_BYTES, Gate, static_fault
from workbench_engine.conducting.groups import Group, Member, Saved, decode_saved, encode_saved, survivors
from workbench_engine.conducting.opening import case_of
from workbench_engine.exits import ExitCode
from workbench_engine.host import cpu_name, host_card, meminfo
from workbench_engine.policies.contract import Context, Scored
from workbench_engine.settings import RunSettings, SettingsError, decode_settings, encode_settings
from workbench_engine.tasks.contract import ShapeCase, Task
from workbench_engine.telemetry import CpuSampler, clock_hz, cpu_times, utilisation
from workbench_sessions.events import Budget, DeviceSeen


@given(
    st.builds(
        RunSettings,
        task=st.text(min_size=1),
        source=st.text(),
        seed=st.integers(0, 2**31),
        budget=st.builds(Budget, evaluations=st.none() | st.integers(0, 10**6)),
        cores=st.just((0, 3)),
    )
)
def test_settings_come_back_whole(settings: RunSettings) -> None:
    assert decode_settings(encode_settings(settings)) == settings


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "task"),
        ("nonsense", "request"),
        ('{"task": "x", "islands": 0}', "islands"),
        ('{"task": "x", "promising": 0}', "promising"),
        ('{"task": "x", "mode": "chaos"}', "mode"),
        ('{"task": "x", "budget": {"seconds": -1}}', "seconds"),
    ],
)
def test_settings_that_cannot_be_used(text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        decode_settings(text)


def test_settings_of_a_newer_version_are_read() -> None:
    assert decode_settings('{"task": "x", "novelty": 1}').task == "x"


def test_the_clock_counts_running_only() -> None:
    now = 10.0
    clock = RunClock(5.0, lambda: now)
    assert clock.spent_s == 5.0
    clock.start()
    now = 13.0
    clock.start()
    assert clock.spent_s == 8.0
    clock.stop()
    now = 99.0
    clock.stop()
    assert clock.spent_s == 8.0


def test_the_gate_knows_what_it_has_seen() -> None:
    gate = Gate()
    gate.admit("c1", "int x;  // one", "kernel")
    assert gate.earlier("int   x;", "kernel") == "c1"
    assert gate.earlier("int y;", "kernel") is None


def test_static_faults() -> None:
    assert static_fault("int x;", "kernel") == ""
    assert "empty" in static_fault(" \n", "kernel")
    assert "NUL" in static_fault("a\0b", "module")
    assert "kind" in static_fault("x", "ranks")
    assert str(MOST_BYTES) in static_fault("x" * (MOST_BYTES + 1), "kernel")


def scored(name: str) -> Scored:
    return Scored(name, "text", None, 2.0, "FASTER", 0, 1)


def test_saved_state_comes_back_and_nonsense_is_none() -> None:
    group = Group(Context("t", 3, 0, (scored("a"),), (scored("b"),)), (Member("c1", 0), Member("c2", None)))
    saved = Saved(3, (group,), b"\x00policy")
    assert decode_saved(encode_saved(saved)) == saved
    assert decode_saved(None) is None
    assert decode_saved(b"\xc1") is None
    assert survivors((group,), {}, set()) == ()


def test_the_timed_case() -> None:
    cases = {n: ShapeCase(n, {}, ()) for n in ("gpu", "cpu")}
    task = Task("t", "t", "", "t.py", "float32", cases)
    assert case_of(task, "", "cpu").name == "cpu"
    assert case_of(task, "gpu", "cpu").name == "gpu"
    with pytest.raises(KeyError, match="known: gpu, cpu"):
        case_of(task, "tpu", "cpu")


STAT = "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 50 0 25 400 25 0 0 0 0 0\ncpu1 50 0 25 400 25 0 0 0 0 0\nintr 5\n"
LATER = "cpu  200 0 50 900 50 0 0 0 0 0\ncpu0 150 0 25 400 25 0 0 0 0 0\ncpu1 50 0 25 500 25 0 0 0 0 0\n"


def test_utilisation_between_two_readings() -> None:
    before, after = cpu_times(STAT), cpu_times(LATER)
    assert utilisation(before, after) == 0.5
    assert utilisation(before, after, "cpu0") == 1.0
    assert utilisation(before, after, "cpu1") == 0.0
    assert utilisation(before, before) is None
    assert utilisation(before, after, "cpu7") is None


def test_reading_a_machine(tmp_path: Path) -> None:
    proc, zone = tmp_path / "proc", tmp_path / "sys/class/thermal/thermal_zone0"
    proc.mkdir()
    zone.mkdir(parents=True)
    (proc / "stat").write_text(STAT)
    (proc / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    (proc / "loadavg").write_text("1.25 0 0 1/2 3\n")
    (proc / "cpuinfo").write_text("processor : 0\ncpu MHz : 2000.0\nprocessor : 1\ncpu MHz : 2500.5\n")
    (zone / "type").write_text("x86_pkg_temp\n")
    (zone / "temp").write_text("56000\n")
    sampler = CpuSampler(tmp_path)
    assert sampler.sample() == []
    for device in (DeviceSeen("cpu1", "cpu", "x"), DeviceSeen("gpu0", "cuda", "y")):
        sampler.watch(device)
    (proc / "stat").write_text(LATER)
    (reading,) = sampler.sample()
    assert (reading.device, reading.utilisation, reading.clock_hz) == ("cpu1", 0.0, 2500.5e6)
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (600 * 1024, 1000 * 1024)
    assert (reading.load, reading.temperature_c) == (1.25, 56.0)


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    sampler = CpuSampler(tmp_path)
    sampler.watch(DeviceSeen("cpu0", "cpu", "x"))
    (reading,) = sampler.sample()
    assert (reading.utilisation, reading.memory_total_bytes, reading.load, reading.temperature_c) == (None,) * 4
    assert clock_hz("") == {} and meminfo("") == {} and cpu_name("") == ""


def test_this_host() -> None:
    card = host_card()
    assert card.cores >= 1 and card.memory_bytes > 1 << 20 and card.python.startswith("3.")


def test_a_session_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "no.wb")]) == ExitCode.USAGE
    assert "no such session" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.wb"
    path.write_text("hello, this is not a database, it only has the name of one" * 10)
    assert main([str(path)]) == ExitCode.USAGE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
