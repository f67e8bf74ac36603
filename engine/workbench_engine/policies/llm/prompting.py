"""From a plan to messages: Jinja templates, each of which a person may replace by one of the same name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from workbench_engine.backends.cpu import BASE_FLAGS, DEFAULT_FLAGS
from workbench_engine.llm.contract import Message
from workbench_engine.llm.shortening import optional, unmarked
from workbench_engine.policies.contract import Context, Scored
from workbench_engine.policies.llm.extract import Kind
from workbench_engine.policies.llm.frozen import has_frozen
from workbench_engine.policies.llm.planning import Plan, kind_of
from workbench_engine.tasks.contract import Task

BUILT_IN = Path(__file__).parent / "templates"
FEEDBACK_KEPT = 1500
REMARKS_SHOWN = 6
_LANGUAGES = {"kernel": "cpp", "module": "python"}
_STAGES = {
    "build": "did not build",
    "verify": "was wrong",
    "time": "failed while it was timed",
    "judge": "was refused",
    "": "failed",
}


class TemplateProblem(ValueError):
    """A template that cannot be used. `str()` is one line: which, where, what."""


class Prompts:
    """Renders the prompts of one run. What does not change from prompt to prompt comes first (prefix caches)."""

    def __init__(self, task: Task, case: str, kind: Kind, hardware: Sequence[str], folder: str = "") -> None:
        """`folder` holds templates that replace the built-in ones. Raises TemplateProblem."""
        places = [str(BUILT_IN)]
        if folder:
            own = Path(folder).expanduser()
            if not own.is_dir():
                raise TemplateProblem(
                    f"llm.templates: {folder} is no folder; give one with .j2 files or leave it empty"
                )
            places.insert(0, str(own))
        self._environment = SandboxedEnvironment(
            loader=jinja2.FileSystemLoader(places),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        shapes = task.cases.get(case) or next(iter(task.cases.values()))
        self._kind = kind
        self._fixed: dict[str, Any] = {
            "task": task,
            "source": shown_source(task.source),
            "kind": kind,
            "language": _LANGUAGES[kind],
            "hardware": tuple(hardware),
            "dims": ", ".join(f"{name} = {size}" for name, size in shapes.dims.items()) or "as in the file",
            "dim_names": tuple(shapes.dims),
            "inputs": (*shapes.of("input"), *shapes.of("state")),
            "outputs": shapes.of("output"),
            "base_flags": " ".join(f for f in BASE_FLAGS if f not in ("-fPIC", "-w")),
            "default_flags": " ".join(DEFAULT_FLAGS),
            "optional": _optional,
            "steering": "",
        }

    def messages(self, plan: Plan, context: Context, failures: int) -> tuple[Message, ...]:
        """System and user message of a new candidate; optional parts are marked (`llm.shortening`)."""
        if plan.patch == "repair":
            assert plan.base is not None
            base = plan.base
            return self.repair(base.text, base.failed, base.feedback, context.steering)
        accepted = {r.candidate for r in context.remarks if r.accepted}
        shown = {s.candidate: f"implementation {chr(ord('A') + i)}" for i, s in enumerate(plan.shown)}
        values = {
            "patch": plan.patch,
            "exemplars": [_exemplar(s, shown[s.candidate], s.candidate in accepted) for s in plan.exemplars],
            "failures": [_failure(s) for s in context.failures[:failures]],
            "remarks": [r for r in context.remarks if r.reason][:REMARKS_SHOWN],
            "steering": context.steering,
            "base": plan.base.text if plan.base is not None else "",
            "base_label": _labelled(plan.base, shown),
            "other": plan.other.text if plan.other is not None else "",
            "other_label": _labelled(plan.other, shown),
            "frozen": has_frozen(plan.base.text) if plan.base is not None else False,
        }
        return self._chat(self._render("prompt.j2", values))

    def repair(self, text: str, stage: str, feedback: str, steering: str) -> tuple[Message, ...]:
        """Asks for a candidate that failed to be mended."""
        values = {"stage": stage, "text": text, "feedback": feedback[:FEEDBACK_KEPT], "steering": steering}
        return self._chat(self._render("repair.j2", values))

    def points(self, values: dict[str, Any]) -> tuple[Message, ...]:
        """Asks for a point of the design space: `dimensions`, `exemplars`, `failures`, `steering`."""
        return (Message("user", _calm(self._render("points.j2", values))),)

    def unreadable(self, asked: Sequence[Message], answer: str, problem: str, patch: str) -> tuple[Message, ...]:
        """The turn after an answer that nothing could be made of."""
        said = self._render("unreadable.j2", {"problem": problem, "patch": patch})
        return (*asked, Message("assistant", answer), Message("user", said.strip()))

    def _chat(self, text: str) -> tuple[Message, ...]:
        return (Message("system", self._render("system.j2", {}).strip()), Message("user", _calm(text)))

    def _render(self, name: str, values: dict[str, Any]) -> str:
        try:
            return self._environment.get_template(name).render({**self._fixed, **values})
        except jinja2.TemplateSyntaxError as error:
            raise TemplateProblem(f"template {error.filename or name}, line {error.lineno}: {error.message}") from error
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise TemplateProblem(f"template {name}: {' '.join(str(error).split())}") from error


_SECRET = frozenset(("HIDDEN", "ACCUMULATE", "cost"))
"""What a task file says for the referee alone: a candidate could be right just where it is looked at."""


def shown_source(source: str) -> str:
    """The task file as a model may see it: without the hidden shapes and what only the referee needs."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return source
    lines = source.splitlines()
    for node in reversed(tree.body):
        names = {getattr(target, "id", "") for target in getattr(node, "targets", [getattr(node, "target", None)])}
        names.add(getattr(node, "name", ""))
        if names & _SECRET:
            del lines[node.lineno - 1 : node.end_lineno]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip() + "\n"


def text_of(messages: Sequence[Message]) -> str:
    """The prompt as one text, as it is stored and shown."""
    return "\n\n".join(f"[{m.role}]\n{m.content.strip()}" for m in unmarked(messages)) + "\n"


def _optional(level: int, name: str, caller: Callable[[], str]) -> str:
    return optional(level, name, caller().strip())


def _exemplar(scored: Scored, label: str, accepted: bool) -> dict[str, Any]:
    return {
        "label": label[0].upper() + label[1:],
        "speedup": scored.speedup,
        "text": scored.text,
        "accepted": accepted,
        "language": _LANGUAGES[kind_of(scored.text)],
    }


def _labelled(base: Scored | None, shown: dict[str, str]) -> str:
    if base is None:
        return "the file"
    label = shown.get(base.candidate, "the file")
    return f"{label} (speedup {base.speedup:.2f})" if base.speedup is not None else label


def _failure(scored: Scored) -> dict[str, str]:
    feedback = " ".join(scored.feedback.split())[:400] or scored.verdict
    return {"candidate": scored.candidate, "stage": _STAGES.get(scored.failed, "failed"), "feedback": feedback}


def _calm(text: str) -> str:
    """One empty line before a heading, never more than one outside of code: templates tend to leave other numbers."""
    calm: list[str] = []
    code = False
    for line in text.strip().split("\n"):
        code = code != line.startswith("```")
        # A mark of an optional part vanishes with its line.
        spaced = not calm or not calm[-1].strip() or (calm[-1].startswith("<!-- optional") and not code)
        if line.startswith("#") and not code and not spaced:
            calm.append("")
        if line.strip() or code or not spaced:
            calm.append(line)
    return "\n".join(calm)
