"""Files in memory that cross into a cage.

A process in a cage has this user's identity, so a descriptor of one of our files is more than it seems: through
/proc/self/fd it can be opened again, for writing. What is handed over is therefore a copy that nobody can change.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path


def sealed_copy(path: str | Path) -> int:
    """Descriptor of a copy in memory that can neither be written to nor resized. The caller closes it."""
    fd = os.memfd_create(Path(path).name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with Path(path).open("rb") as source, os.fdopen(fd, "wb", closefd=False) as sink:
            shutil.copyfileobj(source, sink)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except OSError:
        os.close(fd)
        raise
    return fd
