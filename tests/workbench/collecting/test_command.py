"""`workbench collect` with a real server, the real sandbox, compiler and referee."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine.llm.server import says
from tests.workbench.collecting.answering import BROKEN, CHEAT, GOOD, TASK, WRONG, Models, code, good, served

from workbench.collecting.asking import seed_of
from workbench_engine.exits import ExitCode

Run = Callable[..., int]
CORRECT = ("FASTER", "SAME", "SLOWER", "AMBIGUOUS")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(one) for one in path.read_text().splitlines()]


def configure(text: str) -> None:
    Path("workbench.toml").write_text(text)


def test_two_correct_ones_are_kept_with_all_they_came_from(home: Path, run: Run, capsys: Any) -> None:
    configure("[llm.prices.m]\ninput = 1.0\noutput = 10.0\n")
    models = Models(
        {
            "m": [
                "I cannot write kernels.",
                code(BROKEN),
                code(WRONG),
                code(CHEAT),
                good(1),
                good(1),
                code(GOOD),
                "never asked",
            ]
        }
    )
    with served(models) as server:
        arguments = ("collect", TASK, "--base-url", server.base_url, "--model", "m", "-o", "set")
        assert run(*arguments) == ExitCode.OK
        assert models.answered == [("m", n) for n in range(1, 8)]
        before = Path("set/sft.jsonl").read_text()
        first = capsys.readouterr()
        assert run(*arguments) == ExitCode.OK
        assert len(server.requests) == 7
    # Called again: nothing to do, and the same data set.
    assert Path("set/sft.jsonl").read_text() == before
    assert capsys.readouterr().out == ""

    tries = lines(Path("set/attempts.jsonl"))
    verdicts = [one["verdict"] for one in tries]
    assert verdicts[:3] == ["", "FAILED", "WRONG"] and verdicts[3] in ("CHEATING", "WRONG")
    assert all(v in CORRECT for v in verdicts[4:])
    assert tries[0]["problem"] and "no_such_name" in tries[1]["reason"]
    # The same code again: not judged again, and no second example.
    assert tries[5]["repeats"] == "m/5" and tries[5]["speedup"] == tries[4]["speedup"]
    assert "2 examples of 7 answers, 840 tokens, 0.0021 paid" in first.err
    assert f"{TASK}  m  6: {verdicts[5]}" in first.out and "as m/5" in first.out

    rows = lines(Path("set/sft.jsonl"))
    assert [row["number"] for row in rows] == [5, 7]
    row = rows[0]
    assert row["code"].strip() == f"{GOOD}// variant 1".strip() and "Good luck!" in row["answer"]
    assert (row["task"], row["model"], row["kind"], row["profile"]) == (TASK, "m", "kernel", "search")
    assert row["prompt_sha256"] == hashlib.sha256(row["prompt"].encode()).hexdigest()
    assert "kernel_run" in row["prompt"] and "def get_inputs" in row["reference"]
    assert row["seed"] == seed_of(0, TASK, "m", 5)
    assert len(row["referee_seed"]) >= 8 and row["sandbox"] not in ("", "none")
    assert (row["tokens_in"], row["tokens_out"], row["endpoint"]) == (100, 20, "m")
    assert row["cost"] == pytest.approx((100 * 1.0 + 20 * 10.0) / 1e6)
    assert row["lower"] <= row["speedup"] <= row["upper"] and row["pairs"] > 0
    assert row["reference_s"] > 0.0 and row["candidate_s"] > 0.0
    assert row["machine_cpu"] and row["machine_torch"] and row["machine_compiler"] and row["machine_os"]
    assert platform.node() not in json.dumps(row)
    sent = server.requests[4]
    assert row["prompt"].strip().endswith(sent["messages"][-1]["content"].strip()[-200:])


def test_tries_have_an_end_and_more_of_them_go_on(home: Path, run: Run) -> None:
    with served(says("Use a faster machine.")) as server:
        arguments = ("collect", TASK, "--base-url", server.base_url, "--model", "m")
        assert run(*arguments, "--tries", 3) == ExitCode.OK
        assert len(server.requests) == 3
        assert run(*arguments, "--tries", 3) == ExitCode.OK
        assert len(server.requests) == 3
        assert run(*arguments, "--tries", 5) == ExitCode.OK
    assert [one["seed"] for one in server.requests] == [seed_of(0, TASK, "m", n) for n in range(1, 6)]
    assert Path("out/collect/sft.jsonl").read_text() == ""
    assert {one["problem"] for one in lines(Path("out/collect/attempts.jsonl"))} != {""}


def test_a_model_that_is_away_hinders_no_other_and_is_asked_later(home: Path, run: Run, capsys: Any) -> None:
    models = Models({"near": [good(1)], "far": ["no", good(2)]})
    with served(models) as gone:
        closed = gone.base_url
    port = int(closed.rsplit(":", 1)[1].split("/")[0])
    with served(models) as server:
        endpoints = "".join(
            f'[llm.endpoints.{name}]\nbase_url = "{url}"\nmodel = "{name}"\nretries = 0\n'
            for name, url in (("near", server.base_url), ("far", closed))
        )
        configure(endpoints)
        arguments = ("collect", TASK, "--successes", 1)
        assert run(*arguments) == ExitCode.ENVIRONMENT
        said = capsys.readouterr().err
        assert "not finished: far could not be asked; call again to go on" in said
        assert "far: softmax_rows: " in said and "cannot be reached" in said
        with served(models, port):
            assert run(*arguments) == ExitCode.OK
    assert models.answered == [("near", 1), ("far", 1), ("far", 2)]
    assert [(row["model"], row["number"]) for row in lines(Path("out/collect/sft.jsonl"))] == [("far", 2), ("near", 1)]


def test_a_cap_counts_what_earlier_calls_spent(home: Path, run: Run, capsys: Any) -> None:
    with served(says("no code", tokens=(900, 100))) as server:
        arguments = ("collect", TASK, "--base-url", server.base_url, "--model", "m", "--tries", 6)
        configure("[llm]\nmax_tokens = 300\n")
        assert run(*arguments, "--tokens", 3500) == ExitCode.BUDGET
        asked = len(server.requests)
        assert 0 < asked <= 3
        assert "raise the cap and call again to go on" in capsys.readouterr().err
        # The same cap again: nothing is left of it.
        assert run(*arguments, "--tokens", 1000 * asked) == ExitCode.BUDGET
        assert len(server.requests) == asked
        assert run(*arguments, "--tokens", 100_000) == ExitCode.OK
        assert len(server.requests) == 6
    assert len(lines(Path("out/collect/attempts.jsonl"))) == 6


def test_what_has_changed_is_refused_in_one_line(home: Path, run: Run, capsys: Any, tmp_path: Path) -> None:
    own = Path("mine.py")
    own.write_text(
        (Path(__file__).parents[3] / "engine/workbench_engine/tasks/bundled/softmax_rows/reference.py").read_text()
    )
    with served(says("no code")) as server:
        arguments = ("collect", own, "--base-url", server.base_url, "--model", "m", "--tries", 1)
        assert run(*arguments) == ExitCode.OK
        capsys.readouterr()

        def refused(said: str, *more: object) -> None:
            assert run(*arguments, *more) == ExitCode.USAGE
            error = capsys.readouterr().err
            assert said in error and "name another folder" in error and error.count("\n") == 1

        refused("seed = 0, now 1", "--seed", 1)
        refused("profile = 'search', now 'final'", "--profile", "final")
        configure("[llm]\ntemperature = 0.1\n")
        refused("m: temperature = 0.8, now 0.1")
        configure("")
        own.write_text(own.read_text() + "# changed\n")
        refused("another task of the name mine")
        own.write_text(own.read_text().replace("# changed\n", ""))
        (tmp_path / "templates").mkdir()
        system = next((Path(__file__).parents[3] / "engine/workbench_engine/policies/llm/templates").glob("system*"))
        (tmp_path / "templates" / system.name).write_text(system.read_text() + "\nBe brief.\n")
        configure(f'[llm]\ntemplates = "{tmp_path / "templates"}"\n')
        assert run(*arguments, "--tries", 2) == ExitCode.USAGE
        assert "with another prompt" in capsys.readouterr().err
        configure("")
        assert run("collect", own, "-o", tmp_path, "--base-url", server.base_url, "--model", "m") == ExitCode.USAGE
        assert "holds other files" in capsys.readouterr().err
        (tmp_path / "mine.py").write_text(own.read_text())
        assert run(*arguments, tmp_path / "mine.py") == ExitCode.USAGE
        assert "two tasks have the name mine" in capsys.readouterr().err
    assert len(server.requests) == 1
    assert run("collect", TASK, "--model", "m") == ExitCode.USAGE
    assert "--base-url" in capsys.readouterr().err


def test_a_refused_task_hinders_no_other(home: Path, run: Run, capsys: Any) -> None:
    source = (Path(__file__).parents[3] / "engine/workbench_engine/tasks/bundled/softmax_rows/reference.py").read_text()
    Path("constant.py").write_text(source.replace("torch.softmax(x, dim=-1)", "torch.softmax(x, dim=-1) * 0"))
    with served(says("no code")) as server:
        arguments = ("collect", "constant.py", TASK, "--base-url", server.base_url, "--model", "m", "--tries", 1)
        assert run(*arguments) == ExitCode.USAGE
    assert "without the tasks that cannot be used: constant" in capsys.readouterr().err
    assert [one["task"] for one in lines(Path("out/collect/attempts.jsonl"))] == [TASK]


def test_points_are_rendered_by_the_space(home: Path, run: Run) -> None:
    from workbench_engine.tasks.catalogue import bundled_space

    space = bundled_space(TASK)
    assert space is not None
    point = json.dumps({d.name: d.values[0] for d in space.dimensions})
    with served(Models({"m": ["{}", point]})) as server:
        arguments = ("collect", TASK, "--base-url", server.base_url, "--model", "m", "--answers", "points")
        assert run(*arguments, "--tries", 2, "--successes", 1) == ExitCode.OK
    assert server.requests[0]["response_format"]["type"] == "json_schema"
    first, second = lines(Path("out/collect/attempts.jsonl"))
    assert first["problem"] and not first["code"]
    assert "kernel_run" in second["code"] and second["verdict"]


def test_an_earlier_collection_is_judged_anew_without_a_model(home: Path, run: Run, capsys: Any) -> None:
    with served(Models({"m": ["nothing", good(1)]}, seed=7)) as server:
        arguments = ("collect", TASK, "--base-url", server.base_url, "--model", "m", "--successes", 1, "--seed", 7)
        assert run(*arguments) == ExitCode.OK
    again = ("collect", "--recorded", "out/collect", "-o", "again")
    assert run(*again, "--model", "m", "--seed", 7) == ExitCode.USAGE
    assert "leave out --model, --seed" in capsys.readouterr().err
    # The recording ends after two answers, and that is no failure.
    assert run(*again, "--successes", 2) == ExitCode.OK
    assert "the recording ends after 2 answers" in capsys.readouterr().err
    before, after = lines(Path("out/collect/sft.jsonl")), lines(Path("again/sft.jsonl"))
    assert [row["code"] for row in after] == [row["code"] for row in before]
    assert [row["endpoint"] for row in before + after] == ["m", "recorded"]
    assert after[0]["referee_seed"] != before[0]["referee_seed"]
    assert json.loads(Path("again/collect.json").read_text())["recorded"] == "collect"
    assert not Path("again/traffic").exists()
    # Nothing is asked or judged twice there either.
    assert run(*again, "--successes", 1) == ExitCode.OK
    assert len(lines(Path("again/attempts.jsonl"))) == 2
    assert run("collect", "--recorded", "nowhere") == ExitCode.USAGE
    assert "holds no collection" in capsys.readouterr().err
