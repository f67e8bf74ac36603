"""What can go wrong with a session file, each in one line that says what, where and what to do."""

from __future__ import annotations

from pathlib import Path


class SessionError(Exception):
    """Base of all. `str()` is one line fit for a person; `path` is the file concerned."""

    def __init__(self, path: Path | str, what: str, remedy: str) -> None:
        self.path = Path(path)
        self.what = what
        self.remedy = remedy
        super().__init__(f"{self.path}: {what}: {remedy}")


class SessionMissing(SessionError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "no such session", "`workbench sessions list` shows what there is")


class SessionExists(SessionError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "the session exists already", "choose another name, or delete it first")


class NotASession(SessionError):
    def __init__(self, path: Path | str, why: str = "not a workbench session") -> None:
        super().__init__(path, why, "give a .wb file that `workbench run` or `sessions export` wrote")


class NewerSession(SessionError):
    def __init__(self, path: Path | str, found: int, known: int) -> None:
        super().__init__(
            path,
            f"written by a newer workbench (file format {found}, this one reads up to {known})",
            "upgrade kernel-workbench to open it",
        )


class DamagedSession(SessionError):
    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(
            path,
            f"the file is damaged ({why})",
            "copy it again with its -wal file if it was copied, or rescue rows with `sqlite3 FILE .recover`",
        )


class SessionFull(SessionError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(
            path,
            "the disk is full; everything recorded so far is kept",
            "free some space, then resume the session",
        )


class SessionUnwritable(SessionError):
    def __init__(self, path: Path | str, why: str) -> None:
        super().__init__(path, f"cannot be opened ({why})", "check the owner and the permissions of file and folder")


class SessionLocked(SessionError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "another process held the file for too long", "try again")


class EngineBusy(SessionError):
    def __init__(self, path: Path | str, pid: int | None = None) -> None:
        who = f"an engine runs this session (pid {pid})" if pid else "an engine runs this session"
        super().__init__(path, who, "watch it with `workbench attach`, or stop that engine first")


class SourceMissing(SessionError):
    """The session names a text that it does not hold."""

    def __init__(self, path: Path | str, sha256: str) -> None:
        super().__init__(path, f"it holds no text {sha256[:12]}", "open the session it was exported from")
