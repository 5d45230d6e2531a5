"""Small traces written out by hand, for the tests of signals and teachers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message, Tool, ToolCall, ToolResult
from postgrad.core.trace import Candidate, Event, Feedback, Request, Source, Step, Trace

WEATHER = Tool(
    "get_weather",
    "Weather of a city",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    },
)
ALARM = Tool("set_alarm", "Set an alarm", {"type": "object", "properties": {"time": {"type": "string"}}})


def call(name: str, arguments: Mapping[str, Any] | str, id: str = "c0") -> ToolCall:
    """A call; text arguments are taken as the raw string."""
    raw = arguments if isinstance(arguments, str) else canonical_json(dict(arguments))
    return ToolCall.from_raw(id=id, name=name, raw=raw)


def act(*blocks: Any) -> Message:
    """An assistant message."""
    return Message("assistant", tuple(blocks))


class TraceBuilder:
    """Adds steps one by one; every result becomes a record with the next number, starting at 10."""

    def __init__(self, request: str = "go", tools: Sequence[Tool] = (), task_id: str | None = None) -> None:
        self.tools, self.task_id = tuple(tools), task_id
        self._context = [Message.of("user", request)]
        self._steps: list[Step] = []
        self._events: list[Event] = []
        self._records: dict[str, int] = {}
        self._number = 10

    def step(
        self,
        action: Message,
        results: Sequence[tuple[str, bool | None]] = (),
        *,
        feedback: Sequence[Feedback] = (),
        status: str = "",
    ) -> TraceBuilder:
        """A step whose calls got `results`, (text, is_error) each, in order; fewer results leave calls pending."""
        given = []
        for called, (text, failed) in zip(action.tool_calls, results, strict=False):
            self._records[called.id] = self._next()
            given.append(ToolResult(called.id, text, failed, status or ("error" if failed else "ok")))  # type: ignore[arg-type]
        request = Request(tuple(m.id for m in self._context), self.tools)
        self._steps.append(
            Step(
                len(self._steps),
                request,
                (Candidate(action),),
                tuple(given),
                tuple(feedback),
                records=(self._next(),),
            )
        )
        self._context = [*self._context, action, *(Message("tool", (result,)) for result in given)]
        return self

    def event(self, kind: str, text: str = "") -> TraceBuilder:
        """Something between the last step and the next."""
        self._events.append(Event(kind, len(self._steps), self._next(), text))
        return self

    def build(self, id: str = "t") -> Trace:
        """The trace."""
        return Trace(
            id,
            Source("by hand", "test"),
            {message.id: message for message in self._context},
            tuple(self._steps),
            events=tuple(self._events),
            task_id=self.task_id,
            result_records=self._records,
        )

    def _next(self) -> int:
        self._number += 1
        return self._number - 1


def bash(command: str, id: str = "c0") -> ToolCall:
    """A shell call."""
    return call("Bash", {"command": command}, id)
