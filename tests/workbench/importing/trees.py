"""A small checkout in KernelBench's layout, with task files of our own."""

from __future__ import annotations

from pathlib import Path

HEAD = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
TAIL = "\n\ndef get_init_inputs():\n    return []\n"

SCALED = (
    HEAD
    + "    def forward(self, x):\n        return x * 2.0 + 1.0\n\n\nbatch_size = 4\ndim = 64\n\n\n"
    + "def get_inputs():\n    return [torch.randn(batch_size, dim)]\n"
    + TAIL
)
CONSTANT = (
    HEAD
    + "    def forward(self, x):\n        return torch.softmax(x, dim=1).sum(dim=1) * torch.arange(4.0)\n\n\n"
    + "def get_inputs():\n    return [torch.randn(4, 8)]\n"
    + TAIL
)
RANDOM = (
    HEAD
    + "    def forward(self, x):\n        return x + torch.rand_like(x)\n\n\n"
    + "def get_inputs():\n    return [torch.randn(4, 8)]\n"
    + TAIL
)
LARGE = (
    HEAD
    + "    def forward(self, x):\n        return torch.relu(x)\n\n\n"
    + "batch_size = 1024 * 16\ninput_shape = (65536,)\n\n\n"
    + "def get_inputs():\n    return [torch.randn(batch_size, *input_shape)]\n"
    + TAIL
)
PACKAGE = "import no_such_package_anywhere\n" + SCALED
DEVICE = SCALED.replace("torch.randn(batch_size, dim)", 'torch.randn(batch_size, dim, device="cuda")')
BROKEN = "def get_inputs(:\n"
ENDLESS = "while True:\n    pass\n"

LICENCE = "MIT License\n\nCopyright of the test.\n"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checkout(root: Path, files: dict[str, str], *, below: str = "KernelBench", git: bool = True) -> Path:
    """`files` maps "level1/1_Name.py" to a source."""
    for name, source in files.items():
        path = root / below / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    (root / "LICENSE").write_text(LICENCE)
    if git:
        (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
        (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
        (root / ".git/refs/heads/main").write_text(COMMIT + "\n")
    return root
