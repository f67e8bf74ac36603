"""Honest Python candidates of the bundled tasks, written out so that every step of the arithmetic can go wrong."""

from __future__ import annotations

_HEAD = "import math\n\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n"
_PLAIN = "    def forward(self, {}):\n"

MODULES: dict[str, str] = {
    "attention_short": _HEAD
    + _PLAIN.format("q, k, v")
    + """\
        scale = 1.0 / math.sqrt(q.shape[-1])
        scores = torch.einsum("bhid,bhjd->bhij", q * scale, k)
        scores = scores - scores.amax(dim=-1, keepdim=True)
        weights = scores.exp()
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return torch.einsum("bhij,bhjd->bhid", weights, v)
""",
    "bias_gelu_scale": _HEAD
    + """\
    def __init__(self, cols):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(cols))
        self.scale = torch.nn.Parameter(torch.ones(cols))

    def forward(self, x):
        y = x + self.bias
        y = 0.5 * y * (1.0 + torch.erf(y * 0.7071067811865476))
        return y * self.scale
""",
    "conv_bias_relu": _HEAD
    + """\
    def __init__(self, channels):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(channels, 1, 3, 3))
        self.bias = torch.nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        height, width = x.shape[2], x.shape[3]
        padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
        out = self.bias.view(1, -1, 1, 1) + torch.zeros_like(x)
        for i in range(3):
            for j in range(3):
                tap = self.weight[:, 0, i, j].view(1, -1, 1, 1)
                out = out + tap * padded[:, :, i : i + height, j : j + width]
        return torch.clamp(out, min=0.0)
""",
    "cross_entropy": _HEAD
    + _PLAIN.format("logits, target")
    + """\
        top = logits.amax(dim=1, keepdim=True)
        total = (logits - top).exp().sum(dim=1)
        chosen = logits.gather(1, target.unsqueeze(1)).squeeze(1)
        loss = total.log() + top.squeeze(1) - chosen
        return loss.sum() / logits.shape[0]
""",
    "cumsum_rows": _HEAD
    + _PLAIN.format("x")
    + """\
        half = x.shape[1] // 2
        first = torch.cumsum(x[:, :half], dim=1)
        second = torch.cumsum(x[:, half:], dim=1)
        if half > 0:
            second = second + first[:, -1:]
        return torch.cat([first, second], dim=1)
""",
    "diag_matmul": _HEAD
    + _PLAIN.format("a, b")
    + """\
        return a.unsqueeze(1) * b
""",
    "layernorm": _HEAD
    + """\
    def __init__(self, cols):
        super().__init__()
        self.norm = torch.nn.LayerNorm(cols)

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        centred = x - mean
        variance = centred.pow(2).mean(dim=-1, keepdim=True)
        y = centred * torch.rsqrt(variance + 1e-5)
        return y * self.norm.weight + self.norm.bias
""",
    "linear_sum": _HEAD
    + """\
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(outer, inner))

    def forward(self, x):
        column = self.weight.sum(dim=0) / 2.0
        return (x * column).sum(dim=1) * 1.5
""",
    "reduce_middle": _HEAD
    + _PLAIN.format("x")
    + """\
        top = x.amax(dim=1, keepdim=True)
        total = (x - top).exp().sum(dim=1)
        return total.log() + top.squeeze(1)
""",
    "rmsnorm": _HEAD
    + """\
    def __init__(self, cols):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        square = (x * x).mean(dim=-1, keepdim=True)
        y = x / (square + 1e-6).sqrt()
        return y * self.weight
""",
    "softmax_rows": _HEAD
    + _PLAIN.format("x")
    + """\
        shifted = x - x.amax(dim=-1, keepdim=True)
        weights = shifted.exp()
        return weights / weights.sum(dim=-1, keepdim=True)
""",
    "swish_chain": _HEAD
    + """\
    def __init__(self, cols, low, high):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(cols))
        self.low, self.high = low, high

    def forward(self, x, residual):
        y = x / (1.0 + (-x).exp())
        y = y * self.scale
        y = torch.minimum(torch.maximum(y, torch.tensor(self.low)), torch.tensor(self.high))
        return y + residual
""",
    "tall_skinny_gram": _HEAD
    + _PLAIN.format("a")
    + """\
        half = a.shape[1] // 2
        top, rest = a[:, :half], a[:, half:]
        return top.transpose(1, 2) @ top + rest.transpose(1, 2) @ rest
""",
}
"""By the task's bundled name: a `module` candidate without a fault."""
