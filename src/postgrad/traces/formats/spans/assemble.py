"""`assemble`: spans to traces.

One trace of spans is one trace of ours; an agent that another agent called is a trace of its own, with its parent.
Steps are the distinct calls of a model (`calls`), in the order of their starts. Their context is what the span says it
was. Where a span says nothing, or only what was new, and the call before it is known, the context is rebuilt from that
call's context, its answer and the results of its tools ("reconstructed"). A call that failed without an answer is an
event.

Of a step without content nothing can be learnt: fidelity "none", with what is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from postgrad.core.canonical import content_id
from postgrad.core.message import Message, Text, ToolResult
from postgrad.core.trace import Candidate, Event, Request, Source, Step, Trace
from postgrad.traces.formats.openai_chat.messages import link_key
from postgrad.traces.formats.shapes.said import Said, settle
from postgrad.traces.formats.spans.calls import ancestors, distinct_calls
from postgrad.traces.formats.spans.contexts import Draft, drafts_of
from postgrad.traces.formats.spans.results import Runs, shown
from postgrad.traces.formats.spans.span import Span
from postgrad.traces.formats.spans.threads import told_next
from postgrad.traces.pool import MessagePool
from postgrad.traces.sources.ledger import Ledger

_RANK = ("step", "result", "feedback", "event", "orphan_result", "duplicate", "context", "ignored")


class Uses:
    """What records were used as, where one record holds many spans: the most important use stays."""

    def __init__(self) -> None:
        self._uses: dict[int, tuple[str, str]] = {}

    def say(self, record: int, use: str, row_kind: str) -> None:
        """One more use of a record."""
        known = self._uses.get(record)
        if known is None or _RANK.index(use) < _RANK.index(known[0]):
            self._uses[record] = (use, row_kind)

    def follow(self, record: int, other: int) -> None:
        """A record that is a part of what another one tells was used as that one was."""
        if other in self._uses:
            self.say(record, *self._uses[other])

    def write(self, ledger: Ledger) -> None:
        """Enter all of them into the books."""
        for record, (use, kind) in self._uses.items():
            ledger.use(record, use, kind)


@dataclass
class _Group:
    """The spans of one history while steps are made of them."""

    key: str
    spans: list[Span]
    steps: list[Span] = field(default_factory=list)
    failed: list[Span] = field(default_factory=list)
    parent: str | None = None
    agents: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Content id: equal for two exports of the same trace, whatever the format."""
        return content_id(["spans", self.key])


def assemble(spans: Sequence[Span], source: Source, ledger: Ledger) -> list[Trace]:
    """The traces of a source; says in `ledger` what every record was used as."""
    uses = Uses()
    parts = {part: span.record for span in spans for part in span.records}
    unique = _unique(spans, uses)
    by_trace: defaultdict[str, list[Span]] = defaultdict(list)
    for span in unique:
        by_trace[span.trace].append(span)
    traces: list[Trace] = []
    for key, group in by_trace.items():
        for history in _histories(key or _first_words(group), group, uses):
            traces.append(_trace(history, source, len(traces), uses))
    for span in unique:
        uses.say(span.record, "orphan_result" if span.kind == "tool" else "ignored", span.kind)
    for part, record in parts.items():
        uses.follow(part, record)
    uses.write(ledger)
    return told_next(traces)


def _unique(spans: Sequence[Span], uses: Uses) -> list[Span]:
    """Spans by id: exporters send one again when it ends, or when they are not sure that it arrived."""
    known: dict[tuple[str, str], Span] = {}
    for place, span in enumerate(spans):
        span.id = span.id or f"#{place}"
        key = (span.trace, span.id)
        if key in known:
            span.merge(known[key])
            uses.say(known[key].record, "duplicate", known[key].kind)
        known[key] = span
    return list(known.values())


def _first_words(spans: Sequence[Span]) -> str:
    """A name for spans that say no trace: what the first call was asked and what it answered."""
    first = next((span.call for span in spans if span.call is not None), None)
    words = settle([*(first.context or ()), *first.answers[:1]], record=0) if first is not None else []
    return content_id([link_key(message) for message in words])


def _histories(key: str, spans: list[Span], uses: Uses) -> list[_Group]:
    """The main history, then one for every agent that was called by an agent."""
    calls, twice = distinct_calls(spans)
    for span in twice:
        uses.say(span.record, "duplicate", span.kind)
    by_id = {span.id: span for span in spans}
    agents = {span.id: [above for above in ancestors(span, by_id) if above.kind == "agent"] for span in spans}
    acting = {agents[call.id][0].id for call in calls if agents[call.id]}
    main = _Group(key, spans)
    groups = {"": main}
    for call in calls:
        chain = agents[call.id]
        callers = [above for above in chain[1:] if above.id in acting]
        name = chain[0].id if chain and callers else ""
        if name and name not in groups:
            outer = callers[0].id if callers[0].id in groups else ""
            groups[name] = _Group(f"{key} {name}", [], parent=groups[outer].id)
        group = groups[name]
        failed = bool(call.error) and call.call is not None and not call.call.answers
        (group.failed if failed else group.steps).append(call)
        group.agents[call.id] = call.agent or (chain[0].agent or chain[0].name if chain else "")
    main.spans = []
    for span in spans:
        owner = next((above.id for above in agents[span.id] if above.id in groups), "")
        groups[owner].spans.append(span)
    return [group for group in groups.values() if group.steps or group.failed]


def _trace(group: _Group, source: Source, index: int, uses: Uses) -> Trace:
    runs = Runs(group.spans)
    drafts = drafts_of(group.steps, group.agents, runs)
    return _Builder(group, drafts, runs, uses).trace(source, index)


class _Builder:
    """Makes the trace of a group: messages into the pool, results to calls, spans to uses."""

    def __init__(self, group: _Group, drafts: list[Draft], runs: Runs, uses: Uses) -> None:
        self._group, self._drafts, self._runs, self._uses = group, drafts, runs, uses
        self._pool = MessagePool()
        self._settled = [draft.settled() for draft in drafts]
        self._records: dict[str, int] = {}

    def trace(self, source: Source, index: int) -> Trace:
        contexts = [(settled[:-1], d.span.record) for settled, d in zip(self._settled, self._drafts, strict=True)]
        results = shown(contexts, [settled[-1] for settled in self._settled])
        several = len({name for name in self._group.agents.values() if name}) > 1
        steps = tuple(self._step(i, draft, results[i], several) for i, draft in enumerate(self._drafts))
        return Trace(
            self._group.id,
            source,
            self._pool.messages,
            steps,
            index=index,
            events=self._events(),
            parent=self._group.parent,
            result_records=self._records,
        )

    def _step(self, index: int, draft: Draft, found: dict[str, tuple[ToolResult, int]], several: bool) -> Step:
        span, call = draft.span, draft.call
        settled = self._settled[index]
        self._uses.say(span.record, "step", span.kind)
        candidates = [
            Candidate(
                settled[-1] if n == 0 else draft.settled(answer=n)[-1],
                call.model,
                said.finish or call.finish,
                call.usage,
                chosen=n == 0,
            )
            for n, said in enumerate(call.answers or [Said("assistant")])
        ]
        results = self._results(settled[-1], span, found)
        return Step(
            index,
            Request(self._pool.extend(settled[:-1]), call.tools, call.params, draft.fidelity, draft.missing),
            tuple(candidates),
            results=results,
            feedback=span.feedback,
            kind="subagent" if self._group.parent else "main",
            records=tuple(dict.fromkeys([span.record, *span.records])),
            time=span.time,
            agent=(self._group.agents[span.id] or None) if several else None,
        )

    def _results(self, action: Message, span: Span, found: dict[str, tuple[ToolResult, int]]) -> tuple[ToolResult, ...]:
        results = []
        for call in action.tool_calls:
            run = self._runs.take(call, after=span.start)
            result, record = found.get(call.id, (None, -1))
            if run is not None and run.tool is not None:
                self._uses.say(run.record, "result", run.kind)
                said = result.text if result is not None else run.tool.result
                flag = run.tool.is_error if run.tool.is_error is not None else result.is_error if result else None
                if said is not None:
                    status = run.tool.status or ("error" if flag else "ok")
                    result = ToolResult(call.id, said, flag, status, call.provider_id)
                    record = run.record
            if result is not None:
                results.append(result)
                self._records[call.id] = record
        return tuple(results)

    def _events(self) -> tuple[Event, ...]:
        """What the user said anew, and calls that failed."""
        events: list[Event] = []
        seen: set[str] = set()
        for index, (settled, draft) in enumerate(zip(self._settled, self._drafts, strict=True)):
            for message in settled[:-1]:
                key = link_key(message)
                if message.role == "user" and key not in seen and any(isinstance(b, Text) for b in message.blocks):
                    events.append(Event("user_text", index, draft.span.record, message.text))
                seen.add(key)
        for span in self._group.failed:
            self._uses.say(span.record, "event", span.kind)
            before = sum(draft.span.start <= span.start for draft in self._drafts)
            events.append(Event("api_error", before, span.record, span.error))
        for span in self._group.spans:
            for kind, words in span.texts:
                before = sum(draft.span.start <= span.start for draft in self._drafts)
                events.append(Event(kind, before, span.record, words))
                self._uses.say(span.record, "event", span.kind)
        return tuple(sorted(events, key=lambda event: event.before_step))
