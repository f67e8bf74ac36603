"""The feed: live, attached and replayed are the same thing at different positions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench_sessions import events as ev
from workbench_sessions import synthetic
from workbench_sessions.commands import Pause
from workbench_sessions.feed import EVENTS_PER_POLL, Feed, SessionCommandPort, SessionFeed
from workbench_sessions.fold import fold_all
from workbench_sessions.log import SessionReader, SessionWriter, engine_lock
from workbench_sessions.projection import Projection


class Clock:
    """Time that stands still until it is told."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> tuple[float, float]:
        return self.now_s, self.now_s


def said(text: str) -> ev.WarningRaised:
    return ev.WarningRaised(text=text)


def write_at(path: Path, times: list[float]) -> None:
    clock = Clock()
    with SessionWriter.create(path, "{}", clock) as writer:
        for n, at_s in enumerate(times):
            clock.now_s = at_s
            writer.append([said(str(n))])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.wb"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.write_session(tmp_path_factory.mktemp("recorded") / "s.wb", 200)


@pytest.fixture
def feed(recorded: Path) -> Iterator[SessionFeed]:
    feed = SessionFeed(recorded, follow=False)
    yield feed
    feed.close()


def test_the_feed_is_a_feed(recorded: Path) -> None:
    feed: Feed = SessionFeed(recorded, follow=False)
    feed.close()


def test_a_live_feed_shows_what_a_writer_appends_and_rests_otherwise(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        feed = SessionFeed(path, follow=True)
        assert feed.live and feed.head_seq == feed.position_seq == 0 and feed.first_at_s == 0.0
        assert not feed.poll(0.0)
        writer.append([said("a"), said("b")])
        assert feed.poll(0.1)
        assert feed.position_seq == feed.head_seq == 2 and feed.projection == writer.projection
        assert 0 < feed.first_at_s <= feed.head_at_s
        assert not feed.poll(0.2)
        writer.append([said(str(n)) for n in range(EVENTS_PER_POLL + 500)])
        assert feed.poll(0.3) and feed.projection == writer.projection
        feed.close()


def test_looking_back_does_not_stop_the_head(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        writer.append([said(str(n)) for n in range(10)])
        feed = SessionFeed(path, follow=True)
        feed.seek_seq(4)
        assert not feed.live and feed.position_seq == 4
        writer.append([said("later")])
        assert feed.poll(0.0)
        assert (feed.position_seq, feed.head_seq, len(feed.marks())) == (4, 11, 11)
        assert [mark.text for mark in feed.projection.marks] == ["0", "1", "2", "3"]
        feed.go_live()
        assert feed.live and feed.position_seq == 11
        feed.pause()
        writer.append([said("unseen")])
        feed.poll(1.0)
        assert (feed.position_seq, feed.head_seq, len(feed.projection.marks)) == (11, 12, 11)
        feed.close()


def test_a_feed_opened_on_a_closed_session_follows_an_engine_that_resumes_it(path: Path) -> None:
    SessionWriter.create(path, "{}").close()
    feed = SessionFeed(path, follow=True)
    with SessionWriter.open(path) as writer:
        writer.append([said("again")])
        assert feed.poll(0.0) and feed.position_seq == 1
    feed.poll(1.0)
    with SessionWriter.open(path) as writer:
        writer.append([said("and again")])
    assert feed.poll(2.0) and feed.position_seq == 2
    feed.close()


def test_replay_plays_recorded_time_at_its_speed(path: Path) -> None:
    write_at(path, [100.0, 100.5, 101.0, 102.0])
    feed = SessionFeed(path, follow=False)
    assert (feed.position_seq, feed.playing, feed.live) == (1, False, False)
    assert not feed.poll(0.0) and not feed.poll(50.0)
    feed.play()
    feed.poll(50.4)
    assert feed.position_seq == 1 and feed.position_at_s == pytest.approx(100.4)
    feed.poll(50.6)
    assert feed.position_seq == 2 and feed.position_at_s == pytest.approx(100.6)
    feed.set_speed(10.0)
    assert feed.poll(50.7)
    assert feed.position_seq == 3
    feed.set_speed(1.0)
    assert feed.poll(51.0) and feed.playing and feed.position_seq == 3
    assert feed.poll(51.2)
    assert feed.position_seq == 4 and not feed.playing
    feed.play()
    assert feed.playing and feed.position_seq == 1
    with pytest.raises(ValueError, match="speed"):
        feed.set_speed(0.0)
    feed.close()


def test_a_long_silence_is_shortened(path: Path) -> None:
    write_at(path, [100.0, 1100.0])
    feed = SessionFeed(path, follow=False)
    feed.play()
    feed.poll(0.0)
    feed.poll(1.0)
    assert feed.position_seq == 1 and feed.position_at_s == pytest.approx(600.0)
    feed.poll(2.0)
    assert feed.position_seq == 2 and feed.position_at_s == 1100.0
    feed.close()


def test_a_replay_that_catches_up_with_a_running_engine_goes_live(path: Path) -> None:
    write_at(path, [100.0, 100.1])
    with engine_lock(path):
        feed = SessionFeed(path, follow=False)
        assert feed.engine_alive
        feed.play()
        feed.poll(0.0)
        feed.poll(0.9)
        assert feed.live and not feed.playing
    assert feed.poll(5.0) and not feed.engine_alive
    feed.close()


def test_every_way_to_an_instant_shows_the_same(feed: SessionFeed, recorded: Path) -> None:
    with SessionReader(recorded) as reader:
        events = reader.events(0, feed.head_seq)
    target = feed.head_seq // 2
    want = fold_all(Projection(), events[:target])
    feed.seek_seq(target)
    assert feed.projection == want
    feed.seek_seq(target + 300)
    feed.step(-300)
    assert feed.projection == want
    feed.seek_seq(target - 3)
    feed.step(3)
    assert feed.projection == want
    feed.seek_seq(target - 700)
    feed.set_speed(200.0)
    feed.play()
    now_s = 0.0
    while feed.position_seq < target - 100:
        feed.poll(now_s)
        now_s += 0.01
    feed.step(target - feed.position_seq)
    assert feed.projection == want and not feed.playing


def test_seeks_stay_within_the_session(feed: SessionFeed) -> None:
    feed.seek_seq(10**9)
    assert feed.position_seq == feed.head_seq
    feed.seek_seq(-5)
    assert feed.position_seq == 1
    feed.seek_time(0.0)
    assert feed.position_seq == 1
    feed.seek_time(feed.head_at_s)
    assert feed.position_seq == feed.head_seq


def test_marks_are_reached_both_ways_and_by_kind(feed: SessionFeed) -> None:
    bests = [mark for mark in feed.marks() if mark.kind == "best"]
    assert len(bests) >= 2
    assert feed.next_mark(1, "best") == bests[0] and feed.position_seq == bests[0].seq
    assert feed.next_mark(1, "best") == bests[1]
    assert feed.projection.best is not None and feed.projection.best in bests[1].text
    assert feed.next_mark(-1, "best") == bests[0]
    assert feed.next_mark(-1, "best") is None and feed.position_seq == bests[0].seq
    following = feed.next_mark(1)
    assert following is not None and following.seq > bests[0].seq
    assert feed.marks()[-1].seq > feed.position_seq


def test_curves_details_and_pairs_show_nothing_of_the_future(feed: SessionFeed) -> None:
    with_pairs = feed.marks()[-1]
    feed.seek_seq(with_pairs.seq)
    name = next(row.id for row in feed.projection.candidates.values() if row.verdict == "FASTER")
    born = feed.projection.candidates[name].proposed_seq
    assert feed.pair_series(name) and feed.details(name).checks
    feed.seek_seq(born)
    assert feed.pair_series(name) == [] and feed.details(name).checks == []
    assert all(point.seq <= born for point in feed.projection.best_curve)
    assert len(feed.head_projection().best_curve) > len(feed.projection.best_curve)


def test_sources_can_be_read(feed: SessionFeed) -> None:
    task = feed.projection.header.task
    assert task is not None and feed.source(task.source_sha256) == synthetic.REFERENCE


def test_the_command_port_leaves_its_wish_in_the_file(path: Path) -> None:
    with SessionWriter.create(path, "{}") as writer:
        SessionCommandPort(path).send(Pause())
        assert [command for _, command in writer.take_commands()] == [Pause()]
