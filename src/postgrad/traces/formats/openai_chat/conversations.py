"""Which calls make one conversation.

A call whose messages begin with an earlier call's messages and answer goes on with that conversation, also when it
branches off earlier than its end; a call with the very messages of an earlier one is a regeneration: its answers become
candidates of that step. Of several candidates the one that a later call goes on from was taken, else the newest call's
first choice.

"The same session" means: the trace id that was written beside the call, where there is one (rollouts of one prompt
are then not taken for regenerations); else the same first request with the same first answer.

A log can hold more conversations than memory does: they, their steps and what finds them lie on disk (`spool`).

Not covered: conversations whose history is rewritten (they begin anew).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Message, Text, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Fidelity, Request, Source, Step, StepKind, Trace
from postgrad.traces.formats.openai_chat.exchange import Exchange
from postgrad.traces.formats.openai_chat.messages import link_key
from postgrad.traces.packing.spool import Index, OnDisk
from postgrad.traces.pool import MessagePool


@dataclass
class _Draft:
    """A step while later rows can still add regenerations and results; `run` is the place of its conversation."""

    run: int
    exchange: Exchange
    candidates: list[Candidate]
    taken: int = 0
    records: list[int] = field(default_factory=list)
    results: dict[str, tuple[ToolResult, int]] = field(default_factory=dict)
    feedback: tuple[Feedback, ...] = ()

    def add(self, exchange: Exchange) -> None:
        """Answers to the same request: the newest call's first choice is taken until a later call says otherwise.

        A teacher's answer is never the one taken.
        """
        own = (place for place, candidate in enumerate(exchange.candidates) if candidate.teacher is None)
        self.taken = next((len(self.candidates) + place for place in own), self.taken)
        self.candidates += exchange.candidates
        self.records.append(exchange.record)
        self.feedback += exchange.feedback
        self.results |= {result.call_id: (result, exchange.record) for result in self._own(exchange)}

    def _own(self, exchange: Exchange) -> list[ToolResult]:
        """The results written beside the exchange, under our call ids."""
        calls = {call.provider_id or call.id: call.id for c in exchange.candidates[:1] for call in c.message.tool_calls}
        return [
            msgspec.structs.replace(result, call_id=calls[result.call_id])
            for result in exchange.results
            if result.call_id in calls
        ]

    def answered(self, action: Message, rest: Sequence[Message]) -> None:
        """Take results from the messages after `action`, which is this step's action as the client sent it again."""
        own = [call.id for call in self.candidates[self.taken].message.tool_calls]
        ours = dict(zip((call.id for call in action.tool_calls), own, strict=False))
        for message in rest:
            for result in message.tool_results:
                call = ours.get(result.call_id)
                if call is not None and call not in self.results:
                    self.results[call] = (msgspec.structs.replace(result, call_id=call), message.records[0])


@dataclass
class _Run:
    """A conversation while it is being put together; `drafts` are the places of its steps."""

    name: str
    drafts: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    heard: set[str] = field(default_factory=set)

    def hear(self, exchange: Exchange, chain: Sequence[str]) -> None:
        """What the user says anew in the messages of the next step."""
        for message, so_far in zip(exchange.messages, chain[1:], strict=True):
            if message.role == "user" and so_far not in self.heard and any(isinstance(b, Text) for b in message.blocks):
                self.events.append(Event("user_text", len(self.drafts), exchange.record, message.text))
            self.heard.add(so_far)

    def trace(self, source: Source, index: int, drafts: OnDisk[_Draft]) -> Trace:
        """The finished trace. Its steps are gone through twice, and one is in memory at a time."""
        pool = MessagePool()
        results: dict[str, tuple[ToolResult, int]] = {}
        owns: list[Mapping[str, Any]] = []
        for draft in map(drafts.look, self.drafts):
            results |= draft.results
            owns.append(draft.exchange.own)
        flags = {call: result for call, (result, _) in results.items()}
        steps = tuple(_step(number, drafts.look(place), pool, flags) for number, place in enumerate(self.drafts))
        task = next((own["task_id"] for own in owns if "task_id" in own), None)
        parent = owns[0].get("parent")
        environment: dict[str, Any] = next((own["environment"] for own in owns if "environment" in own), {})
        return Trace(
            self.name,
            source,
            pool.messages,
            steps,
            index=index,
            events=tuple(self.events),
            parent=parent if isinstance(parent, str) else None,
            task_id=task if isinstance(task, str) else None,
            result_records={call: record for call, (_, record) in results.items()},
            environment=environment,
        )


class Conversations:
    """Finds for every call the conversation that it belongs to, by hashes of its messages' beginnings."""

    def __init__(self) -> None:
        self.named = False
        self._runs: OnDisk[_Run] = OnDisk()
        self._drafts: OnDisk[_Draft] = OnDisk()
        self._loose: int | None = None
        self._places = Index()
        self._failed: dict[tuple[str | None, str], list[Event]] = {}

    def traces(self, source: Source) -> Iterator[Trace]:
        """The conversations, one by one, once all calls are placed."""
        return (run.trace(source, index, self._drafts) for index, run in enumerate(self._runs))

    def place(self, exchange: Exchange) -> str:
        """Put a call where it belongs and say what its record was used as."""
        if exchange.unrecorded and exchange.candidates:
            return self._append(exchange)
        scope = exchange.trace
        chain = _chain(exchange.messages)
        here = (scope, chain[-1])
        acted = any(candidate.teacher is None for candidate in exchange.candidates)
        known = self._places.get(("request", *here))
        if not exchange.candidates or not (acted or known):
            return self._fail(exchange, chain)
        place = known[0] if known else self._begin(exchange, chain)
        self._places.put(("request", *here), place)
        draft = self._drafts[place]
        start = len(draft.candidates)
        draft.add(exchange)
        for number, candidate in enumerate(exchange.candidates, start):
            if candidate.teacher is None:
                self._places.put(("answer", scope, _next(chain[-1], candidate.message)), place, number)
        return "candidate" if known else "step"

    def _begin(self, exchange: Exchange, chain: list[str]) -> int:
        """A new step of the conversation that it belongs to; its place."""
        at = self._run(exchange, chain)
        run = self._runs[at]
        run.hear(exchange, chain)
        run.drafts.append(self._drafts.append(_Draft(at, exchange, [])))
        return run.drafts[-1]

    def _append(self, exchange: Exchange) -> str:
        """An answer to an unknown request: the next step of the one history of all such answers in a log."""
        if self._loose is None:
            name = content_id(["openai_chat", link_key(exchange.candidates[0].message)])
            self._loose = self._runs.append(_Run(name))
        draft = _Draft(self._loose, exchange, [])
        draft.add(exchange)
        self._runs[self._loose].drafts.append(self._drafts.append(draft))
        return "step"

    def _run(self, exchange: Exchange, chain: list[str]) -> int:
        """The conversation that `exchange` goes on with, or a new one; its place."""
        at, named = self._continued(exchange, chain), self._of_name(exchange)
        at = named if at is None else at
        if at is None:
            first = link_key(exchange.candidates[0].message)
            run = _Run(exchange.trace or content_id(["openai_chat", chain[-1], first]))
            run.events += self._failed.pop((exchange.trace, chain[-1]), [])
            at = self._runs.append(run)
        if exchange.trace is not None and named is None:
            self.named = True
            self._places.put(("name", exchange.trace), at)
        return at

    def _of_name(self, exchange: Exchange) -> int | None:
        """The conversation of the trace that is written beside the call."""
        found = self._places.get(("name", exchange.trace)) if exchange.trace is not None else None
        return None if found is None else found[0]

    def _continued(self, exchange: Exchange, chain: list[str]) -> int | None:
        """The run with the longest beginning of these messages; its step learns that its answer was taken."""
        for length in range(len(exchange.messages), 0, -1):
            action = exchange.messages[length - 1]
            key = ("answer", exchange.trace, chain[length])
            found = self._places.get(key) if action.role == "assistant" else None
            if found is not None:
                draft = self._drafts[found[0]]
                draft.taken = found[1]
                draft.answered(action, exchange.messages[length:])
                return draft.run
        return None

    def _fail(self, exchange: Exchange, chain: list[str]) -> str:
        """A call without an answer is an event of its conversation, which may begin only with the retry."""
        at = self._continued(exchange, chain)
        at = self._of_name(exchange) if at is None else at
        if at is None:
            kept = self._failed.setdefault((exchange.trace, chain[-1]), [])
            kept.append(Event("api_error", 0, exchange.record, exchange.error))
        else:
            run = self._runs[at]
            run.events.append(Event("api_error", len(run.drafts), exchange.record, exchange.error))
        return "event"


def _chain(messages: Sequence[Message]) -> list[str]:
    """Hashes of all beginnings of a list of messages, the empty one first."""
    chain = [""]
    for message in messages:
        chain.append(_next(chain[-1], message))
    return chain


def _next(so_far: str, message: Message) -> str:
    return hashlib.sha256(f"{so_far} {link_key(message)}".encode()).hexdigest()


def _step(index: int, draft: _Draft, pool: MessagePool, flags: dict[str, ToolResult]) -> Step:
    exchange, own = draft.exchange, draft.exchange.own
    fidelity = own.get("fidelity") if own.get("fidelity") in get_args(Fidelity) else "exact"
    kind = own.get("kind") if own.get("kind") in get_args(StepKind) else "main"
    missing = own.get("missing")
    calls = [call.id for call in draft.candidates[draft.taken].message.tool_calls]
    return Step(
        index,
        Request(
            pool.extend(_flagged(message, flags) for message in exchange.messages),
            exchange.tools,
            exchange.params,
            cast(Fidelity, fidelity),
            tuple(str(word) for word in missing) if isinstance(missing, list) else (),
        ),
        tuple(
            msgspec.structs.replace(candidate, chosen=number == draft.taken)
            for number, candidate in enumerate(draft.candidates)
        ),
        results=tuple(draft.results[call][0] for call in calls if call in draft.results),
        feedback=draft.feedback,
        kind=cast(StepKind, kind),
        records=tuple(draft.records),
        time=exchange.time,
    )


def _flagged(message: Message, flags: dict[str, ToolResult]) -> Message:
    """A tool message with the flags that were written beside the call: the request itself has no place for them."""
    blocks = tuple(
        msgspec.structs.replace(block, is_error=flags[block.call_id].is_error, status=flags[block.call_id].status)
        if isinstance(block, ToolResult) and block.call_id in flags and flags[block.call_id].text == block.text
        else block
        for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks)
