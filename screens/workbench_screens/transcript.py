"""What models were asked and what they said: all prompts beside the opened one, live and at any instant."""

from __future__ import annotations

import contextlib

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from workbench_screens import asking, formats
from workbench_screens.actions import bindings
from workbench_screens.desk import Desk, highlight
from workbench_screens.document_view import DocumentView
from workbench_screens.lines import Line, joined, safe, spread, width_of, wrap
from workbench_screens.pane import Pane
from workbench_screens.population import boxed
from workbench_screens.query import Query, QueryError, parse, split_terms
from workbench_screens.requests_table import RequestsTable
from workbench_screens.workscreen import WorkScreen

TERM = "text:"


def status_line(desk: Desk, width: int) -> Line:
    """What is open at which endpoint, or since when nothing can be asked; what was spent."""
    p, glyphs = desk.projection, desk.glyphs
    right: Line = [("  ".join([f"{p.prompts} prompts", *asking.spent(p)]) + " ", "muted")]
    gone = asking.down(p)
    if gone is not None:
        since_s, reason = gone
        at = formats.clock(since_s - p.header.opened_at_s)
        text = f" {glyphs.marks['warning']} nothing can be asked since {at}: {safe(' '.join(reason.split()))}"
        return spread([(text, "rejected bold")], right, width)
    flow = asking.traffic(p.requests.values())
    if not flow:
        return spread([], right, width)
    each: Line = [(" ", ""), *joined((asking.traffic_span(one, glyphs) for one in flow), "   ")]
    if width_of(each) + width_of(right) + 2 <= width:
        return spread(each, right, width)
    whole = asking.altogether(flow) if len(flow) > 1 else flow[0]
    return spread([(" ", ""), *asking.traffic_span(whole, glyphs)], right, width)


class StatusPane(Pane):
    """Endpoints and money, in one line."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="asking")
        self.rest_s = 0.5

    def draw(self, width: int, height: int) -> list[Line]:
        return [status_line(self.desk, width)]


def carried_lines(desk: Desk, width: int) -> list[Line]:
    """What the next prompts carry of people: the steering, and the reasons of their decisions."""
    p, glyphs = desk.projection, desk.glyphs
    out: list[Line] = []
    for text in p.header.steering.splitlines():
        out += [[("› " if not i and not glyphs.ascii else "> " if not i else "  ", "accent"), (part, "")]
                for i, part in enumerate(wrap(safe(text), max(8, width - 2)))]  # fmt: skip
    for c in asking.reasons(p):
        sign = glyphs.accepted if c.decision == "accepted" else glyphs.rejected
        style = "faster" if c.decision == "accepted" else "rejected"
        said = f"{c.id} {c.decision}: {safe(' '.join(c.decision_reason.split()))}"
        out += [[(f"{sign} " if not i else "  ", style), (part, "muted")]
                for i, part in enumerate(wrap(said, max(8, width - 2)))]  # fmt: skip
    return out or [[("nothing yet: s tells the policy something; reasons of a, r go along", "muted")]]


class CarriedPane(Pane):
    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, id="carried")
        self.rest_s = 0.5

    def state(self) -> tuple[object, ...]:
        p = self.desk.projection
        decided = (p.counts.accepted, p.counts.rejected, len(p.marks))
        return self.desk.sessions, id(p), self.desk.themed, p.header.steering, decided

    def draw(self, width: int, height: int) -> list[Line]:
        return carried_lines(self.desk, width)


class TranscriptScreen(WorkScreen):
    NAME = "transcript"
    CSS_PATH = ["workscreen.tcss", "transcript.tcss"]
    BINDINGS = bindings("transcript")

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._reading = False

    def body(self) -> ComposeResult:
        yield StatusPane(self.desk)
        with Horizontal(id="asked"):
            with Vertical(id="asked-left"):
                with boxed(Vertical(id="asked-list"), "Prompts"):
                    yield RequestsTable(self.desk, id="requests")
                    yield Input(
                        placeholder="model:coder is:open verdict:faster cost>0.01", id="ask-filter", compact=True
                    )
                yield boxed(CarriedPane(self.desk), "The next prompts carry")
            with boxed(Vertical(id="asked-right"), "Prompt"):
                yield DocumentView(self.desk, id="document")
                yield Input(placeholder="text to look for", id="ask-search", compact=True)

    def on_mount(self) -> None:
        self.query_one(RequestsTable).focus()

    def tick(self) -> None:
        super().tick()
        try:
            table, view = self.query_one(RequestsTable), self.query_one(DocumentView)
        except NoMatches:
            return
        if self.desk.reading:
            self.desk.reading = False
            self.action_read()
        self._lay()
        table.pulse()
        view.pulse()
        self._retitle(table, view)
        self._colour(view)

    def _retitle(self, table: RequestsTable, view: DocumentView) -> None:
        desk = self.desk
        total = len(desk.projection.requests)
        text = f"Prompts {total}"
        if desk.request_query.terms:
            text = f"Prompts {len(table.ids)}/{total}  filter: {desk.request_query.text}"
        _title(self.query_one("#asked-list"), text)
        opened = desk.opened()
        word = "nothing" if opened is None else opened.prompt
        word += "" if desk.prompt else "  (the newest)"
        if view.needle:
            at = view.hits.index(view.hit) + 1 if view.hit in view.hits else 0
            word += f"  '{view.needle}' {at}/{len(view.hits)}"
        _title(self.query_one("#asked-right"), word)

    def _colour(self, view: DocumentView) -> None:
        """Highlights the code that is shown, in a thread, once."""
        opened = self.desk.opened()
        if opened is None or "code" in view.folded:
            return
        wanted = view.reading.source_to_colour(opened, self.desk.answer)
        if wanted is None or any(w.name == "colour" and w.is_running for w in self.workers):
            return
        sha, text = wanted
        self.run_worker(lambda: (sha, highlight(text)), name="colour", group="colour", thread=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        result = event.worker.result if event.state is WorkerState.SUCCESS else None
        if event.worker.name == "colour" and isinstance(result, tuple):
            self.desk.keep_coloured(*result)
            self.query_one(DocumentView).redraw()
        elif event.worker.name == "holding" and isinstance(result, dict):
            self.query_one(RequestsTable).holding = {word: frozenset(found) for word, found in result.items()}
            self.tick()
        elif event.state is WorkerState.ERROR and event.worker.name == "holding":
            self.notify(f"texts cannot be searched: {event.worker.error}", severity="error", markup=False)

    # Reading

    def on_requests_table_chosen(self, event: RequestsTable.Chosen) -> None:
        self.tick()

    def action_read(self) -> None:
        """The opened prompt gets the keys; in a narrow terminal it takes the list's place."""
        if self.desk.opened() is None:
            self.notify("there is no prompt yet", markup=False)
            return
        self._reading = True
        self._lay()
        self.query_one(DocumentView).focus()
        self.call_after_refresh(self.tick)

    def _lay(self) -> None:
        """Only where there is room for one: a class that changes styles the whole screen anew."""
        self.set_class(self._reading and self.has_class("-narrow"), "-reading")

    def _back_to_list(self) -> None:
        self._reading = False
        self._lay()
        self.query_one(RequestsTable).focus()
        self.call_after_refresh(self.tick)

    async def on_document_view_follow(self, event: DocumentView.Follow) -> None:
        if event.kind == "prompt":
            self.desk.open_prompt(event.target)
            self.tick()
        else:
            await self._show_candidate(event.target)

    async def _show_candidate(self, name: str) -> None:
        if name not in self.desk.projection.candidates:
            self.notify(f"{name} is not there at this instant", markup=False)
            return
        self.desk.selected = name
        await self.app.run_action("app.show('population')")

    async def action_candidate(self) -> None:
        """To the candidate that came of the opened prompt."""
        opened = self.desk.opened()
        best = asking.best_of(asking.asked(self.desk.projection, opened).candidates) if opened else None
        if best is None:
            self.notify("no candidate came of this prompt", markup=False)
            return
        await self._show_candidate(best.id)

    # Filter and search

    def action_look(self) -> None:
        """/ filters the list, or searches the prompt that is read."""
        reading = self.query_one(DocumentView).has_focus
        box = self.query_one("#ask-search" if reading else "#ask-filter", Input)
        box.value = self.query_one(DocumentView).needle if reading else self.desk.request_query.text
        box.add_class("-open")
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "ask-filter" and event.input.has_class("-open"):
            with contextlib.suppress(QueryError):
                self._ask(parse(event.value, asking.REQUESTS))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "ask-search":
            view = self.query_one(DocumentView)
            found = view.search(event.value)
            if event.value and not found:
                self.notify(f"{event.value!r} is nowhere in this prompt and its answer", markup=False)
            self._close(event.input, view)
            return
        try:
            query = parse(event.value, asking.REQUESTS)
        except QueryError as error:
            self.notify(str(error), title="Filter", severity="error", markup=False)
            return
        self._ask(query)
        self._look_for([term[len(TERM) :].lower() for term in split_terms(event.value) if term.startswith(TERM)])
        self._close(event.input, self.query_one(RequestsTable))

    def _look_for(self, terms: list[str]) -> None:
        """Finds the texts that hold the words of `text:`, in a thread: it reads all of them."""
        wanted = [word for term in terms for word in term.split(",") if word]
        if wanted:
            holding = self.desk.feed.holding
            self.run_worker(
                lambda: {word: holding(word) for word in wanted},
                name="holding", group="holding", exclusive=True, thread=True, exit_on_error=False,
            )  # fmt: skip

    def _close(self, box: Input, then: RequestsTable | DocumentView) -> None:
        box.remove_class("-open")
        then.focus()
        self.tick()

    def _ask(self, query: Query) -> None:
        if query.text != self.desk.request_query.text:
            self.desk.request_query = query
            self.tick()

    def action_hit(self, direction: int) -> None:
        view = self.query_one(DocumentView)
        if not view.needle:
            self.notify("search first: enter, then /", markup=False)
        elif not view.next_hit(direction):
            self.notify(f"no {'further' if direction > 0 else 'earlier'} {view.needle!r}", markup=False)
        self.tick()

    def action_loosen(self) -> None:
        """One layer back: the input, the search, the document, the filter, the cursor."""
        view, table = self.query_one(DocumentView), self.query_one(RequestsTable)
        for box in self.query(Input):
            if box.has_class("-open"):
                self._close(box, view if box.id == "ask-search" else table)
                return
        if view.has_focus and view.needle:
            view.search("")
            self.tick()
        elif view.has_focus:
            self._back_to_list()
        elif self.desk.request_query.terms:
            self._ask(Query(""))
        else:
            table.choose(None)


def _title(box: object, text: str) -> None:
    text = text.replace("[", "(").replace("]", ")")
    if getattr(box, "border_title", None) != text:
        box.border_title = text  # type: ignore[attr-defined]
