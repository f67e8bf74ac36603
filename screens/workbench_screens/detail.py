"""Everything known of one candidate, as lines."""

from __future__ import annotations

from workbench_screens import formats, medians, words
from workbench_screens.desk import Desk
from workbench_screens.lines import Line, cut, wrap
from workbench_screens.pane import Pane
from workbench_screens.words import Glyphs
from workbench_sessions.events import TaskCard
from workbench_sessions.projection import Candidate, Details, Finding, PairSeries


def pair_strip(series: PairSeries, width: int, glyphs: Glyphs) -> list[Line]:
    """Reference and candidate times of the newest pairs as two rows of bars on one scale, with the median ratio."""
    count = min(len(series.reference_s), len(series.candidate_s), max(8, width - 12))
    reference, candidate = series.reference_s[-count:], series.candidate_s[-count:]
    if not count:
        return []
    every = [*reference, *candidate]
    low, top = min(every), max(every)
    low -= (top - low) * 0.1
    logs = medians.logs_of(series)
    now = medians.running(logs)
    out: list[Line] = []
    where = f"{series.device} {series.phase}" + (f" {series.threads} threads" if series.threads > 1 else "")
    said = "" if now is None else f" {formats.interval(now.median, now.lower, now.upper)} so far"
    out.append([(f"pairs {now.pairs if now else 0} {where}", "muted"), (said, "")])
    out.append([("ref  ", "muted"), (words.strip(list(reference), count, glyphs, top * 1.001, low), "pending")])
    out.append([("cand ", "muted"), (words.strip(list(candidate), count, glyphs, top * 1.001, low), "faster")])
    return out


def headline(c: Candidate, glyphs: Glyphs) -> list[Line]:
    """Verdict, number, and what that number is worth."""
    text, style = words.verdict(c, glyphs)
    number, number_style = words.speedup(c)
    lines: list[Line] = [[(text, f"{style} bold"), ("  ", ""), (number, number_style)]]
    if c.verdict == "FASTER":
        lines.append(
            [("confirmed in a fresh process", "faster")]
            if c.confirmed
            else [("not confirmed yet: no claim", "pending")]
        )
    elif c.verdict == "CHEATING":
        lines.append([("the number in parentheses is not a speedup", "cheating")])
    return lines


def timing_lines(c: Candidate) -> list[Line]:
    out: list[Line] = []
    if c.reference_s is not None and c.candidate_s is not None:
        out.append(
            [
                ("reference ", "muted"),
                (formats.seconds(c.reference_s), ""),
                (" → ", "muted"),
                (formats.seconds(c.candidate_s), ""),
                (f"  {c.pairs} pairs", "muted"),
            ]
        )
    facts = []
    if c.roofline_fraction is not None:
        facts.append(f"roofline {formats.percent(c.roofline_fraction)}")
    if c.delta is not None:
        facts.append(f"A/A floor {formats.floor(c.delta)}")
    if facts:
        out.append([("  ".join(facts), "muted")])
    if c.threads_speedup is not None:
        out.append([("all threads ", "muted"), (formats.ratio(c.threads_speedup), "")])
    if c.reward is not None:
        out.append([("reward ", "muted"), (formats.significant(c.reward), "")])
    return out


def check_lines(details: Details, width: int, glyphs: Glyphs) -> list[Line]:
    """One line a check that failed, the passed ones together with the tightest margin."""
    passed = [check for check in details.checks if check.ok]
    failed = [check for check in details.checks if not check.ok]
    out: list[Line] = []
    if details.checks:
        margins = [check.margin for check in passed if check.margin is not None]
        said = f"checks {len(passed)}/{len(details.checks)} ok"
        if margins:
            said += f", tightest at {formats.percent(max(margins))} of the tolerance"
        out.append([(cut(said, width), "faster" if not failed else "rejected")])
    for check in failed:
        size = f" {formats.significant(check.margin)}× over the tolerance" if check.margin is not None else ""
        at = f" at element {check.worst_index}" if check.worst_index is not None else ""
        text = f"{glyphs.verdicts['WRONG']} {check.name}{size}{at} {check.detail}".rstrip()
        out.extend([(part, "rejected")] for part in wrap(text, width))
    return out


def badge_lines(details: Details, width: int) -> list[Line]:
    """What kind of thing the candidate is, without judgement: short badges in a row, then what each of them says."""
    labels = [finding for finding in details.findings if finding.severity == "label"]
    if not labels:
        return []
    names = dict.fromkeys(f"[{_badge(finding)}]" for finding in labels)
    out: list[Line] = [[(part, "accent")] for part in wrap(" ".join(names), width)]
    for finding in labels:
        out.extend([(part, "muted")] for part in wrap(f"  {_badge(finding)}: {finding.text}", width))
    return out


def _badge(finding: Finding) -> str:
    """Advice is of many kinds under one code: its kind is the badge."""
    kind = finding.evidence.get("kind")
    return str(kind) if finding.code == "advice" and kind else finding.code


def point_lines(details: Details, task: TaskCard | None, width: int) -> list[Line]:
    """The design point by group: `loops  tile 64  unroll 4`."""
    if not details.point:
        return []
    groups: dict[str, list[str]] = {}
    known = task.dimension_groups if task else {}
    for name, value in details.point.items():
        shown = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        groups.setdefault(known.get(name, "point"), []).append(f"{name} {shown}")
    out: list[Line] = []
    for group, items in groups.items():
        label = f"{group} "
        for i, part in enumerate(wrap("  ".join(items), max(8, width - len(label)))):
            out.append([(label if i == 0 else " " * len(label), "muted"), (part, "")])
    return out


def family_lines(c: Candidate, details: Details) -> list[Line]:
    parents = ", ".join(c.parents) or "no parent"
    out: list[Line] = [[(f"{words.origin(c)}  gen {c.generation}  island {c.island}  from {parents}", "muted")]]
    if c.origin.prompt:
        patch = f"{c.origin.patch} of " if c.origin.patch else "of "
        out.append([(f"{patch}prompt ", "muted"), (c.origin.prompt, "accent"), ("  t reads it", "muted")])
    if details.exemplars:
        line: Line = [("contrast ", "muted")]
        for exemplar in details.exemplars:
            style = "faster" if exemplar.role == "fast" else "slower"
            line.append((f"{exemplar.role} {exemplar.candidate} {formats.ratio(exemplar.score)}  ", style))
        out.append(line)
    return out


def decision_lines(c: Candidate, width: int) -> list[Line]:
    if c.decision is None:
        return []
    if c.decision == "review":
        return [[("waits for you: a accepts, r rejects", "accent bold")]]
    style = "faster" if c.decision == "accepted" else "rejected"
    text = f"{c.decision} by a person" + (f": {c.decision_reason}" if c.decision_reason else "")
    out: list[Line] = [[(part, style)] for part in wrap(text, width)]
    if c.accepted_path:
        out.extend([(part, "muted")] for part in wrap(f"written to {c.accepted_path}", width))
    return out


def detail_lines(desk: Desk, c: Candidate, details: Details, width: int, full: bool = False) -> list[Line]:
    """All of it, the most asked-for first. `full` does not cut the compiler's output."""
    glyphs = desk.glyphs
    out: list[Line] = [[(f"{words.badges(c, desk.projection.best, glyphs).strip()} {c.id}".strip(), "bold")]]
    out += headline(c, glyphs)
    out += decision_lines(c, width)
    out += timing_lines(c)
    if c.reason and c.verdict != "FASTER":
        out.extend([(part, "")] for part in wrap(c.reason, width))
    out += check_lines(details, width, glyphs)
    for finding in details.findings:
        if finding.severity == "label":
            continue
        style = {"cheat": "cheating", "warning": "slower"}.get(finding.severity, "muted")
        sign = glyphs.marks["cheat" if finding.severity == "cheat" else "warning"]
        out.extend([(part, style)] for part in wrap(f"{sign} {finding.code}: {finding.text}", width))
        if finding.evidence:
            said = "  ".join(f"{name} {value}" for name, value in finding.evidence.items())
            out.extend([(part, "muted")] for part in wrap(f"  {said}", width))
    if c.verdict is not None and all(finding.severity == "label" for finding in details.findings):
        out.append([("findings: none", "muted")])
    out += badge_lines(details, width)
    series = desk.series(c)
    if series is not None:
        out.append([])
        out += pair_strip(series, width, glyphs)
    out.append([])
    out += family_lines(c, details)
    out += point_lines(details, desk.projection.header.task, width)
    if details.note:
        out.extend([(part, "muted")] for part in wrap(details.note, width))
    out.append(_costs(details))
    if details.feedback:
        out.append([("feedback", "bold")])
        out.extend([(part, "slower")] for part in wrap(details.feedback, width))
    if details.build_log and (full or c.verdict == "FAILED"):
        out.append([("build log", "bold")])
        log = details.build_log.splitlines()
        shown = log if full else log[:12]
        for text in shown:
            style = "rejected" if "error" in text else "muted"
            out.extend([(part, style)] for part in wrap(text, width))
        if len(shown) < len(log):
            out.append([(f"… {len(log) - len(shown)} lines more: enter", "muted")])
    return out


def _costs(details: Details) -> Line:
    parts = []
    if details.build_s is not None:
        parts.append("build from cache" if details.build_cached else f"build {formats.seconds(details.build_s)}")
    if details.verify_s is not None:
        parts.append(f"verify {formats.seconds(details.verify_s)}")
    if details.sandbox_level:
        parts.append(f"sandbox {details.sandbox_level}")
    return [("  ".join(parts), "muted")]


class DetailPane(Pane, can_focus=True):
    """The shown candidate, from the desk."""

    HELP = "Verdict, timing, checks, findings, design point and compiler output of the shown candidate."

    def __init__(self, desk: Desk, full: bool = False, *, id: str | None = None) -> None:
        super().__init__(desk, id=id)
        self.full = full

    def state(self) -> tuple[object, ...]:
        shown = self.desk.shown()
        if shown is None:
            return self.desk.sessions, None, self.desk.themed
        best = shown.id == self.desk.projection.best
        return self.desk.sessions, shown.id, shown.changed_seq, best, self.desk.themed

    def draw(self, width: int, height: int) -> list[Line]:
        shown = self.desk.shown()
        if shown is None:
            return [[("no candidate yet", "muted")]]
        return detail_lines(self.desk, shown, self.desk.details(shown), width, self.full)
