"""What advice can say: its codes, their words, and the rows of the exploit catalogue they point at."""

from __future__ import annotations

from msgspec import Struct


class Advice(Struct, frozen=True):
    """One thing seen at one line (1-based) of a candidate's file. `rows` are of the catalogue in docs/referee.md."""

    code: str
    line: int
    text: str
    rows: tuple[int, ...] = ()


class Code(Struct, frozen=True):
    """One kind of advice; `text` says what was seen, in words that follow "the source"."""

    code: str
    text: str
    rows: tuple[int, ...]


CODES = (
    Code("fallback", "goes on after an exception", (17,)),
    Code("library", "calls a library", (18,)),
    Code("reference", "uses the reference's own model", (16,)),
    Code("timer", "reads or handles a clock", (11, 24)),
    Code("stream", "uses streams of its own", (1,)),
    Code("thread", "starts threads", (2,)),
    Code("process", "starts or signals processes", (34,)),
    Code("frame-walk", "looks at stack frames or live objects", (9,)),
    Code("cache", "may answer from an earlier call", (4, 5, 6)),
    Code("workspace", "keeps memory between calls", (5,)),
    Code("call-count", "keeps a number from call to call", (7,)),
    Code("cast", "names a lower precision", (22,)),
    Code("patch", "replaces something that is not its own", (11, 12, 29)),
    Code("global-flag", "changes a setting of the whole process", (22, 29, 33)),
    Code("seed", "sets the seed of the generator", (25,)),
    Code("file", "reads or writes files, or uses the network", (14, 15)),
    Code("native", "reaches into the process beneath Python", (13,)),
    Code("graph", "records and replays a CUDA graph", (27,)),
    Code("lazy-tensor", "makes a tensor subclass or intercepts tensor functions", (3,)),
    Code("redefines-task", "defines inputs of its own", (25,)),
    Code("input-write", "writes to an argument of forward", (26,)),
    Code("exit", "ends the process", (14, 36)),
    Code("l2", "steers the L2 cache", (28,)),
    Code("hidden-code", "builds names or code while it runs", (38,)),
    Code("unparsable", "cannot be parsed", ()),
)
BY_CODE = {code.code: code for code in CODES}


def advice(code: str, line: int, what: str) -> Advice:
    """Advice of a known code; `what` is the name or construct that was seen."""
    kind = BY_CODE[code]
    return Advice(code, max(1, line), f"{kind.text}: {what}" if what else kind.text, kind.rows)
