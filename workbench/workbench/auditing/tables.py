"""The audit as tables of text, for the terminal, Markdown and HTML alike; pure."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.auditing.rows import VALID, Outcome, one_line
from workbench.auditing.summary import Group, Numbers
from workbench.display.words import ratio, seconds

ROW_COLUMNS = ("row", "claimed", "verdict", "refereed", "interval", "reference → candidate", "findings")
GROUP_COLUMNS = (
    "level",
    "side",
    "rows",
    "mean",
    "geomean",
    "95 %",
    "median",
    "p25",
    "p75",
    "max",
    "fast_1",
    "fast_1.2",
)
COUNT_COLUMNS = ("level", "rows", "valid", "counted as 1.0", "verdicts", "FASTER", "Holm", "no claim", "fallbacks")


def row_cells(outcome: Outcome, claim: str) -> list[str]:
    """One row: claimed against refereed. A measured speedup of a row that is not valid stands in brackets."""
    found = ", ".join(dict.fromkeys(f.code for f in outcome.findings))
    shown = ratio(outcome.speedup)
    interval = ""
    if outcome.lower is not None and outcome.upper is not None:
        interval = f"{outcome.lower:.2f}–{outcome.upper:.2f}"
    if outcome.speedup is not None and outcome.state not in VALID:
        shown = f"({shown})"
    times = ""
    if outcome.reference_s is not None and outcome.candidate_s is not None:
        times = f"{seconds(outcome.reference_s)} → {seconds(outcome.candidate_s)}"
    name = one_line(f"{outcome.key} {outcome.name}")
    return [name, ratio(outcome.claims.get(claim)), outcome.state, shown, interval, times, found]


def group_cells(group: Group) -> list[list[str]]:
    """Claimed and refereed over all rows; over the judged ones where that are fewer; over the valid ones.

    Claims only where there are any.
    """
    sides = (
        ("claimed, all rows", group.claimed),
        ("refereed, all rows", group.refereed),
        ("claimed, judged rows", group.judged_claimed if group.not_judged else None),
        ("refereed, judged rows", group.judged_refereed if group.not_judged else None),
        ("claimed, valid rows", group.valid_claimed),
        ("refereed, valid rows", group.valid_refereed),
    )
    shown = [(side, n) for side, n in sides if n is not None and (group.unclaimed < group.rows or side[0] == "r")]
    return [[group.name, side, *_cells(n)] for side, n in shown]


def count_cells(group: Group) -> list[str]:
    """How the rows of a group ended, and which of them count as 1.0."""
    parts = (
        (group.no_code, "no code"),
        (group.unusable, "no usable kernel"),
        (group.not_judged, "not judged"),
        (group.absent, "absent"),
    )
    ones = ", ".join(f"{n} {word}" for n, word in parts if n) or "none"
    verdicts = ", ".join(f"{n} {state}" for state, n in group.verdicts.items())
    return [
        group.name,
        str(group.rows),
        str(group.valid),
        ones,
        verdicts,
        str(group.faster),
        f"{group.holm_faster} of {group.rows}",
        str(group.unclaimed),
        str(group.fallbacks),
    ]


def headline(groups: Sequence[Group]) -> str:
    """Claimed against refereed in one line; only a geometric mean may be one."""
    whole = groups[-1]
    if whole.claimed is None or whole.refereed is None:
        return "no row is judged"
    r = whole.refereed
    interval = f" [{r.low:.2f}–{r.high:.2f}]" if r.low is not None and r.high is not None else ""
    claimed = f"claimed {ratio(whole.claimed.geomean)}" if whole.unclaimed < whole.rows else "nothing claimed"
    return (
        f"geometric mean over {whole.rows} rows: {claimed}, refereed {ratio(r.geomean)}{interval}; "
        f"{whole.valid} hold a correct kernel, {whole.faster} a faster one"
        + (f"; {whole.not_judged} could not be judged here" if whole.not_judged else "")
    )


def _cells(n: Numbers) -> list[str]:
    interval = f"{n.low:.2f}–{n.high:.2f}" if n.low is not None and n.high is not None else ""
    values = [ratio(v) for v in (n.median, n.p25, n.p75, n.max)]
    shares = [f"{100 * share:.0f} %" for share in (n.fast_1, n.fast_1_2)]
    return [str(n.n), ratio(n.mean), ratio(n.geomean), interval, *values, *shares]


def notes(
    groups: Sequence[Group], claim: str, total: int, settings: dict[str, str], device: str, sandbox: str
) -> list[str]:
    """What must be known to read the tables."""
    whole = groups[-1]
    done = whole.rows - whole.absent
    said = []
    if done < total:
        said.append(f"Incomplete: {done} of {total} rows are judged so far; run the same command again to go on.")
    said.append(
        f"Refereed on {device}, one core and one thread on both sides, sandbox {sandbox or '—'}; compared with "
        f"{claim or 'no claim'}."
    )
    said.append(
        "Claims are numbers of the file, measured by others on their device: they are shown beside the verdicts "
        "and enter none of them."
    )
    ones = whole.no_code + whole.unusable + whole.not_judged + whole.absent
    parts = (
        (whole.no_code, "no code"),
        (whole.unusable, "no usable kernel (WRONG, CHEATING or FAILED)"),
        (whole.not_judged, "not judged (task refused, or beyond this machine)"),
        (whole.absent, "absent"),
    )
    why = "; ".join(f"{word}: {n}" for n, word in parts if n)
    said.append(f"Counted as refereed 1.0 over all rows: {ones} of {whole.rows}{f' ({why})' if why else ''}.")
    if whole.unclaimed:
        said.append(f"Without a claim, counted as claimed 1.0: {whole.unclaimed} of {whole.rows}.")
    said.append(f"FASTER one by one: {whole.faster}. Tested together (Holm, 5 %): {whole.holm_faster} of {whole.rows}.")
    if beyond := whole.verdicts.get("NOT REFEREED"):
        said.append(
            f"Beyond this machine within the deadline: {beyond} of the rows. --set NAME=NUMBER makes tasks smaller, "
            "--retry --deadline SECONDS gives those rows more time."
        )
    if whole.fallbacks:
        said.append(
            f"Code for a device that is not here: {whole.fallbacks} of the rows. What was judged of them is their "
            "fallback, not the kernel that the claim is about."
        )
    if settings.get("set"):
        said.append(f"Sizes were changed: {settings['set']}. Kernels tuned for the original sizes may suffer from it.")
    return said
