"""The worker gives up for good what a candidate must not have, right before the candidate's code is loaded.

Standard library only and importable by path. The filter comes from the engine; here it is only installed, for all
threads. What is given up stays given up: nothing in this process can take a filter off again.
"""

from __future__ import annotations

import ctypes
import os
import struct

SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER = 1
ALL_THREADS = 1
KEEP_SPECULATION = 4
"""Without it old kernels slow every process with a filter down, and a candidate would be timed at that."""
NO_NEW_PRIVS = 38


def lock(code: str) -> None:
    """Install the filter whose instructions `code` gives in hexadecimal; "" for none. Raises OSError."""
    if not code:
        return
    program = bytes.fromhex(code)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(words)))
    if libc.prctl(NO_NEW_PRIVS, *(ctypes.c_ulong(x) for x in (1, 0, 0, 0))) != 0:
        raise OSError(ctypes.get_errno(), "the worker could not lock itself: prctl failed")
    number = ctypes.c_long(SECCOMP[os.uname().machine])
    for flags in (ALL_THREADS | KEEP_SPECULATION, ALL_THREADS):
        if libc.syscall(number, ctypes.c_ulong(SET_MODE_FILTER), ctypes.c_ulong(flags), head) == 0:
            return
    raise OSError(ctypes.get_errno(), "the worker could not lock itself: the kernel refused the filter")
