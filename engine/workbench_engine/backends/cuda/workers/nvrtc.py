"""NVRTC through ctypes: a source text in, a cubin and the lowered names of its kernels out. Needs no driver.

Standard library only and importable by path: it is mounted into compile cages. Run as `python -I -S nvrtc.py LIBRARY`
it says as JSON what the library is.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

COMPILATION_FAILED = 6


class NvrtcError(Exception):
    """A call that failed for another reason than the source. `str()` names the call and NVRTC's word for it."""


class Compiled:
    """`cubin` is empty when it does not compile; `log` is what the compiler printed either way; `lowered` by name
    expression."""

    def __init__(self, cubin: bytes, log: str, lowered: dict[str, str]) -> None:
        self.cubin = cubin
        self.log = log
        self.lowered = lowered


class Nvrtc:
    """The library at `path`. Raises OSError when it does not load."""

    def __init__(self, path: str) -> None:
        # Some builds look for their second half by the system's search path alone, and find it once it is loaded.
        folder = os.path.dirname(os.path.realpath(path))  # noqa: PTH120
        for name in sorted(os.listdir(folder)):  # noqa: PTH208
            if name.startswith("libnvrtc-builtins.so"):
                ctypes.CDLL(os.path.join(folder, name))  # noqa: PTH118
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self._library.nvrtcGetErrorString.argtypes = [ctypes.c_int]

    def version(self) -> tuple[int, int]:
        """(major, minor). Raises NvrtcError."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self) -> list[int]:
        """Compute capabilities it compiles for, as 90 for 9.0. Raises NvrtcError."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", numbers)
        return list(numbers)

    def compile(self, source: str, options: list[str], expressions: list[str]) -> Compiled:
        """Compile for a real architecture (`-arch=sm_…`). A source that does not compile is an answer, not an error.

        `expressions` are kernels by name or name expression; each is instantiated and its lowered name returned.
        Raises NvrtcError.
        """
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
        try:
            for expression in expressions:
                self._call("nvrtcAddNameExpression", program, expression.encode())
            packed = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            code = self._library.nvrtcCompileProgram(program, len(options), packed)
            log = self._text(program, "nvrtcGetProgramLog")
            if code == COMPILATION_FAILED:
                return Compiled(b"", log, {})
            if code:
                # Unknown options and the like: the log says which.
                return Compiled(b"", f"error: {self._word(code)}\n{log}", {})
            lowered = {}
            for expression in expressions:
                name = ctypes.c_char_p()
                self._call("nvrtcGetLoweredName", program, expression.encode(), ctypes.byref(name))
                lowered[expression] = (name.value or b"").decode()
            return Compiled(self._bytes(program, "nvrtcGetCUBIN"), log, lowered)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _bytes(self, program: ctypes.c_void_p, name: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{name}Size", program, ctypes.byref(size))
        room = ctypes.create_string_buffer(max(1, size.value))
        self._call(name, program, room)
        return room.raw[: size.value]

    def _text(self, program: ctypes.c_void_p, name: str) -> str:
        return self._bytes(program, name).rstrip(b"\0").decode("utf-8", "replace")

    def _word(self, code: int) -> str:
        return str((self._library.nvrtcGetErrorString(code) or b"?").decode())

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise NvrtcError(f"{name}: {self._word(code)}")


if __name__ == "__main__":
    library = Nvrtc(sys.argv[1])
    print(json.dumps({"version": library.version(), "architectures": library.architectures()}))
