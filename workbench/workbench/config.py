"""Configuration: flag > WORKBENCH_* > ./workbench.toml > the user's config.toml > default, each value with its origin.

Unknown keys and values of the wrong type are errors that name the file, the key and the nearest match.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from workbench.errors import UsageProblem, nearest
from workbench_engine.llm.settings import LlmSettings
from workbench_engine.llm.vllm_settings import VllmSettings
from workbench_sessions.events import Mode

LOCAL_FILE = "workbench.toml"
PREFIX = "WORKBENCH_"


class RunConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`[run]`: how a run is done unless the command line says otherwise. `minutes` and `evaluations` 0 = no cap."""

    policy: str = "design-space"
    backend: str = "cpu"
    case: str = ""
    seed: int = 0
    minutes: float = 10.0
    evaluations: int = 0
    mode: Mode = "auto"
    review: Literal["faster", "correct"] = "faster"
    reward: Literal["workbench", "cuda-l1"] = "workbench"
    islands: int = 2
    group_size: int = 8
    in_flight: int = 3
    warm_workers: int = 2
    final_threads: int = 0
    confirm: bool = True
    judge: bool = False
    trust: bool = False
    output_dir: str = ""


class UiConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`[ui]`: `theme` "" leaves the choice to the program; `editor` "" means $VISUAL, then $EDITOR."""

    theme: str = ""
    ascii: bool = False
    editor: str = ""
    start: str = "population"


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    run: RunConfig = RunConfig()
    llm: LlmSettings = LlmSettings()
    """`[llm]`: which models are asked, and how."""
    vllm: VllmSettings = VllmSettings()
    """`[vllm]`: the model server that a run starts and ends."""
    ui: UiConfig = UiConfig()
    keys: dict[str, str] = {}
    """`[keys]`: action id to key, as the help screen names them."""


class Origin(Struct, frozen=True):
    """One value and where it came from: "flag", "WORKBENCH_RUN_SEED", a file's path, or "default"."""

    key: str
    value: Any
    origin: str


class Layer(Struct, frozen=True):
    """Values of one source by dotted key. `lax`: they are text (environment) and may be converted."""

    origin: str
    values: dict[str, Any]
    lax: bool = False


class Resolved(Struct, frozen=True):
    config: Config
    origins: tuple[Origin, ...]


def known_keys() -> dict[str, tuple[type, Any]]:
    """Dotted key to (type, default) of every setting but the free table `keys`."""
    found: dict[str, tuple[type, Any]] = {}
    for section in msgspec.structs.fields(Config):
        if section.name == "keys":
            continue
        for one in msgspec.structs.fields(section.type):
            default = one.default if one.default_factory is msgspec.NODEFAULT else one.default_factory()
            found[f"{section.name}.{one.name}"] = (one.type, default)
    return found


def read_file(path: Path) -> Layer:
    """A TOML file's values; an absent file has none. Raises UsageProblem."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Layer(str(path), {})
    except (OSError, UnicodeDecodeError) as error:
        raise UsageProblem(f"{path}: cannot be read ({error}); fix or remove it") from None
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{path}: not valid TOML: {error}") from None
    return Layer(str(path), _flatten(path, table))


def _flatten(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    sections = {one.name for one in msgspec.structs.fields(Config)}
    values: dict[str, Any] = {}
    for section, body in table.items():
        if section not in sections:
            raise UsageProblem(f"{path}: unknown key {section!r}; {nearest(section, sections)}")
        if not isinstance(body, dict):
            raise UsageProblem(f"{path}: {section} must be a table, written [{section}]")
        for name, value in body.items():
            values[f"{section}.{name}"] = value
    return values


def read_environment(environment: Mapping[str, str]) -> list[Layer]:
    """WORKBENCH_RUN_SEED=3 sets run.seed: one layer a variable. Raises UsageProblem for an unknown one."""
    variables = {PREFIX + key.replace(".", "_").upper(): key for key in known_keys()}
    sections = tuple(f"{PREFIX}{one.name.upper()}_" for one in msgspec.structs.fields(Config))
    layers = []
    for name, text in sorted(environment.items()):
        if not name.startswith(sections):
            continue
        if name not in variables:
            raise UsageProblem(f"environment: unknown variable {name}; {nearest(name, variables)}")
        layers.append(Layer(name, {variables[name]: text}, lax=True))
    return layers


def resolve(layers: list[Layer]) -> Resolved:
    """The effective configuration; `layers` from the strongest to the weakest. Raises UsageProblem."""
    known = known_keys()
    for layer in layers:
        for key, value in layer.values.items():
            if key.startswith("keys."):
                if not isinstance(value, str):
                    raise UsageProblem(f"{layer.origin}: {key} must be the name of a key, not {value!r}")
            elif key not in known:
                raise UsageProblem(f"{layer.origin}: unknown key {key!r}; {nearest(key, known)}")
    origins = []
    sections: dict[str, dict[str, Any]] = {"run": {}, "llm": {}, "vllm": {}, "ui": {}, "keys": {}}
    for key, (kind, default) in known.items():
        value, origin = default, "default"
        for layer in layers:
            if key in layer.values:
                value, origin = _converted(layer, key, kind), layer.origin
                break
        origins.append(Origin(key, value, origin))
        section, _, name = key.partition(".")
        sections[section][name] = value
    for layer in reversed(layers):
        for key, value in layer.values.items():
            if key.startswith("keys."):
                sections["keys"][key.removeprefix("keys.")] = value
    origins += [
        Origin(f"keys.{name}", value, next(la.origin for la in layers if f"keys.{name}" in la.values))
        for name, value in sections["keys"].items()
    ]
    try:
        return Resolved(msgspec.convert(sections, Config), tuple(origins))
    except msgspec.ValidationError as error:
        # Values that are right one by one and impossible together; the text names them.
        raise UsageProblem(f"configuration: {error}") from None


def _converted(layer: Layer, key: str, kind: type) -> Any:
    value = layer.values[key]
    try:
        return msgspec.convert(value, kind, strict=not layer.lax)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"{layer.origin}: {key} = {value!r}: {error}") from None


def load(
    user_file: Path,
    environment: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    local_file: Path = Path(LOCAL_FILE),
) -> Resolved:
    """Everything together. `flags` holds dotted keys; None values were not given. Raises UsageProblem."""
    given = Layer("flag", {key: value for key, value in (flags or {}).items() if value is not None})
    return resolve([given, *read_environment(environment), read_file(local_file), read_file(user_file)])
