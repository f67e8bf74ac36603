"""The gate before anything is built: nothing twice, nothing that cannot be a candidate."""

from __future__ import annotations

from workbench_engine.search.novelty import fingerprint

MOST_BYTES = 1 << 20
"""A candidate's file is at most so large: more is no kernel, and every copy of it costs."""


class Gate:
    """Knows every candidate of the session by the fingerprint of its file."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def earlier(self, text: str, kind: str) -> str | None:
        """The candidate that is the same but for comments and white space; None when this one is new."""
        return self._known.get(fingerprint(text, kind))

    def admit(self, candidate: str, text: str, kind: str) -> None:
        self._known.setdefault(fingerprint(text, kind), candidate)


def static_fault(text: str, kind: str) -> str:
    """Why a file cannot be a candidate at all, in one line with what to do; "" when it may be one."""
    if kind not in ("kernel", "module"):
        return f"kind {kind!r} cannot be judged here; give a kernel (.cpp) or a module (.py)"
    if not text.strip():
        return "the file is empty; write the candidate into it"
    if "\0" in text:
        return "the file holds NUL bytes; give plain text"
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        return f"the file has {size} bytes, more than the {MOST_BYTES} a candidate may have; give a smaller one"
    return ""
