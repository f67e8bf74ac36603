"""Who came from whom: by island, the way to the best in bold, everything else folded to what matters."""

from __future__ import annotations

from textual.app import ComposeResult

from workbench_screens import formats, words
from workbench_screens.actions import bindings
from workbench_screens.desk import Desk
from workbench_screens.lines import Line
from workbench_screens.pane import Pane
from workbench_screens.workscreen import WorkScreen
from workbench_sessions.projection import Candidate, Projection

SIBLINGS = 4
"""Children shown of one parent besides the way to the best; the rest is counted."""


def ancestry(p: Projection, candidate: str | None) -> list[str]:
    """From the oldest known ancestor (by first parents) down to the candidate. Ends at a cycle."""
    path: list[str] = []
    while candidate is not None and candidate in p.candidates and candidate not in path:
        path.append(candidate)
        parents = p.candidates[candidate].parents
        candidate = parents[0] if parents else None
    return path[::-1]


def children(p: Projection) -> dict[str, list[str]]:
    """Ids by first parent, in the order they were proposed; "" holds those without a known one."""
    out: dict[str, list[str]] = {}
    for candidate in p.candidates.values():
        parent = candidate.parents[0] if candidate.parents and candidate.parents[0] in p.candidates else ""
        out.setdefault(parent, []).append(candidate.id)
    return out


def _worth(candidate: Candidate) -> float:
    return candidate.speedup if candidate.speedup is not None and words.claimed(candidate) else 0.0


def _tops(p: Projection) -> list[str]:
    """The best claimed candidate of each island."""
    tops: dict[int, Candidate] = {}
    for candidate in p.candidates.values():
        if _worth(candidate) > 0 and (
            candidate.island not in tops or _worth(candidate) > _worth(tops[candidate.island])
        ):
            tops[candidate.island] = candidate
    return [candidate.id for candidate in tops.values()]


def tree_lines(desk: Desk) -> list[Line]:
    """One block an island. Open are the ways to each island's best and to the chosen candidate."""
    p, glyphs = desk.projection, desk.glyphs
    best_path = set(ancestry(p, p.best))
    chosen_path = set(ancestry(p, desk.selected))
    opened = best_path | chosen_path
    for name in _tops(p):
        opened |= set(ancestry(p, name))
    below = children(p)
    out: list[Line] = []
    for island in sorted({candidate.island for candidate in p.candidates.values()}):
        members = [c for c in p.candidates.values() if c.island == island]
        top = max(members, key=_worth)
        head: Line = [(f"island {island}", "accent bold"), (f"  {len(members)} candidates", "muted")]
        if _worth(top):
            head.append((f"  best {formats.ratio(top.speedup)} {top.id}", "faster"))
        moved = [m for m in p.migrations if m[1] == island]
        if moved:
            head.append((f"  last migrant {moved[-1][2]} from island {moved[-1][0]}", "muted"))
        out.append(head)
        roots = [name for name in below.get("", []) if p.candidates[name].island == island]
        _grow(desk, roots, below, opened, best_path, island, "  ", out)
        out.append([])
    if not out:
        return [[("no candidates yet", "muted")]]
    key = f"{glyphs.best} best   bold = on the way to it"
    return [*out, [(key, "muted")]]


def _grow(
    desk: Desk,
    names: list[str],
    below: dict[str, list[str]],
    opened: set[str],
    best_path: set[str],
    island: int,
    indent: str,
    out: list[Line],
) -> None:
    # A stack instead of recursion: lineages of a long run are deeper than Python's limit.
    stack = [(names, indent)]
    while stack:
        level, pad = stack.pop()
        p = desk.projection
        chosen = [name for name in level if name in opened]
        others = sorted((n for n in level if n not in opened), key=lambda n: _worth(p.candidates[n]), reverse=True)
        shown = others[:SIBLINGS]
        for name in shown:
            out.append([(pad, "faint"), *_node(desk, p.candidates[name], len(below.get(name, [])), False)])
        if len(others) > len(shown):
            failed = sum(p.candidates[n].verdict in ("FAILED", "WRONG", "CHEATING") for n in others[SIBLINGS:])
            text = f"{len(others) - len(shown)} more" + (f", {failed} of them out" if failed else "")
            out.append([(f"{pad}{'...' if desk.glyphs.ascii else '…'} {text}", "faint")])
        for name in chosen:
            out.append([(pad, "faint"), *_node(desk, p.candidates[name], 0, name in best_path)])
            nested = below.get(name, [])
            if nested:
                deeper = pad + ("| " if desk.glyphs.ascii else "│ ") if len(pad) < 60 else pad
                stack.append((nested, deeper))


def _node(desk: Desk, c: Candidate, count: int, bold: bool) -> Line:
    number, number_style = words.speedup(c)
    text, style = words.verdict(c, desk.glyphs)
    strong = " bold" if bold else ""
    chosen = " cursor" if c.id == desk.selected else ""
    sign = words.badges(c, desk.projection.best, desk.glyphs)
    out: Line = [
        (f"{sign}{c.id}", f"{strong}{chosen}".strip()),
        (f" g{c.generation} i{c.island} ", "muted"),
        (text, f"{style}{strong}"),
        (f" {number}", f"{number_style}{strong}"),
    ]
    if count:
        out.append((f"  {count} below", "faint"))
    return out


class LineagePane(Pane, can_focus=True):
    HELP = "The tree of candidates by island. Choose one on the Population screen to see its way."

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="tree")
        self.rest_s = 2.0

    def state(self) -> tuple[object, ...]:
        return (*self.desk.state(), self.desk.selected)

    def draw(self, width: int, height: int) -> list[Line]:
        return tree_lines(self.desk)


class LineageScreen(WorkScreen):
    NAME = "lineage"
    CSS_PATH = ["workscreen.tcss", "lineage.tcss"]
    BINDINGS = bindings("lineage")

    def body(self) -> ComposeResult:
        yield LineagePane(self.desk)

    def on_mount(self) -> None:
        self.query_one(LineagePane).focus()
