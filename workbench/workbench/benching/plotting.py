"""The picture of `bench policies`. matplotlib is imported only here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workbench.benching.comparing import median_curve
from workbench.benching.runs import Finished
from workbench.errors import UsageProblem


def plot_policies(runs: Sequence[Finished], evaluations: int, out: Path) -> None:
    """Best so far by evaluations, a line a policy, to a PNG or SVG. Raises UsageProblem without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageProblem("--plot needs matplotlib: pip install 'kernel-workbench[bench]'") from None
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for policy, style in zip(sorted({r.policy for r in runs}), ("-", "--", "-.", ":") * 4, strict=False):
        mine = [r for r in runs if r.policy == policy]
        axes.plot(range(1, evaluations + 1), median_curve(mine, evaluations), style, label=policy)
    tasks = len({r.task for r in runs})
    axes.set_xlabel("evaluations")
    axes.set_ylabel("best refereed speedup over eager")
    axes.set_title(f"median over seeds, geometric mean over {tasks} tasks")
    axes.legend()
    axes.grid(alpha=0.3)
    try:
        figure.savefig(out)
    except (OSError, ValueError) as error:
        raise UsageProblem(f"--plot {out}: {error}") from None
