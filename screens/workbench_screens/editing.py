"""A candidate in the person's editor: each save is offered to the engine as a candidate of theirs."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from textual.app import SuspendNotSupported

from workbench_screens.moving import MovingApp
from workbench_sessions.commands import Command, SubmitSource
from workbench_sessions.errors import SessionError
from workbench_sessions.projection import Candidate


class TerminalEditor:
    """`$EDITOR` in the same terminal. `command` may carry arguments: `code --wait`."""

    needs_terminal = True

    def __init__(self, command: str) -> None:
        self.command = shlex.split(command)

    def edit(self, path: Path) -> None:
        """Raises `OSError` when the editor cannot be started."""
        subprocess.run([*self.command, str(path)], check=False)


class Submitter:
    """Sends a text once: saves without a change, and the last save seen again at the end, send nothing.

    Used from the watching thread and from the screen.
    """

    def __init__(self, send: Callable[[Command], None], candidate: Candidate, source: str, person: str) -> None:
        self._send = send
        self._candidate = candidate
        self._person = person
        self._known = {source}
        self._lock = threading.Lock()
        self.sent = 0

    def offer(self, text: str) -> bool:
        """True when the text was new and went to the engine. Raises what the port raises."""
        with self._lock:
            if text in self._known or not text.strip():
                return False
            self._send(
                SubmitSource(
                    source=text,
                    kind=self._candidate.kind,
                    parent=self._candidate.id,
                    person=self._person,
                    note=f"edited from {self._candidate.id}",
                )
            )
            self._known.add(text)
            self.sent += 1
            return True


def watch_saves(path: Path, submitter: Submitter, stop: threading.Event) -> None:
    """Runs in a thread until `stop`: offers the file after each save. A port that fails is left to the last offer."""
    from watchfiles import watch

    # The folder, not the file: editors save by renaming.
    for _ in watch(path.parent, stop_event=stop, debounce=100, step=50, rust_timeout=200, raise_interrupt=False):
        try:
            submitter.offer(path.read_text())
        except (SessionError, OSError, UnicodeDecodeError):
            continue


class EditingApp(MovingApp):
    editor: object = None

    def action_edit(self) -> None:
        shown = self.desk.shown()
        if self.refused("edit") or shown is None:
            return
        if not hasattr(self.editor, "edit"):
            self.tell("set $EDITOR (or $VISUAL) and start again", title="No editor", wrong=True)
            return
        try:
            source = self.desk.feed.source(shown.source_sha256)
        except (SessionError, KeyError) as error:
            self.tell(f"the source of {shown.id} is not in the session: {error}", wrong=True)
            return
        try:
            sent = self._edit(shown, source)
        except SuspendNotSupported:
            self.tell("this terminal cannot be lent to an editor; use `workbench evaluate`", wrong=True)
        except (SessionError, OSError) as error:
            self.tell(str(error), title="Edit", wrong=True)
        else:
            if sent:
                self.tell(f"{sent} edit{'s' if sent > 1 else ''} of {shown.id} sent to be judged")
            else:
                self.tell(f"{shown.id} left as it is")

    def _edit(self, candidate: Candidate, source: str) -> int:
        suffix = ".py" if candidate.kind == "module" else ".cpp"
        submitter = Submitter(self.desk.port.send, candidate, source, self.desk.person)
        editor = self.editor
        assert hasattr(editor, "edit")
        with tempfile.TemporaryDirectory(prefix="workbench-edit-") as folder:
            path = Path(folder) / f"{candidate.id}{suffix}"
            path.write_text(source)
            stop = threading.Event()
            watcher = threading.Thread(target=watch_saves, args=(path, submitter, stop), daemon=True)
            watcher.start()
            try:
                if getattr(editor, "needs_terminal", True):
                    with self.suspend():
                        editor.edit(path)
                else:
                    editor.edit(path)
            finally:
                stop.set()
                watcher.join(timeout=2)
            submitter.offer(path.read_text())
        return submitter.sent
