"""The file: one writer, many readers, kills, full disks, and files that are not ours."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench_sessions import events as ev
from workbench_sessions import synthetic
from workbench_sessions.commands import Accept, Pause, UnreadableCommand
from workbench_sessions.errors import (
    DamagedSession,
    EngineBusy,
    NewerSession,
    NotASession,
    SessionError,
    SessionExists,
    SessionFull,
    SessionMissing,
    SourceMissing,
)
from workbench_sessions.fold import fold_all
from workbench_sessions.log import SessionReader, SessionWriter, engine_alive, engine_lock, send_command
from workbench_sessions.projection import Projection

WRITER = """
import itertools, sys
from workbench_sessions.events import WarningRaised
from workbench_sessions.log import SessionWriter
with SessionWriter.create(sys.argv[1], "{}", checkpoint_every=50) as writer:
    for n in itertools.count():
        last = writer.append([WarningRaised(text=f"{n}.{i}") for i in range(1 + n % 7)])[-1].seq
        print(last, flush=True)
        if last >= int(sys.argv[2]):
            break
"""
HOLDER = """
import sys
from workbench_sessions.log import engine_lock
lock = engine_lock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def running(code: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stdout is not None
    return iter(process.stdout)


def warnings(count: int) -> list[ev.Event]:
    return [ev.WarningRaised(text=str(n)) for n in range(count)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.wb"


def test_create_is_private_and_never_overwrites(path: Path) -> None:
    SessionWriter.create(path, '{"task": "x"}').close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(SessionExists):
        SessionWriter.create(path, "{}")
    with SessionWriter.open(path) as writer:
        assert writer.request() == '{"task": "x"}'
    with SessionReader(path) as reader:
        assert reader.request() == '{"task": "x"}'


def test_sources_are_kept_by_content(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        sha = writer.put_source("int x; // é")
        assert writer.put_source("int x; // é") == sha == synthetic.sha256("int x; // é")
        with SessionReader(path) as reader:
            assert reader.source(sha) == "int x; // é"
            with pytest.raises(SourceMissing):
                reader.source("0" * 64)


def test_lone_surrogates_in_a_text_cost_their_characters_only(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        writer.append([ev.WarningRaised(text="bad \udcff byte")])
        writer.put_source("bad \udcff byte")
        with SessionReader(path) as reader:
            event = reader.events(0, 1)[0].event
    assert isinstance(event, ev.WarningRaised) and event.text.startswith("bad ") and event.text.endswith(" byte")


def test_each_command_is_taken_once_and_an_unreadable_one_comes_too(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        assert writer.take_commands() == []
        first = send_command(path, Accept("c1", "good"))
        with sqlite3.connect(path) as raw:
            raw.execute("INSERT INTO commands (at, kind, body) VALUES (0, 'Dance', '{\"type\":\"Dance\"}')")
        raw.close()
        last = send_command(path, Pause())
        taken = writer.take_commands()
        assert [number for number, _ in taken] == [first, first + 1, last]
        assert taken[0][1] == Accept("c1", "good") and taken[2][1] == Pause()
        unreadable = taken[1][1]
        assert isinstance(unreadable, UnreadableCommand) and unreadable.kind == "Dance"
        assert writer.take_commands() == []


def test_a_command_needs_a_session(path: Path) -> None:
    with pytest.raises(SessionMissing):
        send_command(path, Pause())
    assert not path.exists()


def test_state_is_the_last_one_put(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        assert writer.get_state("policy") is None
        writer.put_state("policy", b"\x00one")
        writer.put_state("policy", b"\x00two")
    with SessionWriter.open(path) as writer:
        assert writer.get_state("policy") == b"\x00two"


def test_time_never_runs_backwards_and_is_searchable(path: Path) -> None:
    times = iter([(10.0, 0.0), (12.0, 1.0), (11.0, 2.0), (20.0, 3.0)])
    with SessionWriter.create(path, "{}", clock=lambda: next(times)) as writer:
        assert [one.at_s for one in writer.append(warnings(4))] == [10.0, 12.0, 12.0, 20.0]
        assert [one.mono_s for one in SessionReader(path).events(0, 9)] == [0.0, 1.0, 2.0, 3.0]
        with SessionReader(path) as reader:
            assert [reader.seq_at_time(t) for t in (0.0, 10.0, 11.9, 12.0, 19.0, 99.0)] == [1, 1, 1, 3, 3, 4]


def test_details_and_pairs_come_from_the_file_up_to_an_instant(path: Path) -> None:
    origin = ev.Origin(policy="random")
    batch = ev.PairsTimed("c0", "cpu0", "search", [1.0], [2.0])
    with SessionWriter.create(path, "{}") as writer:
        writer.append([ev.CandidateProposed("c0", "kernel", "", origin, 0, 0, point={"tile": 8}), batch])
        writer.append([batch, ev.BuildFinished("c0", True, 0.2, log="fine")])
        writer.append([ev.PairsTimed("c0", "cpu0", "final", [3.0], [4.0])])
    with SessionReader(path) as reader:
        assert [(s.phase, s.reference_s) for s in reader.pair_series("c0")] == [
            ("search", [1.0, 1.0]),
            ("final", [3.0]),
        ]
        assert [s.reference_s for s in reader.pair_series("c0", upto=2)] == [[1.0]]
        assert reader.details("c0").build_log == "fine" and reader.details("c0").point == {"tile": 8}
        assert reader.details("c0", upto=3).build_log == ""
        assert reader.details("nobody").point is None and reader.pair_series("nobody") == []


def test_two_readers_see_every_event_of_a_writer_in_another_process(path: Path) -> None:
    SessionWriter.create(path.with_name("warm.wb"), "{}").close()
    with running(WRITER, path, 2000) as process:
        next(lines(process))
        readers = [SessionReader(path), SessionReader(path)]
        positions, versions = [0, 0], [readers[0].data_version(), readers[1].data_version()]
        projections = [Projection(), Projection()]
        while min(positions) < 2000:
            for n, reader in enumerate(readers):
                seen = reader.events(positions[n], 100 + 50 * n)
                assert [one.seq for one in seen] == list(range(positions[n] + 1, positions[n] + 1 + len(seen)))
                fold_all(projections[n], seen)
                positions[n] += len(seen)
        assert all(reader.data_version() != version for reader, version in zip(readers, versions, strict=True))
        head = readers[0].head_seq()
        for n, reader in enumerate(readers):
            fold_all(projections[n], reader.events(positions[n], 5000))
            assert projections[n] == reader.project_at(head)
            reader.close()


@pytest.mark.parametrize("acknowledged", [1, 7, 40, 150])
def test_a_killed_writer_loses_nothing_it_acknowledged(path: Path, acknowledged: int) -> None:
    with running(WRITER, path, 10**9) as process:
        last = 0
        for _, line in zip(range(acknowledged), lines(process), strict=False):
            last = int(line)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with SessionReader(path) as reader:
        head = reader.head_seq()
        assert head >= last > 0
        events = reader.events(0, head)
        assert [one.seq for one in events] == list(range(1, head + 1))
        assert reader.project_at(head) == fold_all(Projection(), events)
    with SessionWriter.open(path) as writer:
        assert writer.append(warnings(1))[0].seq == head + 1


def test_a_full_disk_keeps_what_is_there_and_goes_on_when_there_is_room(path: Path) -> None:
    writer = SessionWriter.create(path, "{}", checkpoint_every=20)
    writer.append(warnings(30))
    pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
    writer._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(SessionFull, match="free some space"):
        for _ in range(200):
            writer.append([ev.WarningRaised(text="x" * 1000)] * 5)
    with SessionReader(path) as reader:
        head = reader.head_seq()
        assert head >= 30 and reader.project_at(head) == writer.projection
    writer._connection.execute("PRAGMA max_page_count = 1000000")
    assert writer.append(warnings(1))[0].seq == head + 1
    writer.close()


def test_checkpoints_of_another_version_are_not_believed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthetic.write_session(path, 60)
    with SessionReader(path) as reader:
        want = reader.project_at(reader.head_seq())
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE checkpoints SET body = x'00' WHERE seq = (SELECT MAX(seq) FROM checkpoints)")
        raw.execute("DELETE FROM blocks WHERE id % 2 = 0")
    raw.close()
    with SessionReader(path) as reader:
        assert reader.project_at(want.seq) == want
    monkeypatch.setattr("workbench_sessions.checkpoints.FINGERPRINT", "other")
    with SessionReader(path) as reader:
        assert reader.project_at(want.seq) == want
    with SessionWriter.open(path) as writer:
        assert writer.projection == want


def test_blocks_that_did_not_change_are_stored_once(path: Path) -> None:
    synthetic.write_session(path, 600)
    raw = sqlite3.connect(path)
    blocks, size = raw.execute("SELECT COUNT(*), SUM(LENGTH(body)) FROM blocks").fetchone()
    checkpoints = raw.execute("SELECT COUNT(*) FROM checkpoints").fetchone()[0]
    events = raw.execute("SELECT SUM(LENGTH(body)) FROM events").fetchone()[0]
    raw.close()
    assert checkpoints >= 10 and blocks < 30 * checkpoints and size < events


def test_seeks_across_blocks_agree_with_the_fold(path: Path) -> None:
    synthetic.write_session(path, 500)
    with SessionReader(path) as reader:
        head = reader.head_seq()
        events = reader.events(0, head)
        for seq in (head, 1, head // 2, 1000, 1001, 2999, 7000, 2, head - 1):
            assert reader.project_at(seq) == fold_all(Projection(), events[:seq])


def test_the_engine_lock_is_exclusive_and_dies_with_its_process(path: Path) -> None:
    SessionWriter.create(path, "{}").close()
    assert not engine_alive(path)
    with running(HOLDER, path) as process:
        assert next(lines(process)).strip() == "held"
        assert engine_alive(path)
        with pytest.raises(EngineBusy, match=str(process.pid)):
            engine_lock(path)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not engine_alive(path)
        with engine_lock(path):
            assert engine_alive(path)
            with pytest.raises(EngineBusy):
                engine_lock(path)
        assert not engine_alive(path)


def test_a_closed_session_is_one_file(path: Path) -> None:
    synthetic.write_session(path, 5)
    assert [p.name for p in path.parent.iterdir()] == ["s.wb"]


def test_a_session_closed_under_a_viewer_is_whole_in_its_file(path: Path, tmp_path: Path) -> None:
    writer = SessionWriter.create(path, "{}")
    with SessionReader(path) as viewer:
        viewer.head_seq()
        writer.append(warnings(9))
        writer.close()
        copy = tmp_path / "copy.wb"
        shutil.copyfile(path, copy)
        assert viewer.head_seq() == 9
    with SessionReader(copy) as reader:
        assert reader.project_at(9).log[-1].text == "8"


def test_a_file_in_a_folder_that_cannot_be_written_opens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As left by a copy of a running session, in WAL mode; a folder without permission would not stop a superuser.
    synthetic.write_session(path, 5)
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
    raw.close()
    monkeypatch.setattr("workbench_sessions.connection.os.access", lambda *_: False)
    with SessionReader(path) as reader:
        assert reader.project_at(reader.head_seq()).counts.proposed == 5
        assert [p.name for p in path.parent.iterdir()] == ["s.wb"]


def test_a_second_writer_is_stopped_and_gets_back_in_step(path: Path) -> None:
    with SessionWriter.create(path, "{}") as first, SessionWriter.open(path) as second:
        first.append(warnings(3))
        with pytest.raises(EngineBusy):
            second.append(warnings(1))
        assert second.projection == first.projection
        assert second.append(warnings(1))[0].seq == 4


def test_files_that_are_no_sessions_say_so(tmp_path: Path) -> None:
    text, empty, other, folder = (tmp_path / name for name in ("text.wb", "empty.wb", "other.wb", "folder.wb"))
    text.write_text("not a database at all, but long enough to look at" * 50)
    empty.touch()
    folder.mkdir()
    with sqlite3.connect(other) as raw:
        raw.execute("CREATE TABLE events (a)")
    raw.close()
    for path in (text, empty, other, folder):
        for opened in (SessionReader, SessionWriter.open):
            with pytest.raises(NotASession) as caught:
                opened(path)
            assert "\n" not in str(caught.value) and path.name in str(caught.value)
    for opened in (SessionReader, SessionWriter.open):
        with pytest.raises(SessionMissing):
            opened(tmp_path / "nowhere.wb")


def test_a_newer_file_asks_for_an_upgrade(path: Path) -> None:
    SessionWriter.create(path, "{}").close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    raw.close()
    with pytest.raises(NewerSession, match="upgrade"):
        SessionReader(path)


def use(path: Path) -> None:
    with SessionReader(path) as reader:
        head = reader.head_seq()
        projection = reader.project_at(head)
        reader.project_at(head // 2)
        for name in list(projection.candidates)[:3]:
            reader.details(name), reader.pair_series(name)
        reader.seq_at_time(projection.at_s - 1)


@pytest.mark.parametrize("kept", [0.001, 0.05, 0.3, 0.6, 0.9, 0.999])
def test_a_truncated_file_is_called_damaged(path: Path, kept: float) -> None:
    synthetic.write_session(path, 40)
    os.truncate(path, int(path.stat().st_size * kept))
    with pytest.raises((DamagedSession, NotASession)):
        use(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=64)), min_size=1, max_size=8)
)
def test_a_scribbled_file_opens_or_fails_with_one_line(path: Path, scribbles: list[tuple[float, bytes]]) -> None:
    path.unlink(missing_ok=True)
    synthetic.write_session(path, 12)
    data = bytearray(path.read_bytes())
    for place, noise in scribbles:
        start = int(place * len(data))
        data[start : start + len(noise)] = noise
    path.write_bytes(data)
    try:
        use(path)
    except SessionError as error:
        assert "\n" not in str(error)
