"""Worker for `kernel` candidates on a CPU: loads one shared object and calls it on slots of the arena.

It never sees the reference, an expected value, a tolerance or a seed. Started warm (nothing candidate-specific is
known yet) and used for one candidate. Without a library it calls nothing, which measures what the calling costs.
Run as `python -I -S kernel.py FD LOCK`.
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
import chaining  # type: ignore[import-not-found,unused-ignore]
import locking  # type: ignore[import-not-found,unused-ignore]
import wire  # type: ignore[import-not-found,unused-ignore]

LIBM = ctypes.CDLL("libm.so.6", use_errno=False)
CONTROL_BITS = 0xFFC0
"""Of MXCSR on x86-64: rounding, masks, flush to zero, denormals are zero. The low six bits only remember exceptions."""


def float_controls() -> int:
    """How the processor rounds and treats denormals: MXCSR on x86-64, the rounding mode elsewhere."""
    if os.uname().machine == "x86_64":
        environment = (ctypes.c_ubyte * 64)()
        LIBM.fegetenv(environment)
        return int.from_bytes(bytes(environment[28:32]), "little") & CONTROL_BITS
    return int(LIBM.fegetround())


class Kernel:
    """The loaded candidate with the argument blocks of every slot made beforehand."""

    def __init__(self, setup: dict, fds: list[int]) -> None:  # type: ignore[type-arg]
        os.sched_setaffinity(0, setup["cores"])
        self.arena = mmap.mmap(fds[0], setup["bytes"], mmap.MAP_SHARED | mmap.MAP_POPULATE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.arena))
        self.controls = float_controls()
        if len(fds) > 1:
            locking.lock(sys.argv[2])
            self.library = ctypes.CDLL(f"/proc/self/fd/{fds[1]}")
            function = self.library.kernel_run
        else:
            self.library = ctypes.CDLL(None)
            function = self.library.abs
        function.restype = None
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
        self.function = function
        self.blocks = []
        self.places = [(slot["inputs"], slot["outputs"]) for slot in setup["slots"]]
        self.dims: dict = {}  # type: ignore[type-arg]
        for slot in setup["slots"]:
            inputs = [base + place[0] for place in (*slot["inputs"], *slot["state"])]
            outputs = [base + place[0] for place in slot["outputs"]]
            dims = setup["dims"][slot["case"]]
            packed = (ctypes.c_longlong * max(1, len(dims)))(*dims)
            self.dims[slot["case"]] = packed
            self.blocks.append(
                ((ctypes.c_void_p * len(inputs))(*inputs), (ctypes.c_void_p * len(outputs))(*outputs), packed)
            )

    def prepare(self) -> None:
        """The declared untimed phase: once a case, with its dims and no contents."""
        function = getattr(self.library, "kernel_prepare", None)
        if function is None:
            return
        function.restype = None
        function.argtypes = [ctypes.c_void_p]
        for dims in self.dims.values():
            function(dims)

    def run(self, slots: list[int]) -> int:
        blocks = [self.blocks[i] for i in slots]
        function = self.function
        start = time.perf_counter_ns()
        for inputs, outputs, dims in blocks:
            function(inputs, outputs, dims)
        return time.perf_counter_ns() - start

    def chain(self, request: dict) -> list[int]:  # type: ignore[type-arg]
        digest: int = request["seed"]
        digests = []
        arena = memoryview(self.arena)
        for index in request["slots"]:
            inputs, outputs = self.places[index]
            chaining.disturb(arena, [inputs[i] for i in request["swap"]], digest)
            self.function(*self.blocks[index])
            digest = chaining.digest_of(arena, outputs, digest)
            digests.append(digest)
        return digests

    def differences(self) -> list[tuple[str, str]]:
        """What the candidate left changed in its process (a tripwire, see `guarding`)."""
        noted = []
        now = float_controls()
        if now != self.controls:
            noted.append(
                ("global-flag", f"floating-point controls (rounding, denormals) changed {self.controls:#x} → {now:#x}")
            )
        return noted


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    kernel: Kernel | None = None
    while True:
        try:
            kind, payload, fds = wire.receive(channel, 2 if kernel is None else 0)
        except wire.Closed:
            return
        answer = b""
        if kind == wire.RUN:
            nonce, slots = wire.unpack_run(payload)
            spent = kernel.run(slots) if kernel is not None else 0
            wire.send(channel, wire.DONE, wire.CLAIM.pack(spent, nonce))
            continue
        try:
            if kind == wire.SETUP:
                kernel = Kernel(json.loads(payload), fds)
            elif kernel is None:
                pass
            elif kind == wire.PREPARE:
                kernel.prepare()
            elif kind == wire.CHAIN:
                answer = json.dumps(kernel.chain(json.loads(payload))).encode()
            elif kind == wire.GUARD:
                answer = json.dumps(kernel.differences()).encode()
        except (OSError, AttributeError) as error:
            wire.send(channel, wire.ERROR, str(error).encode())
            continue
        wire.send(channel, wire.OK, answer)


if __name__ == "__main__":
    main()
