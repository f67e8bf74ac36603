"""Where prompts for a person lie, and how an answer given on a screen reaches the policy that waits for it.

The answer is filed under the hash of the prompt it answers, so that it can reach no other one.
"""

from __future__ import annotations

from pathlib import Path


def prompts_folder(session: Path) -> Path:
    """The folder beside a session file."""
    return session.parent / f"{session.stem}-prompts"


def answer_path(folder: Path, prompt_sha256: str) -> Path:
    """Where the answer to the prompt of that hash is put down."""
    return folder / f"answer-to-{prompt_sha256[:16]}.md"


def put_answer(folder: Path, prompt_sha256: str, text: str) -> Path:
    """Puts an answer down whole: whoever waits never reads half of it. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = answer_path(folder, prompt_sha256)
    begun = path.with_suffix(".part")
    begun.write_text(text, encoding="utf-8")
    return begun.replace(path)
