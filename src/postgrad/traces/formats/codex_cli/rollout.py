"""A rollout, row by row, as a conversation.

An answer of the model is a run of its items with no other response item between; `event_msg` rows may stand inside.
Most of them say once more, for the screen, what a response item says, and are not read for content. Token counts are
written before the items of their answer by old versions and behind them by new ones: the first of them tells which.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from postgrad.core.message import Message, Text, ToolResult
from postgrad.traces.conversation import Action, Conversation
from postgrad.traces.formats.codex_cli.items import history, model_blocks, output, told, visible
from postgrad.traces.formats.codex_cli.rows import ITEMS, OUTPUT_ITEMS, ROW_TYPES, Row
from postgrad.traces.formats.codex_cli.signs import Flags, event_of
from postgrad.traces.formats.shapes.plain import mapping, mappings, string, text

_WRAPPED = re.compile(r"\s*(?:# AGENTS\.md instructions|<([A-Za-z_]+)(?: [^>]*)?>.*</\1>\s*\Z)", re.DOTALL)
_REQUEST = re.compile(r"\A# Context from my IDE setup:.*?^## My request for Codex:[ \t]*\n", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class _Turn:
    """What a `turn_context` row sets. An answer has that of its first item: the next turn's may come before its end."""

    model: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


class Rollout:
    """The conversation that the rows of one session tell, and what each row was used as."""

    def __init__(self, rows: Sequence[Row], talk: Conversation) -> None:
        self.talk = talk
        self.uses: dict[int, str] = {}
        self.orphans: list[ToolResult] = []
        self._usage = token_counts(rows)
        self._asked = (-1, "")  # the last item of a user that no event has told yet: its record and text
        self._says_typed = any(row.type == "event_msg" and row.item == "user_message" for row in rows)
        self._flags = Flags(rows)
        self._open: list[Row] = []
        self._turns: list[int] = []
        self._said: set[int] = set()
        self._unsaid: list[Row] = []
        self._turn = self._begun = _Turn()
        self._mode: tuple[object, object] | None = None

    def read(self, rows: Sequence[Row]) -> None:
        """Read the session's own rows."""
        for row in rows:
            if row.is_model:
                if not self._open:
                    self._begun = self._turn
                self._open.append(row)
                self._unsaid.clear()
                self._use(row, "step")
                continue
            if row.is_context:
                self._close()
            self._row(row)
        self._close()
        self._drop_unsaid()

    def copy(self, rows: Sequence[Row]) -> None:
        """Take over the copied history of a parent: context, and no step."""
        shown: list[tuple[int, Mapping[str, Any]]] = []
        for row in rows:
            self._use(row, "copied")
            if row.type == "response_item" and row.item != "ghost_snapshot":
                shown.append((row.number, row.payload))
            elif row.type == "compacted":
                shown = self._replacement(row, shown)
            elif row.type == "turn_context":
                self._turn_context(row)
        for message in history(shown):
            self.talk.tell(message)

    @property
    def typed(self) -> list[int]:
        """The record numbers of what the user typed and did not take back."""
        return self._turns

    def _row(self, row: Row) -> None:
        if row.type == "response_item":
            self._response_item(row)
        elif row.type == "event_msg":
            self._event_msg(row)
        elif row.type == "turn_context":
            self._turn_context(row)
        elif row.type == "compacted":
            self._compacted(row)
        else:
            self._use(row, "metadata" if row.type in ROW_TYPES or row.type == "state" else "unknown")

    def _use(self, row: Row, used_as: str) -> None:
        self.uses[row.number] = used_as

    def _close(self) -> None:
        """The run of model items, if there is one, is an answer."""
        if not self._open:
            return
        rows, self._open = self._open, []
        blocks = [block for row in rows for block in model_blocks(row.item, row.payload)]
        numbers = tuple(row.number for row in rows)
        usage = self._usage.get(rows[0].number, {})
        if self.talk.setting.params is not self._begun.params:
            self.talk.change(params=self._begun.params)
        self.talk.act(Action(blocks, numbers, self._begun.model, None, usage, rows[0].time))

    def _response_item(self, row: Row) -> None:
        if row.item in OUTPUT_ITEMS:
            found = output(row.item, row.payload)
            result = self._flags.flagged(found.result())
            known = self.talk.answer(result, record=row.number, media=found.media)
            self._use(row, "result" if known else "orphan_result")
            if not known:
                self.orphans.append(result)
                self.talk.tell(Message("tool", (result, *found.media), (row.number,)))
        elif row.item == "ghost_snapshot":
            self._use(row, "ui")
        else:
            self._told(row)

    def _told(self, row: Row) -> None:
        message = told(row.item, row.payload, row.number)
        self.talk.tell(message)
        self._said.add(row.number)
        self._use(row, "context" if row.item in ITEMS else "unknown")
        said = visible(message)
        if message.role == "user" and row.item == "message" and not _WRAPPED.match(said):
            self._turns.append(row.number)
            self._asked = (row.number, said.strip())
            if not self._says_typed:
                self._typed(row.number, said)

    def _typed(self, number: int, said: str) -> None:
        self._drop_unsaid()
        if said.strip():
            self.talk.event("user_text", number, _REQUEST.sub("", said))

    def _event_msg(self, row: Row) -> None:
        self._use(row, "ui")
        if row.item == "user_message":
            self._use(row, "event")
            said = string(row.payload.get("message"))
            number, asked = self._asked  # mostly told twice: as an item, and as an event for the screen
            self._typed(number if asked == said.strip() else row.number, said)
            self._asked = (-1, "")
        elif row.item in ("agent_reasoning", "agent_reasoning_raw_content"):
            self._unsaid.append(row)
        elif row.item == "thread_rolled_back":
            self._roll_back(row)
        elif (found := event_of(row, self._flags)) is not None:
            self._use(row, "event")
            self.talk.events.append(found.at(self.talk.steps + bool(self._open)))

    def _turn_context(self, row: Row) -> None:
        if row.number not in self.uses:
            self._use(row, "metadata")
        params = {name: row.payload[name] for name in ("effort", "summary") if isinstance(row.payload.get(name), str)}
        self._turn = _Turn(text(row.payload.get("model")) or self._turn.model, params)
        sandbox = mapping(row.payload.get("sandbox_policy"))
        mode = (row.payload.get("approval_policy"), sandbox.get("mode", sandbox.get("type")))
        if self._mode is not None and mode != self._mode and self.uses[row.number] != "copied":
            self._use(row, "event")
            self.talk.event("mode_change", row.number, f"approval {mode[0]}, sandbox {mode[1]}")
        self._mode = mode

    def _compacted(self, row: Row) -> None:
        """The history that the model sees from here on. Old versions say the summary only."""
        self._use(row, "event")
        self.talk.event("compaction", row.number, string(row.payload.get("message")))
        replaced = self._replacement(row, None)
        if replaced is not None:
            self.talk.forget(lambda number: True)
            for message in history(replaced):
                self.talk.tell(message)
            return
        self.talk.forget(lambda number: number not in self._said)
        self.talk.tell(Message("user", (Text(string(row.payload.get("message"))),), (row.number,)))
        missing = self.talk.setting.missing
        if "exact compacted history" not in missing:
            self.talk.change(fidelity="partial", missing=(*missing, "exact compacted history"))

    def _replacement(self, row: Row, otherwise: Any) -> Any:
        items = row.payload.get("replacement_history")
        if not isinstance(items, list):
            return otherwise
        return [(row.number, item) for item in mappings(items)]

    def _roll_back(self, row: Row) -> None:
        """The last turns of the user are undone: what was said in them is an abandoned branch."""
        self._use(row, "event")
        self._close()
        count = row.payload.get("num_turns")
        turns = min(count if isinstance(count, int) and count > 0 else 1, len(self._turns))
        self.talk.event("rewind", row.number, turns=turns)
        if turns:
            self.talk.rewind(self._turns[-turns])
            del self._turns[-turns:]

    def _drop_unsaid(self) -> None:
        """Thinking of an answer that was stopped before any of its items was written: an event and no step."""
        for row in self._unsaid:
            self._use(row, "event")
            self.talk.event("aborted_answer", row.number, string(row.payload.get("text")))
        self._unsaid.clear()


def token_counts(rows: Sequence[Row]) -> dict[int, dict[str, Any]]:
    """The record number of each answer's first item -> the tokens of that call, as logged."""
    firsts = list(_firsts(rows))
    counted = {row.number: tokens for row in rows if row.item == "token_count" and (tokens := _tokens(row))}
    if not firsts or not counted:
        return {}
    before = min(counted) < firsts[0]
    found: dict[int, dict[str, Any]] = {}
    for number, tokens in counted.items():
        place = bisect_left(firsts, number) - (not before)
        if 0 <= place < len(firsts):
            found[firsts[place]] = tokens
    return found


def _tokens(row: Row) -> dict[str, Any]:
    return mapping(mapping(row.payload.get("info")).get("last_token_usage"))


def _firsts(rows: Sequence[Row]) -> Iterator[int]:
    inside = False
    for row in rows:
        if row.is_model and not inside:
            yield row.number
        inside = row.is_model or (inside and not row.is_context)
