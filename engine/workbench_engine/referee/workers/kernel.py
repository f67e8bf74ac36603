"""Worker for `kernel` candidates on a CPU: loads one shared object and calls it on slots of the arena.

It never sees the reference, an expected value, a tolerance or a seed. Started warm (nothing candidate-specific is
known yet) and used for one candidate. Run as `python -I -S kernel.py FD`.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120
import wire  # type: ignore[import-not-found,unused-ignore]


class Kernel:
    """The loaded candidate with the argument blocks of every slot made beforehand."""

    def __init__(self, setup: dict, arena_fd: int, library_fd: int) -> None:  # type: ignore[type-arg]
        os.sched_setaffinity(0, setup["cores"])
        self.arena = mmap.mmap(arena_fd, setup["bytes"], mmap.MAP_SHARED | mmap.MAP_POPULATE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.arena))
        self.library = ctypes.CDLL(f"/proc/self/fd/{library_fd}")
        function = self.library.kernel_run
        function.restype = None
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.function = function
        self.blocks = []
        for slot in setup["slots"]:
            inputs = [base + place[0] for place in (*slot["inputs"], *slot["state"])]
            outputs = [base + place[0] for place in slot["outputs"]]
            dims = setup["dims"][slot["case"]]
            self.blocks.append(
                (
                    (ctypes.c_void_p * len(inputs))(*inputs),
                    (ctypes.c_void_p * len(outputs))(*outputs),
                    (ctypes.c_longlong * max(1, len(dims)))(*dims),
                )
            )

    def run(self, slots: list[int]) -> int:
        blocks = [self.blocks[i] for i in slots]
        function = self.function
        start = time.perf_counter_ns()
        for inputs, outputs, dims in blocks:
            function(inputs, outputs, dims)
        return time.perf_counter_ns() - start


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    kernel: Kernel | None = None
    while True:
        try:
            kind, payload, fds = wire.receive(channel, 2 if kernel is None else 0)
        except wire.Closed:
            return
        if kind == wire.RUN and kernel is not None:
            wire.send(channel, wire.DONE, wire.CLAIM.pack(kernel.run(wire.unpack_slots(payload))))
        elif kind == wire.SETUP:
            try:
                kernel = Kernel(json.loads(payload), fds[0], fds[1])
            except (OSError, AttributeError) as error:
                wire.send(channel, wire.ERROR, str(error).encode())
                continue
            wire.send(channel, wire.OK)
        else:
            wire.send(channel, wire.OK)


if __name__ == "__main__":
    main()
