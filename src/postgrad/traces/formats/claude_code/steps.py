"""From the rows of one Claude Code history to its steps: answers, results, contexts.

An answer of the model is all rows with one `message.id`, in file order; usage and stop reason are the last row's. The
context of an answer is the chain of parents above its first row. Parallel results are siblings in that tree, not
ancestors, so every answer on the chain brings all its rows and the results of all its calls with it, wherever they
hang; a result that was written between two rows of an answer stands after the answer. At a compaction the chain
ends: the model then saw the summary, not the rows before. Contexts are built on one another (the chain ends at the
answer above), which makes K steps cost one walk over the rows and not K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from postgrad.core.message import Block, Message, ToolCall, ToolResult
from postgrad.core.prefix import grown
from postgrad.core.trace import Candidate, Feedback, Fidelity, Request, Step, StepKind
from postgrad.traces.formats.claude_code.branches import Branches
from postgrad.traces.formats.claude_code.rows import Row
from postgrad.traces.pool import CallIds, MessagePool

_ALWAYS_MISSING = ("system prompt", "tool schemas")
_WORDS_OF_THE_USER = "the user said:"


_UNREAD = Message("assistant", ())


@dataclass(frozen=True, slots=True)
class Context:
    """Message ids above an answer, and what of the real context is not among them."""

    messages: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


_NO_CONTEXT = Context()
_START = Context(missing=_ALWAYS_MISSING)


@dataclass(slots=True)
class Answer:
    """One LLM response: its rows, its message, its calls, and their results as they came.

    A result is a message whose first block it is. `place` is the index of the step; the context is worked out late.
    """

    rows: list[Row]
    message: Message = _UNREAD
    calls: tuple[str, ...] = ()
    results: list[Message] = field(default_factory=list)
    place: int = 0
    context: Context | None = None

    @property
    def first(self) -> Row:
        """The row whose parents are the context."""
        return self.rows[0]

    def ordered_results(self) -> list[Message]:
        """The results in the order of the calls."""
        if len(self.results) < 2:
            return self.results
        return sorted(self.results, key=lambda message: self.calls.index(result_in(message).call_id))


def result_in(message: Message) -> ToolResult:
    """The result that a message of an answer's results brings."""
    return cast(ToolResult, message.blocks[0])


class History:
    """The rows of one session or one subagent, as steps.

    `orphans` are the results of no known call by the number of their row, `repeated` the rows with a result that its
    call has already.
    """

    def __init__(self, rows: Sequence[Row], *, kind: StepKind, agent: str | None = None) -> None:
        self.pool = MessagePool()
        self.orphans: dict[int, ToolResult] = {}
        self.repeated: set[int] = set()
        self._rows = {row.uuid: row for row in rows}
        self._kind, self._agent = kind, agent
        self._ids = CallIds()
        self._answers = self._collect(rows)
        self._owner = {row.uuid: answer for answer in self._answers for row in answer.rows}
        self._answer_of_call = {call: answer for answer in self._answers for call in answer.calls}
        for row in rows:
            if row.role == "user":
                self._match(row)
        self._branches = Branches(rows, self._rows, self._owner)

    @property
    def firsts(self) -> list[int]:
        """The record number of each step's first row, in order."""
        return [answer.first.number for answer in self._answers]

    @property
    def result_records(self) -> dict[str, int]:
        """Call id -> record number of its result."""
        return {
            result_in(message).call_id: message.records[0] for answer in self._answers for message in answer.results
        }

    def steps(self) -> tuple[Step, ...]:
        """All steps, in file order."""
        return tuple(map(self._step, self._answers))

    def call_of(self, row: Row) -> str | None:
        """The id of the first call that `row` answers."""
        return self._call_of_row.get(row.number)

    @cached_property
    def _call_of_row(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for answer in self._answers:
            for message in answer.results:
                found.setdefault(message.records[0], result_in(message).call_id)
        return found

    def _collect(self, rows: Sequence[Row]) -> list[Answer]:
        groups: dict[str, Answer] = {}
        for row in rows:
            if row.role == "step":
                answer = groups.get(key := row.answer)
                if answer is None:
                    groups[key] = Answer([row])
                else:
                    answer.rows.append(row)
        for place, answer in enumerate(groups.values()):
            answer.place = place
            self._read(answer)
        return list(groups.values())

    def _read(self, answer: Answer) -> None:
        """The blocks of all its rows; what a forked file repeats (a call's id, an equal block) counts once."""
        blocks: list[Block] = []
        calls: list[str] = []
        seen: set[str] = set()
        for row in answer.rows:
            before = len(blocks)
            for block in row.blocks:
                if isinstance(block, ToolCall):
                    if block.id and block.id in seen:
                        continue
                    seen.add(block.id)
                    block = self._ids.unique(block, place=row.number)
                    calls.append(block.id)
                elif before and block in blocks[:before]:
                    continue
                blocks.append(block)
        answer.message = Message("assistant", tuple(blocks), tuple([row.number for row in answer.rows]))
        answer.calls = tuple(calls)

    def _match(self, row: Row) -> None:
        """Give the row's results to their calls."""
        for result in row.results:
            call = self._ids.answered(result.provider_id, place=row.number)
            block = ToolResult(call or result.provider_id, result.text, result.is_error, result.status)
            if call is not None:
                if result.provider_id != call:
                    block = ToolResult(call, result.text, result.is_error, result.status, result.provider_id)
                message = Message("tool", (block, *result.media), (row.number,))
                self._answer_of_call[call].results.append(message)
            elif result.provider_id in self._answer_of_call:
                self.repeated.add(row.number)
            else:
                self.orphans[row.number] = block

    def _step(self, answer: Answer) -> Step:
        context = self._context(answer)
        last = answer.rows[-1].message
        partial = context.missing != _ALWAYS_MISSING
        fidelity: Fidelity = "partial" if partial else "reconstructed"
        above = self._branches.above(answer, answer.first)
        index, parent = answer.place, None if above is None else above.place
        results = tuple([result_in(message) for message in answer.ordered_results()])
        candidate = Candidate(
            answer.message,
            model=last.model,
            stop_reason=last.stop_reason,
            usage=last.usage or {},
        )
        return Step(
            index,
            Request(context.messages, fidelity=fidelity, missing=context.missing),
            (candidate,),
            results=results,
            feedback=tuple([judgement for result in results if (judgement := _judged(result)) is not None]),
            kind=self._kind,
            records=answer.message.records,
            time=answer.first.time,
            parent=None if parent == index - 1 else parent,
            abandoned=self._branches.left(answer, answer.first),
            agent=self._agent,
        )

    def _context(self, answer: Answer) -> Context:
        """Resolve the answers above first, without recursion: a session is deeper than Python's stack."""
        pending: list[tuple[Answer, list[Row], Answer | None, tuple[str, ...]]] = []
        above: Answer | None = answer
        while above is not None and above.context is None:
            segment, parent, missing = self._walk(above)
            pending.append((above, segment, parent, missing))
            above.context = _NO_CONTEXT  # ends a cycle of parents
            above = parent
        for current, segment, parent, missing in reversed(pending):
            base = (parent.context or _NO_CONTEXT) if parent else _START
            messages = [parent.message, *parent.ordered_results()] if parent else []
            messages += [Message("user", row.blocks, (row.number,)) for row in segment if row.blocks]
            new = self.pool.extend(messages)
            wholly = base.missing
            if missing:
                wholly += tuple([word for word in missing if word not in wholly])
            current.context = Context(grown(base.messages, new), wholly)
        return answer.context or _NO_CONTEXT

    def _walk(self, answer: Answer) -> tuple[list[Row], Answer | None, tuple[str, ...]]:
        """User rows between `answer` and the answer above it, that answer, and what is known to be missing."""
        found: list[Row] = []
        missing: list[str] = []
        seen = {row.uuid for row in answer.rows}
        at = answer.first.parent
        while at is not None and at not in seen:
            seen.add(at)
            row = self._rows.get(at)
            if row is None:
                missing.append("earlier messages")
                break
            owner = self._owner.get(at)
            if owner is not None and owner is not answer:
                return found[::-1], owner, tuple(missing)
            if row.subtype == "compact_boundary":
                break
            if row.subtype == "microcompact_boundary":
                missing.append("which tool results were cleared")
            elif row.type == "attachment":
                missing.append("wording of attachments")
                found += [row] if row.blocks else []
            elif row.role == "user":
                found.append(row)
            at = row.parent
        return found[::-1], None, tuple(missing)


def _judged(result: ToolResult) -> Feedback | None:
    """What the user said by refusing a call: the words behind the refusal, if there are any."""
    if result.status != "rejected":
        return None
    words = result.text.partition(_WORDS_OF_THE_USER)[2].strip()
    return Feedback("user_correction" if words else "user_reject", text=words, source="user")
