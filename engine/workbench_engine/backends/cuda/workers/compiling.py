"""Compiles one file inside a cage: reads /job, writes a framed answer to stdout and what goes wrong to stderr.

The answer is 8 bytes of length (little-endian), that much JSON {ok, log, lowered, version}, then the cubin.
Run as `python -I -S compiling.py JOB SCRATCH`.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100,PTH120
import nvrtc  # type: ignore[import-not-found,unused-ignore]
import symbols  # type: ignore[import-not-found,unused-ignore]

LOG_KEPT = 64_000
MOST_BINARY = 128 << 20


def by_nvrtc(request: dict, source: str) -> tuple[bytes, str, dict[str, str]]:  # type: ignore[type-arg]
    done = nvrtc.Nvrtc(request["compiler_path"]).compile(source, request["options"], request["expressions"])
    kernels = symbols.entries(done.cubin) if done.cubin else []
    for expression, name in done.lowered.items():
        if name not in kernels:
            return b"", f"error: {expression!r} is no __global__ function; the launch must name one\n{done.log}", {}
    return done.cubin, done.log, done.lowered


def by_nvcc(request: dict, source: str, scratch: str) -> tuple[bytes, str, dict[str, str]]:  # type: ignore[type-arg]
    # Templates exist only where something uses them: the host part takes their addresses.
    uses = "".join(
        f"\nstatic const void* workbench_use_{i} __attribute__((used)) = (const void*)({name});"
        for i, name in enumerate(request["expressions"])
        if "<" in name
    )
    text, made = os.path.join(scratch, "kernel.cu"), os.path.join(scratch, "kernel.cubin")  # noqa: PTH118
    with open(text, "w") as file:  # noqa: PTH123
        file.write(f"{source}{uses}\n")
    command = [request["compiler_path"], "-cubin", *request["options"], "-o", made, text]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd=scratch)
    log = (done.stdout + done.stderr).decode("utf-8", "replace").replace(f"{scratch}/", "")
    if done.returncode:
        return b"", log or f"error: nvcc ended with status {done.returncode}", {}
    with open(made, "rb") as file:  # noqa: PTH123
        cubin = file.read(MOST_BINARY)
    try:
        return cubin, log, symbols.lowered_names(cubin, request["expressions"])
    except symbols.NotFound as error:
        return b"", f"{error}\n{log}", {}


def main() -> None:
    job, scratch = sys.argv[1:3]
    with open(os.path.join(job, "request.json")) as file:  # noqa: PTH118,PTH123
        request = json.load(file)
    with open(os.path.join(job, "kernel.cu")) as file:  # noqa: PTH118,PTH123
        source = file.read()
    # NVRTC prints nothing, but whatever a library does must not end up inside the answer.
    answer_fd = os.dup(1)
    os.dup2(2, 1)
    if request["compiler"] == "nvrtc":
        cubin, log, lowered = by_nvrtc(request, source)
    else:
        cubin, log, lowered = by_nvcc(request, source, scratch)
    head = json.dumps({"ok": bool(cubin), "log": log[:LOG_KEPT], "lowered": lowered}).encode()
    with os.fdopen(answer_fd, "wb") as answer:
        answer.write(struct.pack("<Q", len(head)) + head + cubin)


if __name__ == "__main__":
    main()
