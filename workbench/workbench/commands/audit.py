"""audit: released kernels through the referee, claimed against refereed."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.commands.common import Json, Trust, configuration
from workbench.errors import UsageProblem, nearest

if TYPE_CHECKING:
    from workbench.auditing.journal import About, Journal
    from workbench.auditing.refereeing import Care
    from workbench.auditing.rows import Row

ASSIGNMENT = re.compile(r"^([A-Za-z_]\w*)=(-?\d{1,12})$")
EXPECTED = re.compile(r"^([^=/,]+)=(\d{1,6})$")


def audit(
    file: Annotated[str, typer.Argument(help="JSON Lines of released kernels, a folder of candidates, or - (stdin).")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder (default: out/audit-NAME).")] = None,
    code: Annotated[str, typer.Option(help="Field that holds the kernel (default: custom_code, else code).")] = "",
    claim: Annotated[str, typer.Option(help="Claim to compare with (default: score_default, else the first).")] = "",
    reference: Annotated[Path | None, typer.Option(help="Folder of the references, where the rows have none.")] = None,
    only: Annotated[str, typer.Option(help="Rows: 1, 2/17, 3/*; comma separated.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="At most so many rows; 0 = all.")] = 0,
    set: Annotated[list[str] | None, typer.Option("--set", help="A constant of the tasks, as batch_size=4.")] = None,
    expect: Annotated[str, typer.Option(help="Tasks a level, as 1=100,2=100,3=50: absent ones count as 1.0.")] = "",
    profile: Annotated[str, typer.Option(help="final: as a winner is confirmed; search: quicker.")] = "final",
    deadline: Annotated[float, typer.Option(min=1, help="Seconds to open a task, and for a candidate.")] = 120.0,
    jobs: Annotated[int, typer.Option(min=1, help="Rows at once, each on two cores of its own.")] = 1,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try again what was NOT REFEREED (larger --deadline).")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away what an earlier audit left there.")] = False,
    report_only: Annotated[bool, typer.Option("--report-only", help="Judge nothing; write the reports anew.")] = False,
    trust: Trust = None,
    json: Json = False,
) -> None:
    """Judge released kernels and set what was claimed beside what can be measured here.

    Can be cut off and called again: judged rows are kept. Exit status 0 when the audit ran to its end, whatever it
    found.
    """
    from workbench.auditing.journal import Journal
    from workbench.auditing.refereeing import Care
    from workbench.auditing.running import chosen, core_pairs
    from workbench.commands.judging import builds

    if profile not in ("search", "final"):
        raise UsageProblem(f"--profile {profile!r} is unknown; known: search, final")
    values = dict(_assignment(text) for text in set or [])
    expected = _expected(expect)
    core_pairs(jobs)
    rows, digest = _read(file, code, reference)
    compared = _claim(rows, claim)
    picked = chosen(rows, only, limit)
    resolved, where = configuration({"run.trust": trust})
    trusted = resolved.config.run.trust
    name = _safe(Path(file).resolve().stem if file != "-" else "stdin")
    about = _about(
        file,
        digest,
        {
            "code": code,
            "profile": profile,
            "set": ",".join(f"{k}={v}" for k, v in sorted(values.items())),
            "trust": "yes" if trusted else "",
        },
    )
    with Journal(output or Path("out") / f"audit-{name}", about, fresh) as journal:
        try:
            if not report_only and any(row.key not in journal.done(retry) for row in picked):
                care = Care(profile, deadline, trusted)
                _run(picked, journal, care, values, builds(where), compared, jobs, retry)
        finally:
            if journal.outcomes:
                _report(journal, about, picked, compared, expected, json)


def _run(
    picked: Sequence[Row],
    journal: Journal,
    care: Care,
    values: dict[str, int],
    cache: Path,
    claim: str,
    jobs: int,
    retry: bool,
) -> None:
    from workbench.auditing.progress import PlainTeller, RichTeller
    from workbench.auditing.running import audit as run_audit

    done = sum(row.key in journal.done(retry) for row in picked)
    if done:
        print(f"{done} of {len(picked)} rows are judged already", file=sys.stderr)
    kind = RichTeller if sys.stderr.isatty() else PlainTeller
    teller = kind(len(picked), done, claim)
    try:
        asyncio.run(run_audit(picked, journal, care, cache, values, teller, jobs, retry))
    finally:
        teller.close()


def _report(
    journal: Journal, about: About, picked: Sequence[Row], claim: str, expected: dict[str, int], json: bool
) -> None:
    from workbench.auditing.saving import Report, ordered, save
    from workbench.auditing.summary import summarise
    from workbench.auditing.tables import (
        COUNT_COLUMNS,
        GROUP_COLUMNS,
        ROW_COLUMNS,
        count_cells,
        group_cells,
        headline,
        notes,
        row_cells,
    )
    from workbench.benching.tables import text_table

    keys = {row.key for row in picked}
    outcomes = ordered([o for o in journal.outcomes if o.key in keys])
    if not outcomes:
        return
    print("summing up", file=sys.stderr, flush=True)
    groups = summarise(outcomes, claim, expected)
    device = f"{about.cpu or 'this CPU'}, torch {about.torch}"
    cages = sorted({o.sandbox for o in outcomes if o.sandbox})
    said = notes(groups, claim, len(picked), about.settings, device, ", ".join(cages))
    report = Report(
        input=about.input,
        input_sha256=about.input_sha256,
        claim=claim,
        device=device,
        settings=about.settings,
        rows=len(picked),
        judged=len(outcomes),
        notes=said,
        groups=groups,
    )
    save(journal.folder, report, outcomes)
    if json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(text_table(ROW_COLUMNS, [row_cells(o, claim) for o in outcomes]))
        print()
        print(text_table(GROUP_COLUMNS, [cells for group in groups for cells in group_cells(group)]))
        print()
        print(text_table(COUNT_COLUMNS, [count_cells(group) for group in groups]))
        print()
        print("\n".join(said))
        print(headline(groups))
    print(f"report: {journal.folder / 'report.html'}", file=sys.stderr)


def _read(file: str, code: str, reference: Path | None) -> tuple[list[Row], str]:
    """All rows of the input and its sha256."""
    from workbench.auditing.folders import References, folder_rows
    from workbench.auditing.reading import nothing, read_rows

    references = References(reference) if reference is not None else None
    path = Path(file)
    if file != "-" and path.is_dir():
        if code:
            raise UsageProblem(f"--code {code}: names a field of a file, {file} is a folder")
        rows = folder_rows(path, references)
        # A folder is what its candidates and references say.
        digest = hashlib.sha256(repr([(r.key, r.reference, r.candidate, r.problem) for r in rows]).encode()).hexdigest()
        return rows, digest
    try:
        data = sys.stdin.buffer.read() if file == "-" else path.read_bytes()
    except OSError as error:
        raise UsageProblem(f"{file}: cannot be read ({error.strerror or error})") from None
    rows = read_rows(data, "stdin" if file == "-" else file, code, references.of if references else nothing)
    outside = repr([row.reference for row in rows]).encode() if references else b""
    return rows, hashlib.sha256(data + outside).hexdigest()


def _claim(rows: Sequence[Row], wanted: str) -> str:
    """The claim that is compared. Raises UsageProblem when no row has the one asked for."""
    known = list(dict.fromkeys(name for row in rows for name in row.claims))
    if wanted and wanted not in known:
        have = nearest(wanted, known) if known else "the input holds no claims (score, score_*)"
        raise UsageProblem(f"--claim {wanted!r}: no row has it; {have}")
    return wanted or ("score_default" if "score_default" in known else next(iter(known), ""))


def _about(file: str, digest: str, settings: dict[str, str]) -> About:
    from workbench.auditing.journal import About
    from workbench_engine.host import host_card, installed

    card = host_card()
    # A folder's place on this machine is nobody's business.
    shown = Path(file).resolve().name if file != "-" else "stdin"
    return About(
        input=shown,
        input_sha256=digest,
        settings=settings,
        cpu=card.cpu,
        torch=card.torch,
        version=installed("kernel-workbench"),
    )


def _assignment(text: str) -> tuple[str, int]:
    found = ASSIGNMENT.match(text.strip())
    if found is None:
        raise UsageProblem(f"--set {text!r}: give NAME=INTEGER, as --set batch_size=4")
    return found[1], int(found[2])


def _expected(text: str) -> dict[str, int]:
    wanted = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        found = EXPECTED.match(part)
        if found is None:
            raise UsageProblem(f"--expect {part!r}: give LEVEL=COUNT, as --expect 1=100,2=100,3=50")
        wanted[found[1].strip()] = int(found[2])
    return wanted


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "rows"
