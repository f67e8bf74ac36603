from __future__ import annotations

from pathlib import Path

import pytest

from workbench.asking import with_model
from workbench.config import load, read_environment, read_file, resolve
from workbench.display.words import asked, progress
from workbench.errors import UsageProblem
from workbench_engine.exits import ExitCode
from workbench_engine.llm.settings import Endpoint, LlmSettings, Price
from workbench_engine.settings import RunSettings
from workbench_sessions.events import Budget
from workbench_sessions.projection import Header, Projection

FILE = """
[llm]
base_url = "http://localhost:8000/v1"
model = "m"
exemplars = 3
extra = { reasoning_effort = "low" }

[llm.patches]
full = 1.0
diff = 0.0
cross = 0.0

[llm.prices.m]
input = 2.5
output = 10.0

[llm.endpoints.fast]
base_url = "http://localhost:8001/v1"
model = "small"
"""


def test_models_prices_and_endpoints_are_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(FILE)
    llm = load(file, {}, {"llm.money": 5.0}, tmp_path / "absent.toml").config.llm
    assert (llm.model, llm.exemplars, llm.money, llm.extra) == ("m", 3, 5.0, {"reasoning_effort": "low"})
    assert llm.prices == {"m": Price(input=2.5, output=10.0)}
    assert llm.endpoints["fast"] == Endpoint(base_url="http://localhost:8001/v1", model="small")
    assert llm.patches.full == 1.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[llm]\nmodle = 'x'\n", "did you mean 'llm.model'?"),
        ("[llm]\nexemplars = 9\n", "llm.exemplars = 9 must be 1 to 4"),
        ("[llm]\ncontrast = 'buckets'\n", "llm.contrast = 'buckets'"),
        ("[llm.prices.m]\ninptu = 1\n", "inptu"),
        ("[llm.endpoints.a]\nbase_url = 'nowhere'\nmodel = 'm'\n", "is no address"),
        ("[llm.endpoints.a]\nbase_url = 'http://x/v1'\nmodel = 'm'\nkey = 'sk-1'\n", "unknown field `key`"),
        ("[llm.patches]\nfull = 0.0\ndiff = 0.0\ncross = 0.0\n", "one of them above 0"),
    ],
)
def test_a_bad_section_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageProblem) as caught:
        resolve([read_file(file)])
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_the_environment_sets_a_model_too() -> None:
    layers = read_environment({"WORKBENCH_LLM_MODEL": "m", "WORKBENCH_LLM_TEMPERATURE": "0.3"})
    assert (resolve(layers).config.llm.model, resolve(layers).config.llm.temperature) == ("m", 0.3)


def test_a_request_carries_the_model_only_when_it_is_asked() -> None:
    llm = LlmSettings(base_url="http://localhost/v1", model="m", n=2, exemplars=4, contrast="island", tokens=9000)
    other = with_model(RunSettings(task="t"), llm)
    assert other == RunSettings(task="t")
    asking = with_model(RunSettings(task="t", policy="llm", budget=Budget(evaluations=3)), llm, environment={})
    assert (asking.llm, asking.group_size, asking.exemplars, asking.contrast) == (llm, 2, 4, "island")
    assert asking.budget == Budget(evaluations=3, tokens=9000)


@pytest.mark.parametrize(
    ("llm", "said"),
    [
        (LlmSettings(), "--base-url"),
        (LlmSettings(base_url="https://example.invalid/v1", model="m"), "OPENAI_API_KEY holds no key"),
        (LlmSettings(base_url="http://localhost/v1"), "--model"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_a_session_exists(llm: LlmSettings, said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        with_model(RunSettings(task="t", policy="llm"), llm, environment={})


def test_the_command_line_refuses_it_in_one_line(
    run: object, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run("run", "softmax_rows", "--policy", "llm", "--model", "m") == ExitCode.USAGE  # type: ignore[operator]
    assert "--base-url" in capsys.readouterr().err
    assert not list(home.rglob("*.wb"))


def test_what_models_cost_is_shown() -> None:
    p = Projection(header=Header(budget=Budget(tokens=9000)), prompts=3, spent_tokens=1200)
    assert asked(p) == "1200/9000 tokens"
    p.spent_money = 0.5
    assert "1200/9000 tokens, 0.50 paid" in progress(p)
    assert "tokens" not in progress(Projection())
