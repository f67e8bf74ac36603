"""Every finding the referee can raise: its code, how grave it is, what it says, and which cheats it catches.

Severities: `cheat` ends the candidate as CHEATING (or leaves it WRONG, when the answer was wrong anyway); `warning`
is shown and may withhold a claim; `label` is a badge (what kind of thing the candidate is), never a judgement.
Numbers in `rows` are those of the exploit catalogue (docs/referee.md).
"""

from __future__ import annotations

from msgspec import Struct

from workbench_sessions.events import Severity


class Kind(Struct, frozen=True):
    """One kind of finding. `text` is what it means in a few words."""

    code: str
    severity: Severity
    text: str
    rows: tuple[int, ...] = ()


KINDS = (
    # What the checks see.
    Kind("input-mutation", "warning", "wrote to its inputs", (26,)),
    Kind("state-mutation", "warning", "wrote to the module's parameters or buffers", (26,)),
    Kind("out-of-bounds", "warning", "wrote outside its outputs", (32,)),
    Kind("stale-pointer", "cheat", "answers by address: same buffer with new contents gave the old answer", (5, 27)),
    Kind("stale-fingerprint", "cheat", "answers by a few elements: a changed input gave the old answer", (6,)),
    Kind("shared-output", "warning", "the second call overwrote the first call's result", (5,)),
    Kind("stale-weights", "warning", "ignores new parameters loaded by load_state_dict", (5,)),
    Kind("shared-state", "warning", "two instances of the model disturb one another", (5, 33)),
    Kind("mode-ignored", "warning", "does not follow train() and eval() as the task declares"),
    Kind("not-a-tensor", "cheat", "returned what is not exactly a torch.Tensor with storage of its own", (3,)),
    Kind("unwritten-output", "warning", "left elements of its output unwritten", (8, 23)),
    Kind("lower-precision", "warning", "computes in a lower precision than the task declares", (22,)),
    # What a wrong answer looks like.
    Kind("constant-output", "info", "answers with one and the same number everywhere", (9, 10, 16, 20)),
    Kind(
        "undefined-output", "info", "answers the same question differently twice: it reads what nobody wrote", (8, 32)
    ),
    Kind("partly-wrong", "info", "part of the output is right, part was left out or is wrong", (23,)),
    Kind("inexact", "info", "near the right answer everywhere, but not near enough: an approximation", (21, 22, 23)),
    Kind("timed-shape", "info", "right on every small shape, wrong on the one that is timed", (24,)),
    Kind("narrow-inputs", "info", "right on some inputs of this shape, wrong on others", (21, 25)),
    Kind("another-function", "info", "wrong nearly everywhere: it computes something else", (16, 23)),
    # What the clocks see.
    Kind("timed-call-wrong", "cheat", "right when checked, wrong when timed", (7, 24)),
    Kind("replayed-output", "cheat", "a timed call returned an earlier call's answer", (4, 7)),
    Kind("hidden-work", "cheat", "worked on the processor while no call was running", (1, 2, 4)),
    Kind("reference-slowed", "cheat", "keeps the processor busy while the reference has its turn", (29,)),
    Kind("extra-cores", "cheat", "uses other cores than the one it is timed on", (2,)),
    Kind("work-outside-timing", "cheat", "untimed calls do the work of timed ones", (4, 7)),
    Kind("clock-disagreement", "cheat", "the time it claims and the time outside disagree", (11, 13)),
    Kind("chain-disagreement", "cheat", "dependent calls take longer than the timed calls allow", (1, 2, 4, 7)),
    Kind("late-output", "cheat", "an output changed after it was reported as done", (1, 2, 3)),
    Kind("faster-than-roofline", "cheat", "faster than its bytes and flops allow", (19,)),
    Kind("result-channel", "cheat", "wrote forged answers to the result channel", (14,)),
    Kind("extra-process", "warning", "keeps a process of its own beside the worker", (34,)),
    Kind("patched-function", "cheat", "replaced a function of the timer or the checker", (11, 12)),
    Kind("extra-threads", "warning", "leaves threads running after a call returned", (2,)),
    Kind("global-flag", "warning", "leaves a global flag of the process changed", (29, 33)),
    Kind("bimodal", "warning", "its calls fall into two groups more than 10x apart", (4, 7)),
    Kind("flat-scaling", "warning", "its time does not grow with the size of the work", (5, 24)),
    Kind("threads-failed", "warning", "failed when given several threads"),
    # What kind of thing it is.
    Kind("library", "label", "its time is spent in library calls", (18,)),
    Kind("no-custom-kernel", "label", "no compiled code of its own ran", (17, 19)),
    Kind("library-forbidden", "cheat", "leaves the work to a library, which the task forbids", (16, 17, 18, 19)),
    Kind("precision", "label", "the precision class its errors show", (22,)),
    Kind("advice", "label", "what a reading of the source suggests looking at"),
    Kind("judge", "warning", "the adversarial judge finds it suspicious"),
    # What an audit of released files sees in a row before or beside the referee.
    Kind("bad-row", "warning", "the row itself cannot be read"),
    Kind("no-code", "warning", "the row has no code"),
    Kind("not-python", "warning", "the code does not parse"),
    Kind("no-modelnew", "warning", "the code defines no ModelNew"),
    Kind("same-as-reference", "warning", "the code is the reference's own"),
    Kind("task-refused", "warning", "the task is useless as a test"),
    Kind("not-refereed", "warning", "this machine could not judge it within the deadline"),
    Kind("redefined-inputs", "warning", "changes sizes or input functions of the task (which are not used)"),
    Kind("needs-device", "label", "runs only on a device that is not here"),
    Kind("device-code-idle", "label", "holds code for a device that is not here: its fallback was judged"),
)
BY_CODE = {kind.code: kind for kind in KINDS}
