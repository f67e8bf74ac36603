"""From an answer's text to a candidate's file, by the rules of the patch that was asked for. Pure."""

from __future__ import annotations

from msgspec import Struct

from workbench_engine.llm.contract import Choice
from workbench_engine.policies.llm import diff
from workbench_engine.policies.llm.diff import PatchError
from workbench_engine.policies.llm.extract import Kind, Sections, extract_code, fault, sections
from workbench_engine.policies.llm.frozen import FrozenError, kept
from workbench_engine.policies.llm.planning import PatchKind

NOTE_KEPT = 300


class Answer(Struct, frozen=True):
    """`code` is a whole file, or "" and `problem` says why; `mendable`: another turn may give what is missing."""

    sections: Sections
    code: str = ""
    problem: str = ""
    mendable: bool = True

    @property
    def note(self) -> str:
        """What the candidate is about, for people: the beginning of its design."""
        line = " ".join((self.sections.design or self.sections.analysis).split())
        return line if len(line) <= NOTE_KEPT else line[: NOTE_KEPT - 1] + "…"


def read_answer(choice: Choice, patch: PatchKind, kind: Kind, parent: str = "") -> Answer:
    """Reads one answer. `parent` is the file that a diff changes, and whose frozen regions every patch keeps."""
    text = choice.text
    found = sections(text)
    if choice.finish == "refusal":
        said = " ".join(text.split())[:120]
        return Answer(found, problem=f"the model refused{f': {said}' if said else ''}", mendable=False)
    if not text.strip():
        if choice.finish == "length":
            problem = "the answer ended inside its reasoning, before its first word; raise llm.max_tokens"
            return Answer(found, problem=problem, mendable=False)
        return Answer(found, problem="the answer is empty", mendable=False)
    cut_off = choice.finish == "length"
    try:
        code = _changed(text, kind, parent, cut_off) if patch == "diff" else ""
        if not code:
            extracted = extract_code(text, kind, cut_off)
            if extracted.problem:
                return Answer(found, problem=extracted.problem)
            code = kept(parent, extracted.code) if parent and patch != "diff" else extracted.code
            if patch == "diff":
                # It gave the whole file though changes were asked for: as good, if it left alone what is frozen.
                code = kept(parent, code)
    except (PatchError, FrozenError) as error:
        return Answer(found, problem=str(error))
    return Answer(found, code=code)


def _changed(text: str, kind: Kind, parent: str, cut_off: bool) -> str:
    """The parent with the answer's changes; "" when the answer holds a whole file instead. Raises PatchError."""
    try:
        changes = diff.parse(text)
    except PatchError:
        if not cut_off and extract_code(text, kind).code:
            return ""
        raise
    code = diff.apply(parent, changes)
    wrong = fault(code, kind)
    if wrong:
        raise PatchError(f"after the changes the file is not whole: {wrong}")
    return code
