"""From the rows of one Claude Code history to its steps: answers, results, contexts.

An answer of the model is all rows with one `message.id`, in file order; usage and stop reason are the last row's. The
context of an answer is the chain of parents above its first row. Parallel results are siblings in that tree, not
ancestors, so every answer on the chain brings all its rows and the results of all its calls with it, wherever they
hang; a result that was written between two rows of an answer stands after the answer. At a compaction the chain
ends: the model then saw the summary, not the rows before. Contexts are built on one another (the chain ends at the
answer above), which makes K steps cost one walk over the rows and not K.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from postgrad.core.message import Block, Message, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Fidelity, Request, Step, StepKind
from postgrad.traces.formats.claude_code.rows import Row
from postgrad.traces.pool import CallIds, MessagePool

_ALWAYS_MISSING = ("system prompt", "tool schemas")


@dataclass
class Answer:
    """One LLM response: its rows, its message, and per call its result with the row that brought it."""

    rows: list[Row]
    message: Message = field(default_factory=lambda: Message("assistant", ()))
    results: dict[str, tuple[ToolResult, Message, Row]] = field(default_factory=dict)

    @property
    def first(self) -> Row:
        """The row whose parents are the context."""
        return self.rows[0]

    def ordered_results(self) -> list[tuple[ToolResult, Message, Row]]:
        """The results in the order of the calls."""
        return [self.results[call.id] for call in self.message.tool_calls if call.id in self.results]


@dataclass(frozen=True)
class Context:
    """Message ids above an answer, and what of the real context is not among them."""

    messages: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class History:
    """The rows of one session or one subagent, as steps. `orphans` are rows with a result of no known call."""

    def __init__(self, rows: Sequence[Row], *, kind: StepKind) -> None:
        self.pool = MessagePool()
        self._rows = {row.uuid: row for row in rows}
        self._kind = kind
        self._ids = CallIds()
        self._answers = self._collect(rows)
        self._owner = {row.uuid: answer for answer in self._answers for row in answer.rows}
        self._answer_of_call = {call.id: answer for answer in self._answers for call in answer.message.tool_calls}
        self.orphans = {row.number for row in rows if row.role == "user" and not self._match(row)}
        self._contexts: dict[int, Context] = {}

    @property
    def firsts(self) -> list[int]:
        """The record number of each step's first row, in order."""
        return [answer.first.number for answer in self._answers]

    @property
    def result_records(self) -> dict[str, int]:
        """Call id -> record number of its result."""
        return {call: row.number for answer in self._answers for call, (_, _, row) in answer.results.items()}

    def steps(self) -> tuple[Step, ...]:
        """All steps, in file order."""
        return tuple(self._step(index, answer) for index, answer in enumerate(self._answers))

    def call_of(self, row: Row) -> str | None:
        """The id of the first call that `row` answers."""
        found = (call for answer in self._answers for call, entry in answer.results.items() if entry[2] is row)
        return next(found, None)

    def _collect(self, rows: Sequence[Row]) -> list[Answer]:
        groups: dict[str, Answer] = {}
        for row in rows:
            if row.role == "step":
                groups.setdefault(row.answer, Answer([])).rows.append(row)
        for answer in groups.values():
            answer.message = self._message(answer.rows)
        return list(groups.values())

    def _message(self, rows: Iterable[Row]) -> Message:
        """The blocks of all rows; a call that a forked file repeats under the same id counts once."""
        blocks: list[Block] = []
        seen: set[str] = set()
        numbers = []
        for row in rows:
            numbers.append(row.number)
            for block in row.blocks:
                if isinstance(block, ToolCall):
                    if block.id and block.id in seen:
                        continue
                    seen.add(block.id)
                    block = self._ids.unique(block, place=row.number)
                blocks.append(block)
        return Message("assistant", tuple(blocks), tuple(numbers))

    def _match(self, row: Row) -> bool:
        """Give the row's results to their calls; False when one has no call."""
        matched = True
        for result in row.results:
            call = self._ids.answered(result.provider_id, place=row.number)
            if call is None:
                matched = False
                continue
            provider_id = result.provider_id if result.provider_id != call else None
            block = ToolResult(call, result.text, result.is_error, result.status, provider_id)
            message = Message("tool", (block, *result.media), (row.number,))
            self._answer_of_call[call].results[call] = (block, message, row)
        return matched

    def _step(self, index: int, answer: Answer) -> Step:
        context = self._context(answer)
        last = answer.rows[-1].message
        partial = context.missing != _ALWAYS_MISSING
        fidelity: Fidelity = "partial" if partial else "reconstructed"
        usage = last.get("usage")
        candidate = Candidate(
            answer.message,
            model=_word(last.get("model")),
            stop_reason=_word(last.get("stop_reason")),
            usage=usage if isinstance(usage, dict) else {},
        )
        return Step(
            index,
            Request(context.messages, fidelity=fidelity, missing=context.missing),
            (candidate,),
            results=tuple(result for result, _, _ in answer.ordered_results()),
            kind=self._kind,
            records=answer.message.records,
            time=answer.first.time,
        )

    def _context(self, answer: Answer) -> Context:
        """Resolve the answers above first, without recursion: a session is deeper than Python's stack."""
        pending: list[tuple[Answer, list[Row], Answer | None, tuple[str, ...]]] = []
        above: Answer | None = answer
        while above is not None and id(above) not in self._contexts:
            segment, parent, missing = self._walk(above)
            pending.append((above, segment, parent, missing))
            self._contexts[id(above)] = Context()  # ends a cycle of parents
            above = parent
        for current, segment, parent, missing in reversed(pending):
            base = self._contexts[id(parent)] if parent else Context(missing=_ALWAYS_MISSING)
            ids = [*base.messages]
            if parent:
                ids += [self.pool.add(parent.message)]
                ids += self.pool.extend(message for _, message, _ in parent.ordered_results())
            ids += self.pool.extend(Message("user", row.blocks, (row.number,)) for row in segment if row.blocks)
            wholly = base.missing + tuple(word for word in missing if word not in base.missing)
            self._contexts[id(current)] = Context(tuple(ids), wholly)
        return self._contexts[id(answer)]

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
            elif row.role == "user":
                found.append(row)
            at = row.parent
        return found[::-1], None, tuple(missing)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None
