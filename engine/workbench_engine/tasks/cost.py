"""What running a task costs, as told before it runs."""

from __future__ import annotations

from msgspec import Struct


class Estimate(Struct, frozen=True):
    """Of one call of the first case. Sizes in bytes; `flops` counts products and convolutions only.

    `complete` is False, with the reason in `note`, where the file cannot run without data: what is known then is the
    part that could, and everything else is 0.
    """

    inputs: int = 0
    state: int = 0
    outputs: int = 0
    peak: int = 0
    """Most bytes that the forward pass holds at once beside inputs and state."""
    traffic: int = 0
    """Bytes that its operators read and write, each on its own."""
    flops: int = 0
    complete: bool = True
    note: str = ""

    @property
    def tensors(self) -> int:
        """Inputs, state and outputs."""
        return self.inputs + self.state + self.outputs

    @property
    def lint_bytes(self) -> int:
        """What describing and linting hold at once: several draws of the inputs, the answers in fp64, two models."""
        return 4 * self.inputs + 2 * self.state + 10 * self.outputs + self.peak
