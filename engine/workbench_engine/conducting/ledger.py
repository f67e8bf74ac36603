"""The books of a run: who was proposed, in which group, what the policy was told; all of it survives a crash."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from workbench_engine.conducting import groups as grouping
from workbench_engine.conducting.archive import Archive, lineage
from workbench_engine.conducting.desk import Refused
from workbench_engine.conducting.gate import Gate, static_fault
from workbench_engine.conducting.groups import Group, Member, Saved
from workbench_engine.conducting.opening import unjudged
from workbench_engine.conducting.policy_thread import PolicyThread
from workbench_engine.conducting.recorder import Recorder
from workbench_engine.policies.contract import Context, Outcome, Proposal, Update
from workbench_sessions import events as ev
from workbench_sessions.events import Event
from workbench_sessions.projection import Candidate


class Ledger:
    """Names candidates, keeps groups until they are learned from, and saves the policy with them."""

    def __init__(self, recorder: Recorder, policy: PolicyThread, archive: Archive) -> None:
        self._recorder = recorder
        self._policy = policy
        self._archive = archive
        self._gate = Gate()
        self._texts: dict[str, str] = {}
        self._open: dict[int, Group] = {}
        self._groups = 0
        self._begun = 0
        self._policy_state = b""
        self._last_update: ev.PolicyUpdated | None = None

    def begin_group(self) -> int:
        """The number of a group that is asked for now; several may be under way."""
        self._begun = max(self._begun, self._groups) + 1
        return self._begun

    @property
    def unlearned(self) -> int:
        """How many groups wait to be learned from."""
        return len(self._open)

    def is_open(self, group: int | None) -> bool:
        """Whether a group waits to be learned from."""
        return group in self._open

    def text(self, row: Candidate) -> str:
        """A candidate's file."""
        return self._texts.get(row.id) or self._recorder.source(row.source_sha256)

    def forget(self, candidate: str) -> None:
        """A judged candidate's file is read from the session when it is needed again."""
        self._texts.pop(candidate, None)

    def complete(self) -> list[Group]:
        """Open groups of which every member has been judged."""
        rows = self._recorder.projection.candidates
        return [g for g in self._open.values() if grouping.complete(g, rows)]

    async def take_over(self) -> list[Candidate]:
        """Takes everything over from an earlier engine; returns the candidates that it left without a verdict."""
        p = self._recorder.projection
        for row in p.candidates.values():
            self._gate.admit(row.id, self._recorder.source(row.source_sha256), row.kind)
        stored = self._recorder.get_state(grouping.STATE_KEY)
        saved = grouping.decode_saved(stored)
        learned = {s.group for s in p.policy_steps}
        if saved is None:
            saved = Saved(groups=max((r.group for r in p.candidates.values() if r.group is not None), default=0))
            if stored is not None:
                self._warn("the saved state of the search cannot be read", "nothing to do: it starts from the log")
        if saved.policy:
            try:
                await self._policy.restore(saved.policy)
            except ValueError as error:
                self._warn(f"the policy starts untrained: {error}", "nothing to do: it learns again from here")
                saved = replace(saved, open=(), policy=b"")
        if saved.last is not None and saved.last.group not in learned:
            self._recorder.record([saved.last])
            learned.add(saved.last.group)
        self._groups, self._policy_state, self._last_update = saved.groups, saved.policy, saved.last
        self._archive.rebuild(p, self._recorder.source, self._groups)
        self._open = {g.number: g for g in grouping.survivors(saved.open, p.candidates, learned)}
        # A group that never reached the log must not be taken for a later one whose members have the same names.
        self._save()
        return unjudged(p)

    def admit(self, context: Context, proposals: Sequence[Proposal], policy_state: bytes) -> list[str]:
        """The gate: names those that are new, stores them with their group, returns their names."""
        self._groups, self._policy_state = max(self._groups, context.group), policy_state
        members: list[Member] = []
        events: list[Event] = []
        new: list[str] = []
        for proposal in proposals:
            earlier = self._gate.earlier(proposal.text, proposal.kind)
            if earlier is None:
                earlier = self._next_name(len(new))
                events.append(self._proposed(earlier, context, proposal))
                new.append(earlier)
            members.append(Member(earlier, proposal.sample))
        if members:
            # What only a prompt is made of would be saved again with every group.
            kept = replace(context, failures=(), remarks=(), budget=ev.Budget())
            self._open[context.group] = Group(kept, tuple(members))
        self._save()
        self._recorder.record(events)
        return new

    def _proposed(self, name: str, context: Context, proposal: Proposal) -> ev.CandidateProposed:
        self._gate.admit(name, proposal.text, proposal.kind)
        self._texts[name] = proposal.text
        line = lineage(proposal, context)
        parents = [s.candidate for s in line.parents]
        generation = line.generation
        if proposal.parents is not None:
            rows = self._recorder.projection.candidates
            parents = [name for name in proposal.parents if name in rows]
            generation = 1 + max((rows[name].generation for name in parents), default=-1)
        roles = ["slow"] * (len(line.exemplars) - 1) + ["fast"]
        shown = [
            ev.Exemplar(candidate=s.candidate, score=s.speedup or 0.0, role=role)
            for s, role in zip(line.exemplars, roles, strict=False)
        ]
        return ev.CandidateProposed(
            candidate=name,
            kind="module" if proposal.kind == "module" else "kernel",
            source_sha256=self._recorder.put_source(proposal.text),
            origin=proposal.origin,
            island=context.island,
            generation=generation,
            parents=parents,
            point=dict(proposal.point.values) if proposal.point is not None else None,
            group=context.group,
            exemplars=shown,
            note=proposal.note,
        )

    def _next_name(self, ahead: int = 0) -> str:
        return f"c{self._recorder.projection.counts.proposed + 1 + ahead:05d}"

    def _save(self) -> None:
        """Before the events that go with it, so that the state is never behind the log."""
        saved = Saved(self._groups, tuple(self._open.values()), self._policy_state, self._last_update)
        self._recorder.put_state(grouping.STATE_KEY, grouping.encode_saved(saved))

    def learned(
        self, group: Group, told: list[Outcome], update: Update | None, policy_state: bytes
    ) -> ev.PolicyUpdated:
        """Closes a group; returns the event to record, which is saved already."""
        p = self._recorder.projection
        best = p.candidates[p.best].speedup if p.best is not None else None
        event = grouping.policy_updated(group, told, update, len(p.policy_steps) + 1, p.evaluations, best)
        self._last_update, self._policy_state = event, policy_state
        self._open.pop(group.number, None)
        self._save()
        return event

    def submit(self, source: str, kind: str, parent: str | None, person: str, note: str) -> str:
        """Stores a person's candidate, returns its name. Raises Refused."""
        fault = static_fault(source, kind)
        if fault:
            raise Refused(fault)
        earlier = self._gate.earlier(source, kind)
        if earlier is not None:
            raise Refused(
                f"the file is the same as {earlier} but for comments and white space; change it and save again"
            )
        rows = self._recorder.projection.candidates
        origin = rows.get(parent) if parent is not None else None
        if parent is not None and origin is None:
            raise Refused(f"there is no candidate {parent!r} to have edited; give one of this session or none")
        name = self._next_name()
        self._gate.admit(name, source, kind)
        self._texts[name] = source
        proposed = ev.CandidateProposed(
            candidate=name,
            kind="module" if kind == "module" else "kernel",
            source_sha256=self._recorder.put_source(source),
            origin=ev.Origin(policy="person", person=person or None),
            island=origin.island if origin is not None else 0,
            generation=origin.generation + 1 if origin is not None else 0,
            parents=[origin.id] if origin is not None else [],
            note=note,
        )
        self._recorder.record([proposed])
        return name

    def _warn(self, text: str, remedy: str) -> None:
        self._recorder.emit(ev.WarningRaised(text=text, remedy=remedy))
