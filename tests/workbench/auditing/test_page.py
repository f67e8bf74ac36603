from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from workbench.auditing.drawing import Axis, Dot, ranked, scatter, stacked
from workbench.auditing.page import page
from workbench.auditing.rows import STATES, Finding, Outcome
from workbench.auditing.saving import Report, markdown
from workbench.auditing.summary import summarise
from workbench.auditing.tables import notes

NASTY = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>&amp;\u2028|`*_'\n# h"


def nasty(state: str = "FAILED") -> Outcome:
    return Outcome(
        key=f"{NASTY}/{NASTY}",
        number=1,
        level=NASTY,
        task=NASTY,
        name=NASTY,
        state=state,
        claims={NASTY: 2.0, "other": 3.0},
        reason=NASTY,
        findings=[Finding(NASTY, "warning", NASTY)],
        changed=[NASTY],
        speedup=1.5,
        lower=1.4,
        upper=1.6,
    )


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(html)
    return parser.seen


def made(outcomes: list[Outcome], claim: str) -> str:
    groups = summarise(outcomes, claim, resamples=20, p_resamples=50)
    return page(NASTY, NASTY, notes(groups, claim, 9, {"set": NASTY}, NASTY, NASTY), outcomes, groups, claim)


def test_nothing_of_the_file_becomes_markup() -> None:
    html = made([nasty(), nasty("SAME"), nasty("NO CODE")], NASTY)
    seen = tags(html)
    names = [name for name, _ in seen]
    assert names.count("script") == 1 and "img" not in names and "a" not in names
    assert not any(key.startswith("on") or key in ("src", "href") for _, attributes in seen for key in attributes)
    assert "alert(1)" in html


def test_the_page_needs_and_allows_nothing_from_outside() -> None:
    html = made([nasty()], "other")
    policy = next(a["content"] for _, a in tags(html) if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and "default-src 'none'" in policy and "sha256-" in policy
    assert not re.search(r"https?://|url\(|@import", html)


def test_markdown_takes_the_file_as_text() -> None:
    outcomes = [nasty()]
    groups = summarise(outcomes, NASTY, resamples=20, p_resamples=50)
    report = Report(NASTY, "abc", NASTY, NASTY, {}, 1, 1, [NASTY], groups)
    text = markdown("Audit", "about", report, outcomes)
    assert "<script" not in text.replace("\\<script", "")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows and not any(line.startswith("# h") for line in text.splitlines())
    table = rows[-3:]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


@given(st.lists(st.sampled_from(STATES), max_size=8), st.none() | st.floats(1e-3, 1e6))
def test_any_mixture_of_rows_makes_a_page(states: list[str], claimed: float | None) -> None:
    outcomes = [
        Outcome(key=f"1/{n}", number=n, level="1", task=str(n), state=s, claims={"score": claimed})
        for n, s in enumerate(states)
    ]
    html = made(outcomes, "score")
    assert html.count("<tr") == html.count("</tr>")
    assert "nan" not in html.lower().replace("isnan", "")


@given(st.lists(st.floats(1e-6, 1e6), max_size=9))
def test_an_axis_keeps_order_and_has_few_ticks(values: list[float]) -> None:
    axis = Axis(values, 50.0, 600.0)
    places = [axis.at(v) for v in sorted(values)]
    assert places == sorted(places) and all(50.0 <= p <= 600.0 for p in places)
    assert len(axis.ticks()) <= 9
    assert values == [] or 50.0 < axis.at(1.0) < 600.0


def test_on_the_diagonal_a_claim_holds() -> None:
    svg = scatter([Dot("half", 4.0, 2.0, "faster"), Dot("kept", 3.0, 3.0, "faster", 2.0, 4.0)])
    x1, y1, x2, y2 = (
        float(v) for v in re.findall(r'class="diagonal" x1="(.*?)" y1="(.*?)" x2="(.*?)" y2="(.*?)"', svg)[0]
    )
    points = [(float(x), float(y)) for x, y in re.findall(r'cx="(.*?)" cy="(.*?)"', svg)]
    on = [y1 + (x - x1) / (x2 - x1) * (y2 - y1) for x, _ in points]
    assert abs(on[1] - points[1][1]) < 0.5
    assert points[0][1] > on[0] + 5


def test_bars_share_the_width_by_their_counts() -> None:
    svg = stacked([("1", [("FASTER", "faster", 1), ("WRONG", "wrong", 3)])])
    widths = [float(w) for w in re.findall(r'width="([\d.]+)" height="24"', svg)]
    assert abs(widths[1] - 3 * widths[0]) < 0.5


def test_curves_fall_from_the_fastest_to_the_slowest() -> None:
    svg = ranked([1.0, 9.0, 3.0], [1.0])
    points = re.findall(r'class="curve claimed" points="(.*?)"', svg)[0].split()
    ys = [float(p.split(",")[1]) for p in points]
    assert ys == sorted(ys) and len(points) == 6
