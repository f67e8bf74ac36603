"""A person's edit as a proposal: judged like any other candidate, learned from by nobody."""

from __future__ import annotations

from typing import Literal

from workbench_engine.policies.contract import Proposal
from workbench_sessions.events import Origin


def edited(kind: Literal["kernel", "module"], text: str, person: str = "", note: str = "") -> Proposal:
    """The proposal of a saved edit. Raises ValueError when the file is empty: nothing is there to judge."""
    if not text.strip():
        raise ValueError(f"edited {kind}: the file is empty; write the candidate into it and save again")
    return Proposal(kind, text, Origin(policy="person", person=person or None), note=note)
