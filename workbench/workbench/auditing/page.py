"""The report as one HTML page without anything from outside: styles, plots and the sorting of tables are in it. Pure.

Whatever comes from the audited file is escaped; the page's own policy forbids every script but the one below.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from html import escape

from workbench.auditing import drawing
from workbench.auditing.drawing import Dot
from workbench.auditing.rows import NO_CODE, NOT_JUDGED, VALID, Outcome
from workbench.auditing.summary import ALL, Group
from workbench.auditing.tables import (
    COUNT_COLUMNS,
    GROUP_COLUMNS,
    ROW_COLUMNS,
    count_cells,
    group_cells,
    headline,
    row_cells,
)

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#667;--line:#d8dbe0;--soft:#f4f5f7;
--faster:#1a8f4c;--same:#5b7fa6;--slower:#c98a12;--ambiguous:#8d77c4;--wrong:#c93c37;--cheating:#c2218c;
--failed:#76553f;--nocode:#a9adb5;--notjudged:#c8cbd1;--claimed:#c2218c;--refereed:#1a8f4c}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e4e7eb;--dim:#98a0ab;--line:#343a42;--soft:#1d2127;
--faster:#3fbf77;--same:#7fa3cc;--slower:#e0a93a;--ambiguous:#ac98e0;--wrong:#ec6a62;--cheating:#e85fbb;
--failed:#b08a70;--nocode:#757b85;--notjudged:#4c525b;--claimed:#e85fbb;--refereed:#3fbf77}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--fg);margin:0 auto;max-width:1180px;
padding:24px}
h1{font-size:1.5rem;margin:0 0 .2em}h2{font-size:1.1rem;margin:2em 0 .6em}p.sub{color:var(--dim);margin:0 0 1em}
ul{padding-left:1.2em}li{margin:.2em 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
th{color:var(--dim);font-weight:600}td.wide{white-space:normal;min-width:240px}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--same)}
th[aria-sort=ascending] button:after{content:" ↑"}th[aria-sort=descending] button:after{content:" ↓"}
tr:hover td{background:var(--soft)}tr.first td{border-top:2px solid var(--line)}tr.whole td{font-weight:600}
p.head{font-size:1.15rem;font-weight:600;margin:0 0 .8em}figure.narrow{max-width:680px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(460px,100%),1fr));gap:20px}
figure{margin:0}figcaption{color:var(--dim);font-size:13px}
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--dim)}
.grid{stroke:var(--line)}.grid.one{stroke:var(--dim)}.diagonal{stroke:var(--dim);stroke-dasharray:4 4}
.dot,.piece{fill:var(--c)}.hollow{fill:var(--bg);stroke:var(--c);stroke-width:1.5}.bar{stroke:var(--c);stroke-width:1.5}
svg text.count{fill:var(--bg);text-anchor:middle}.nocode text.count,
.notjudged text.count{fill:var(--fg)}.curve{fill:none;stroke-width:2}
.curve.claimed{stroke:var(--claimed);stroke-dasharray:5 3}.curve.refereed{stroke:var(--refereed)}
.chip{display:inline-block;margin-right:14px;white-space:nowrap}.chip i{display:inline-block;width:10px;height:10px;
border-radius:50%;background:var(--c);margin-right:5px}.state{color:var(--c);font-weight:600}
.faster{--c:var(--faster)}.same{--c:var(--same)}.slower{--c:var(--slower)}.ambiguous{--c:var(--ambiguous)}
.unchanged{--c:var(--same)}.wrong{--c:var(--wrong)}.cheating{--c:var(--cheating)}.failed{--c:var(--failed)}
.nocode{--c:var(--nocode)}.notjudged{--c:var(--notjudged)}.claimed{--c:var(--claimed)}.refereed{--c:var(--refereed)}
td.state.nocode,td.state.notjudged{color:var(--dim)}
details summary{cursor:pointer;color:var(--dim)}
"""
SCRIPT = """
for(const head of document.querySelectorAll("table.sortable th button"))head.addEventListener("click",()=>{
const th=head.parentElement,row=th.parentElement,body=th.closest("table").tBodies[0];
const i=[...row.children].indexOf(th),up=th.getAttribute("aria-sort")==="descending"?1:-1;
for(const other of row.children)other.removeAttribute("aria-sort");
th.setAttribute("aria-sort",up>0?"ascending":"descending");
const key=r=>r.children[i].dataset.key??r.children[i].textContent;
[...body.rows].sort((a,b)=>{const x=key(a),y=key(b),m=Number(x),n=Number(y);
if(x===""||y==="")return(x==="")-(y==="");
return up*(isNaN(m)||isNaN(n)?x.localeCompare(y):m-n)}).forEach(r=>body.append(r))});
"""


def mark(state: str) -> str:
    """The CSS class of a row's state."""
    if state in NO_CODE:
        return "nocode"
    return "notjudged" if state in NOT_JUDGED else state.lower()


def page(
    title: str, about: str, notes: Sequence[str], outcomes: Sequence[Outcome], groups: Sequence[Group], claim: str
) -> str:
    """The whole report. `title`, `about` and everything of the outcomes are plain text."""
    script = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'"
    said = "".join(f"<li>{escape(line)}</li>" for line in notes)
    counts = [count_cells(group) for group in groups]
    numbers = [cells for group in groups for cells in group_cells(group)]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1><p class=sub>{escape(about)}</p>"
        f"<p class=head>{escape(headline(groups))}</p><ul>{said}</ul>"
        f"<h2>Claimed against refereed</h2>{_plain_table(GROUP_COLUMNS, numbers)}"
        f"<h2>How the rows ended</h2>{_plain_table(COUNT_COLUMNS, counts, wide=(3, 4))}"
        f"{_plots(outcomes, groups, claim)}"
        f"<h2>Rows</h2>{_rows(outcomes, claim)}<script>{SCRIPT}</script></body></html>\n"
    )


def _plots(outcomes: Sequence[Outcome], groups: Sequence[Group], claim: str) -> str:
    dots = [dot for o in outcomes if (dot := _dot(o, claim)) is not None]
    bars = [(g.name, _pieces(g)) for g in groups]
    shown = {mark(state): state if state not in (*NO_CODE, *NOT_JUDGED) else "" for g in groups for state in g.verdicts}
    words = {"nocode": "no code", "notjudged": "not judged"}
    legend = "".join(
        f'<span class="chip {name}"><i></i>{escape(label or words[name])}</span>' for name, label in shown.items()
    )
    curves = '<span class="chip claimed"><i></i>claimed</span><span class="chip refereed"><i></i>refereed</span>'
    claimed = [o.claims.get(claim) or 1.0 for o in outcomes]
    return (
        f"<h2>Verdicts</h2><figure class=narrow>{drawing.stacked(bars)}<figcaption>{legend}</figcaption></figure>"
        f'<h2>Plots</h2><div class="plots"><figure>{drawing.scatter(dots)}<figcaption>{legend}<br>'
        f"Each row with a claim ({len(dots)} of {len(outcomes)}), with the 95 % interval of what was measured. On the "
        "dashed line a claim holds. Hollow: no usable kernel, counted as 1.0.</figcaption></figure>"
        f"<figure>{drawing.ranked(claimed, [o.counted for o in outcomes])}<figcaption>{curves}<br>"
        "All rows from the fastest to the slowest, each curve sorted by itself; what is missing counts as 1.0."
        "</figcaption></figure></div>"
    )


def _pieces(group: Group) -> list[tuple[str, str, int]]:
    """(states, CSS class, count), one piece a class."""
    names: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for state, n in group.verdicts.items():
        names.setdefault(mark(state), []).append(state)
        counts[mark(state)] += n
    return [(", ".join(states), name, counts[name]) for name, states in names.items()]


def _dot(outcome: Outcome, claim: str) -> Dot | None:
    claimed = outcome.claims.get(claim)
    if claimed is None:
        return None
    valid = outcome.state in VALID
    cells = row_cells(outcome, claim)
    label = f"{cells[0]}: claimed {cells[1]}, {outcome.state} {cells[3]} {cells[4]}".rstrip()
    low, high = (outcome.lower, outcome.upper) if valid else (None, None)
    return Dot(label, claimed, outcome.counted, mark(outcome.state), low, high, hollow=not valid)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], wide: tuple[int, ...] = ()) -> str:
    """Rows that begin with the same cell belong together; those of "all" stand out."""
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = []
    for number, row in enumerate(rows):
        marks = ["first"] if number and rows[number - 1][0] != row[0] else []
        marks += ["whole"] if row[0] == ALL else []
        cells = "".join(f"<td{' class=wide' if i in wide else ''}>{escape(c)}</td>" for i, c in enumerate(row))
        body.append(f'<tr class="{" ".join(marks)}">{cells}</tr>')
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _rows(outcomes: Sequence[Outcome], claim: str) -> str:
    columns = (*ROW_COLUMNS, "why")
    head = "".join(f'<th><button type="button">{escape(c)}</button></th>' for c in columns)
    body = []
    for order, o in enumerate(outcomes):
        cells = row_cells(o, claim)
        claimed = o.claims.get(claim)
        keys: list[float | str | None] = [order, claimed, None, o.speedup, o.lower, o.candidate_s, None, None]
        parts = []
        for i, (cell, key) in enumerate(zip([*cells, ""], keys, strict=True)):
            attribute = f' data-key="{key}"' if key is not None else ' data-key=""' if i in (1, 3, 4, 5) else ""
            if i == 2:
                attribute += f' class="state {mark(o.state)}"'
            elif i >= 6:
                attribute += ' class="wide"'
            parts.append(f"<td{attribute}>{escape(cell) if i < 7 else _why(o)}</td>")
        body.append(f"<tr>{''.join(parts)}</tr>")
    table = f"<table class=sortable><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll">{table}</div>'


def _why(o: Outcome) -> str:
    """The reason, with the other claims, findings and overridden constants behind a fold."""
    more = [f"{f.severity} {f.code}: {f.text}" for f in o.findings if f.text != o.reason]
    more += [f"changed {text}" for text in o.changed]
    more += [f"{name} = {value:g}" for name, value in o.claims.items() if value is not None]
    reason = escape(o.reason)
    if not more:
        return reason
    lines = "".join(f"<li>{escape(line)}</li>" for line in more)
    return f"{reason}<details><summary>{len(more)} more</summary><ul>{lines}</ul></details>"
