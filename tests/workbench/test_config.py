from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import Layer, known_keys, load, read_environment, read_file, resolve
from workbench.errors import UsageProblem

SEEDS = st.none() | st.integers(0, 10_000)


@given(flag=SEEDS, variable=SEEDS, local=SEEDS, user=SEEDS)
def test_the_strongest_source_that_names_a_key_wins(
    flag: int | None, variable: int | None, local: int | None, user: int | None
) -> None:
    def layer(origin: str, value: Any, lax: bool = False) -> Layer:
        return Layer(origin, {} if value is None else {"run.seed": str(value) if lax else value}, lax)

    layers = [layer("flag", flag), layer("env", variable, lax=True), layer("local", local), layer("user", user)]
    resolved = resolve(layers)
    given_ = [(v, o) for v, o in ((flag, "flag"), (variable, "env"), (local, "local"), (user, "user")) if v is not None]
    value, origin = given_[0] if given_ else (0, "default")
    assert resolved.config.run.seed == value
    assert next(one for one in resolved.origins if one.key == "run.seed").origin == origin


def test_every_value_has_an_origin() -> None:
    resolved = resolve([Layer("flag", {"run.minutes": 2.0, "keys.accept": "y"})])
    said = {one.key: one.origin for one in resolved.origins}
    assert set(said) == {*known_keys(), "keys.accept"}
    assert said["run.minutes"] == said["keys.accept"] == "flag"
    assert said["ui.theme"] == "default"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[run]\nsede = 3\n", "did you mean 'run.seed'?"),
        ("[runs]\nseed = 3\n", "did you mean 'run'?"),
        ("[run]\nseed = 'three'\n", "run.seed = 'three'"),
        ("[run]\nmode = 'autor'\n", "run.mode = 'autor'"),
        ("run = 3\n", "must be a table"),
        ("[run\n", "not valid TOML"),
        ("[keys]\naccept = 3\n", "must be the name of a key"),
    ],
)
def test_a_bad_file_is_one_line_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(UsageProblem) as caught:
        resolve([read_file(file)])
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_environment_values_are_text_and_checked() -> None:
    layers = read_environment({"WORKBENCH_RUN_CONFIRM": "false", "WORKBENCH_HOME": "/x", "OTHER": "1"})
    assert resolve(layers).config.run.confirm is False
    with pytest.raises(UsageProblem, match=r"WORKBENCH_RUN_CONFIRM: run\.confirm = 'maybe'"):
        resolve(read_environment({"WORKBENCH_RUN_CONFIRM": "maybe"}))
    with pytest.raises(UsageProblem, match="did you mean 'WORKBENCH_RUN_SEED'"):
        read_environment({"WORKBENCH_RUN_SED": "1"})


def test_load_reads_both_files_and_ignores_flags_not_given(tmp_path: Path) -> None:
    user, local = tmp_path / "user.toml", tmp_path / "local.toml"
    user.write_text("[run]\nseed = 1\nislands = 3\n[ui]\nascii = true\n")
    local.write_text("[run]\nseed = 2\n")
    config = load(user, {}, {"run.seed": None, "run.islands": 5}, local).config
    assert (config.run.seed, config.run.islands, config.ui.ascii) == (2, 5, True)
