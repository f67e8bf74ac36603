"""Listing, finding, deleting and exporting sessions."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from workbench_sessions import events as ev
from workbench_sessions import synthetic
from workbench_sessions.commands import Steer
from workbench_sessions.errors import EngineBusy, SessionError, SessionExists, SessionMissing
from workbench_sessions.export import (
    compact,
    export_candidates_csv,
    export_events_jsonl,
    export_sources,
    redactor,
)
from workbench_sessions.log import SessionReader, SessionWriter, engine_lock, send_command
from workbench_sessions.store import bundled_sessions, delete_session, find_session, list_sessions

SECRET = "sk-proj-abcdefghijklmnop1234"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write_session(tmp_path_factory.mktemp("recorded") / "softmax.wb", 120)


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """A session that holds what must not leave."""
    path = tmp_path / "leaky.wb"
    beats = synthetic.timeline(3)
    opened = next(beats).event
    assert isinstance(opened, ev.SessionOpened)
    host = ev.HostCard("secretbox", "cpu", 2, 1, "Linux", "3.11", "none", "g++")
    fields = {name: getattr(opened, name) for name in opened.__struct_fields__}
    fields |= {"host": host, "output_dir": "/home/ada/kernels"}
    with SessionWriter.create(path, json.dumps({"out": "/home/ada/kernels", "api_key": "hunter22"})) as writer:
        text = f"// from /home/ada/x.cpp on secretbox with {SECRET}\nint token = next(tokens);\n"
        sha = writer.put_source(text)
        writer.append([ev.SessionOpened(**fields), ev.WarningRaised(text=f'"Authorization: Bearer {SECRET}" failed')])
        writer.append([ev.CandidateProposed("c0", "kernel", sha, ev.Origin(policy="person"), 0, 0)])
        writer.append([ev.BuildFinished("c0", False, 0.1, log="/home/ada/k.cpp:1: error")])
        writer.put_state("policy", SECRET.encode())
    send_command(path, Steer(text=f"use {SECRET}"))
    return path


def leaks(text: str) -> list[str]:
    return [word for word in (SECRET, "ada", "secretbox", "hunter22") if word in text]


def test_a_list_shows_the_newest_first_and_broken_files_as_rows(tmp_path: Path) -> None:
    synthetic.write_session(tmp_path / "old.wb", 20)
    with SessionWriter.create(tmp_path / "new.wb", "{}") as writer, engine_lock(tmp_path / "new.wb"):
        writer.append([next(synthetic.events(1)), ev.PhaseChanged("running")])
        (tmp_path / "broken.wb").write_text("nonsense " * 500)
        (tmp_path / "notes.txt").write_text("not a session")
        rows = list_sessions(tmp_path)
    assert [row.name for row in rows] == ["new", "old", "broken"]
    new, old, broken = rows
    assert new.engine_alive and not new.interrupted and new.phase == "running"
    assert not list_sessions(tmp_path)[0].engine_alive and list_sessions(tmp_path)[0].interrupted
    with SessionReader(tmp_path / "old.wb") as reader:
        p = reader.project_at(reader.head_seq())
    assert p.best is not None
    assert (old.best, old.best_speedup) == (p.best, p.candidates[p.best].speedup)
    assert (old.evaluations, old.candidates, old.outcome, old.task) == (20, 20, "budget", "softmax_rows")
    assert old.size_bytes == (tmp_path / "old.wb").stat().st_size and not old.interrupted
    assert broken.error and "\n" not in broken.error and not broken.interrupted
    assert list_sessions(tmp_path / "nowhere") == []


def test_a_killed_writer_leaves_a_row_that_is_up_to_date(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path / "s.wb", "{}")
    writer.append(list(synthetic.events(5))[:-2])
    row = list_sessions(tmp_path)[0]
    assert row.evaluations == 5 and row.phase == "running" and row.interrupted
    writer.close()


def test_sessions_are_found_by_path_name_and_beginning(tmp_path: Path) -> None:
    for name in ("softmax-1", "softmax-2", "rmsnorm-1"):
        SessionWriter.create(tmp_path / f"{name}.wb", "{}").close()
    folders = [tmp_path / "nowhere", tmp_path]
    assert find_session(folders, str(tmp_path / "rmsnorm-1.wb")) == tmp_path / "rmsnorm-1.wb"
    assert find_session(folders, "softmax-2").name == find_session(folders, "softmax-2.wb").name == "softmax-2.wb"
    assert find_session(folders, "rms").name == "rmsnorm-1.wb"
    with pytest.raises(SessionError, match="softmax-1, softmax-2"):
        find_session(folders, "softmax")
    with pytest.raises(SessionError, match="did you mean rmsnorm-1"):
        find_session(folders, "rnsnorm-1")
    with pytest.raises(SessionMissing, match="sessions list"):
        find_session(folders, "qqq")


def test_deleting_takes_the_side_files_but_not_from_under_an_engine(tmp_path: Path) -> None:
    path = tmp_path / "s.wb"
    SessionWriter.create(path, "{}").close()
    with engine_lock(path), pytest.raises(EngineBusy):
        delete_session(path)
    assert path.exists()
    delete_session(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SessionMissing):
        delete_session(path)


def test_bundled_sessions_all_open() -> None:
    for path in bundled_sessions():
        with SessionReader(path) as reader:
            assert reader.project_at(reader.head_seq()).header.task is not None


def test_redaction_takes_secrets_and_leaves_code() -> None:
    redact = redactor("box7")
    for text in ("sk-abcdef123456", "Bearer abc.def", "hf_abcdefghijklmnop", 'API_KEY="0123456789abcdefXYZ"'):
        assert "[redacted]" in redact(text) and redact(redact(text)) == redact(text)
    assert redact("/home/joe/a /Users/joe/b /root/c") == "~/a ~/b ~/c"
    assert redact("box7 box70 abox7") == "[host] box70 abox7"
    for code in ("token = next(tokens)", "task-1 risk-abcdefgh", "float secret = password * 2;", "x / root"):
        assert redact(code) == code


def test_exported_events_are_complete_and_readable_json(recorded: Path) -> None:
    out = io.StringIO()
    count = export_events_jsonl(recorded, out)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(rows) == count and [row["seq"] for row in rows] == list(range(1, count + 1))
    told = list(synthetic.events(120))
    private = (ev.SessionOpened, ev.HumanAccepted)
    for row, one in zip(rows, told, strict=True):
        if not isinstance(one, private):
            assert ev.decode(row["kind"], json.dumps(row["body"])) == one


def test_no_folder_of_this_machine_and_no_host_name_leave(tmp_path: Path) -> None:
    path, out = tmp_path / "a.wb", tmp_path / "out.wb"
    synthetic.write_session(path, candidates=5)
    with SessionWriter.open(path) as writer:
        writer.append([ev.HumanAccepted("c00001", path="/srv/data/me/c00001.cpp")])
    compact(path, out)
    with SessionReader(out) as reader:
        bodies = [ev.encode(one.event) for one in reader.events(0, 10_000)]
        header = reader.project_at(reader.head_seq()).header
    assert not any("/srv/data" in body for body in bodies)
    assert any("[folder]/c00001.cpp" in body for body in bodies)
    assert header.host is not None and header.host.hostname == "[host]"


def test_exported_candidates_have_a_row_each(recorded: Path) -> None:
    out = io.StringIO()
    assert export_candidates_csv(recorded, out) == 120
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    with SessionReader(recorded) as reader:
        p = reader.project_at(reader.head_seq())
    assert [row["id"] for row in rows] == list(p.candidates)
    for row in rows:
        speedup = p.candidates[row["id"]].speedup
        assert row["speedup"] == ("" if speedup is None else str(speedup))
    assert json.loads(next(row["point"] for row in rows if row["point"])).keys() == synthetic.DIMENSIONS.keys()


def test_exported_sources_are_files_inside_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "s.wb"
    with SessionWriter.create(path, "{}") as writer:
        sha = writer.put_source("int x;")
        writer.append([ev.CandidateProposed("../../c0", "kernel", sha, ev.Origin(policy="llm"), 0, 0)])
        writer.append([ev.CandidateProposed("c1", "module", "0" * 64, ev.Origin(policy="llm"), 0, 0)])
    assert export_sources(path, tmp_path / "out" / "deep") == 1
    files = list((tmp_path / "out").rglob("*.cpp"))
    assert [file.read_text() for file in files] == ["int x;"] and files[0].parent == tmp_path / "out" / "deep"


def test_nothing_secret_leaves_by_any_export(leaky: Path, tmp_path: Path) -> None:
    assert leaks(leaky.read_bytes().decode("latin-1")) == [SECRET, "ada", "secretbox", "hunter22"]
    lines, table = io.StringIO(), io.StringIO()
    export_events_jsonl(leaky, lines)
    export_candidates_csv(leaky, table)
    export_sources(leaky, tmp_path / "out")
    sources = [file.read_text() for file in (tmp_path / "out").iterdir()]
    compact(leaky, tmp_path / "shared.wb")
    whole = (tmp_path / "shared.wb").read_bytes().decode("latin-1")
    for text in (lines.getvalue(), table.getvalue(), *sources, whole):
        assert leaks(text) == []
    assert "int token = next(tokens);" in sources[0]
    with sqlite3.connect(tmp_path / "shared.wb") as raw:
        assert raw.execute("SELECT (SELECT COUNT(*) FROM state) + (SELECT COUNT(*) FROM commands)").fetchone() == (0,)
    raw.close()


def test_a_shared_copy_is_small_replays_alike_and_never_overwrites(recorded: Path, tmp_path: Path) -> None:
    out = tmp_path / "shared.wb"
    size = compact(recorded, out)
    assert size == out.stat().st_size <= recorded.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["shared.wb"]
    with SessionReader(recorded) as before, SessionReader(out) as after:
        for seq in (1, 500, before.head_seq()):
            copied, original = after.project_at(seq), before.project_at(seq)
            # The header leaves without the name and the folders of the machine.
            copied.header = original.header
            assert copied == original
        assert after.summary() == before.summary()
    with pytest.raises(SessionExists):
        compact(recorded, out)
