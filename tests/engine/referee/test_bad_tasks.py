"""Task files that cannot be used: each is refused with one line, and nothing of the machine suffers."""

from __future__ import annotations

import os

import pytest

from workbench_engine.referee.bench import Bench
from workbench_engine.referee.protocol import Protocol
from workbench_engine.sandbox.level import probe
from workbench_engine.tasks.contract import TaskRejected

HEAD = "import torch, torch.nn as nn\n"
TAIL = "\ndef get_inputs(): return [torch.randn(32, 64)]\ndef get_init_inputs(): return []\n"
MODEL = "class Model(nn.Module):\n    def forward(self, x): return {}\n"

BAD = {
    "does not parse": ("class Model(:", "syntax"),
    "does not import": ("import no_such_module\n" + HEAD + MODEL.format("x * 2") + TAIL, "no_such_module"),
    "no Model": (HEAD + TAIL, "Model"),
    "no get_inputs": (HEAD + MODEL.format("x * 2"), "get_inputs"),
    "constant output": (HEAD + MODEL.format("torch.ones(3)") + TAIL, ""),
    "random output": (HEAD + MODEL.format("x + torch.rand_like(x)") + TAIL, "differs between two runs"),
    "hangs": (HEAD + "while True: pass", "no answer within"),
    "prints without end": (HEAD + "while True: print('x' * 100000)", "too large"),
    "fills the disk": (
        HEAD + "import os\nfor i in range(10**6): open(f'/tmp/{i}', 'wb').write(b'x' * 10**7)" + TAIL,
        "No space left",
    ),
    "ends the process": ("import os; os._exit(3)", "exit status 3"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_with_one_line(name: str) -> None:
    source, words = BAD[name]
    cores = sorted(os.sched_getaffinity(0))
    with pytest.raises(TaskRejected) as caught:
        Bench(
            level=probe(),
            device="cpu",
            source=source,
            path="task.py",
            case="",
            core=cores[-1],
            other_cores=cores,
            warm_modules=False,
            emit=lambda event: None,
            floor=False,
            protocol=Protocol(setup_deadline_s=25.0 if name != "hangs" else 8.0),
        )
    line = str(caught.value)
    assert words.lower() in line.lower() and "task.py" in line
    assert len(line) < 2500
