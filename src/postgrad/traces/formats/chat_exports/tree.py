"""A conversation that is a tree of messages, as steps: regenerations are candidates, other paths abandoned branches.

A turn of the model is a chain of its messages without anybody else's between. Turns that answer the same message are
the candidates of one step, of which the one on the current path was taken (else the last). A step below a candidate
that was not taken, or below a message that the user wrote anew, lies on a branch that was left. A step's context is the
path from the root to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from postgrad.core.message import Block, Media, Message, Role, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace
from postgrad.traces.conversation import provider_key
from postgrad.traces.pool import CallIds, MessagePool


@dataclass
class Node:
    """A message of the tree. `ends` closes the model's turn; `answers` makes it the result of a call of that id."""

    id: str
    parent: str | None
    role: Role
    blocks: tuple[Block, ...]
    record: int
    time: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    ends: bool = False
    hidden: bool = False
    feedback: tuple[Feedback, ...] = ()
    result: ToolResult | None = None
    children: list[str] = field(default_factory=list)


@dataclass
class _Turn:
    """One answer of the model: its nodes in order, and the node that it answers."""

    nodes: list[Node]
    after: str | None
    message: Message = field(default_factory=lambda: Message("assistant", ()))
    step: int = -1
    results: dict[str, ToolResult] = field(default_factory=dict)


@dataclass(frozen=True)
class Named:
    """What a trace is called and where it is from."""

    id: str
    source: Source
    index: int
    missing: tuple[str, ...]
    task: str | None = None


class Tree:
    """The nodes of one conversation; `current` is the last message of the path that the user sees."""

    def __init__(self, nodes: Iterable[Node], current: str | None) -> None:
        self.nodes = {node.id: node for node in nodes}
        for node in self.nodes.values():
            if node.parent in self.nodes and node.parent != node.id:
                self.nodes[str(node.parent)].children.append(node.id)
        self.main = set(self._path(current if current in self.nodes else self._last()))
        self._pool, self._ids = MessagePool(), CallIds()
        self._records: dict[str, int] = {}
        self._orphans: list[ToolResult] = []
        self._turn_of: dict[str, _Turn] = {}
        self._messages: dict[str, Message] = {}
        self._groups: list[list[_Turn]] = []

    def trace(self, named: Named) -> Trace | None:
        """The conversation as a trace, None if the model never answered."""
        events = self._walk()
        if not self._groups:
            return None
        steps = tuple(self._step(index, group, named) for index, group in enumerate(self._groups))
        return Trace(
            named.id,
            named.source,
            self._pool.messages,
            steps,
            index=named.index,
            events=tuple(events),
            task_id=named.task,
            result_records=self._records,
            orphans=tuple(self._orphans),
        )

    def _path(self, node: str | None) -> Iterator[str]:
        """From a node up to its root; a cycle, which only a broken file has, ends it."""
        seen: set[str] = set()
        while node is not None and node in self.nodes and node not in seen:
            seen.add(node)
            yield node
            node = self.nodes[node].parent

    def _last(self) -> str | None:
        """The leaf that the newest path ends with, where the file does not say which is the current one."""
        roots = [node.id for node in self.nodes.values() if node.parent not in self.nodes]
        at = roots[0] if roots else None
        seen: set[str] = set()
        while at is not None and self.nodes[at].children and at not in seen:
            seen.add(at)
            at = self.nodes[at].children[-1]
        return at

    def _walk(self) -> list[Event]:
        """Every node once, parents before children, siblings in order: turns, their groups, and what users said."""
        events: list[Event] = []
        waiting = [node.id for node in reversed(self.nodes.values()) if node.parent not in self.nodes]
        groups: dict[str | None, list[_Turn]] = {}
        while waiting:
            node = self.nodes[waiting.pop()]
            if node.id in self._messages:
                continue
            self._place(node, groups)
            waiting += reversed(node.children)
            if node.role == "user" and node.blocks and not node.hidden:
                said = self._messages[node.id].text
                events.append(Event("user_text", len(self._groups), node.record, said, _edited(node, self.nodes)))
            if node.role == "assistant" and node.stop_reason == "interrupted":
                events.append(Event("interrupt", len(self._groups), node.record))
        return events

    def _place(self, node: Node, groups: dict[str | None, list[_Turn]]) -> None:
        above = self.nodes.get(node.parent or "")
        if node.role != "assistant":
            self._messages[node.id] = self._heard(node)
            return
        before = self._turn_of.get(above.id) if above is not None else None
        if before is not None and above is not None and len(above.children) == 1 and not above.ends:
            turn = before
            turn.nodes.append(node)
        else:
            turn = _Turn([node], above.id if above else None)
            group = groups.setdefault(turn.after, [])
            if not group:
                self._groups.append(group)
            group.append(turn)
            turn.step = next(place for place, known in enumerate(self._groups) if known is group)
        self._turn_of[node.id] = turn
        blocks = tuple(self._ids.unique(b, place=node.record) if isinstance(b, ToolCall) else b for b in node.blocks)
        turn.message = Message("assistant", turn.message.blocks + blocks, (*turn.message.records, node.record))
        self._messages[node.id] = Message("assistant", blocks, (node.record,))

    def _heard(self, node: Node) -> Message:
        if node.result is None:
            return Message(node.role, node.blocks, (node.record,))
        turn = next((self._turn_of[key] for key in self._path(node.parent) if key in self._turn_of), None)
        call = next(_open(turn, node.result.call_id), None) if turn is not None else None
        media = tuple(block for block in node.blocks if isinstance(block, Media))
        if call is None or turn is None:
            self._orphans.append(node.result)
            return Message("tool", (node.result, *media), (node.record,))
        key = node.result.call_id if node.result.call_id != call else None
        result = msgspec.structs.replace(node.result, call_id=call, provider_id=key)
        turn.results[call] = result
        self._records[call] = node.record
        return Message("tool", (result, *media), (node.record,))

    def _context(self, turn: _Turn) -> tuple[str, ...]:
        """The path above a turn; the nodes of one earlier turn are one message."""
        messages: list[Message] = []
        for key in reversed(list(self._path(turn.after))):
            before = self._turn_of.get(key)
            if before is None:
                messages.append(self._messages[key])
            elif before.nodes[-1].id == key:
                messages.append(before.message)
        return self._pool.extend(message for message in messages if message.blocks)

    def _step(self, index: int, group: Sequence[_Turn], named: Named) -> Step:
        on_path = [turn for turn in group if turn.nodes[0].id in self.main]
        taken = on_path[0] if on_path else group[-1]
        above = next((self._turn_of[key].step for key in self._path(taken.after) if key in self._turn_of), None)
        return Step(
            index,
            Request(self._context(taken), fidelity="partial", missing=named.missing),
            tuple(_candidate(turn, chosen=turn is taken) for turn in group),
            results=tuple(taken.results[call.id] for call in taken.message.tool_calls if call.id in taken.results),
            feedback=tuple(said for turn in group if turn is taken for node in turn.nodes for said in node.feedback),
            records=tuple(node.record for turn in group for node in turn.nodes),
            time=taken.nodes[0].time,
            parent=above if above is not None and above != index - 1 else None,
            abandoned=not on_path,
        )


def _open(turn: _Turn, provider_id: str) -> Iterator[str]:
    """Calls of a turn that have no result yet: of that id, else (no id is given) any."""
    for call in turn.message.tool_calls:
        if call.id not in turn.results and provider_id in ("", provider_key(call)):
            yield call.id


def _candidate(turn: _Turn, *, chosen: bool) -> Candidate:
    last = turn.nodes[-1]
    model = next((node.model for node in turn.nodes if node.model), None)
    return Candidate(turn.message, model=model, stop_reason=last.stop_reason, chosen=chosen)


def _edited(node: Node, nodes: dict[str, Node]) -> dict[str, bool]:
    """Whether the user wrote the message anew: an older one hangs on the same parent."""
    above = nodes.get(node.parent or "")
    older = [key for key in above.children if nodes[key].role == "user"] if above else []
    return {"edit": True} if older and older[0] != node.id else {}
