"""`Span`: one unit of work in an observability log: an LLM call, a tool's run, an agent's turn, or anything else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from postgrad.core.message import Opaque, ResultStatus, Tool, ToolCall
from postgrad.core.trace import Feedback, Fidelity
from postgrad.traces.formats.shapes.said import Said

SpanKind = Literal["llm", "tool", "agent", "other"]


@dataclass
class LLMCall:
    """What a span says about a call of a model. `context` None: the input was not captured.

    `fidelity` and `missing` are the reader's word on a context that is captured.
    """

    context: list[Said] | None = None
    answers: list[Said] = field(default_factory=list)
    tools: tuple[Tool, ...] = ()
    params: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    response_id: str | None = None
    finish: str | None = None
    fidelity: Fidelity = "exact-messages"
    missing: tuple[str, ...] = ()

    @property
    def content(self) -> int:
        """How much is known: messages in, answers out."""
        return len(self.context or ()) + len(self.answers)

    def fill(self, other: LLMCall) -> None:
        """Take from another report of the same call what this one does not say."""
        self.context = other.context if self.context is None else self.context
        self.answers = self.answers or other.answers
        self.tools = self.tools or other.tools
        self.params = {**other.params, **self.params}
        self.model = self.model or other.model
        self.usage = {**other.usage, **self.usage}
        self.response_id = self.response_id or other.response_id
        self.finish = self.finish or other.finish

    def structured(self, names: set[str]) -> None:
        """Calls of these tools are the answer in a structured form: nothing runs, and no result comes back."""
        for said in [*(self.context or ()), *self.answers]:
            said.parts = [
                Opaque("structured_output", {"name": part.name, "arguments": part.arguments_raw, "id": part.id})
                if isinstance(part, ToolCall) and part.name in names
                else part
                for part in said.parts
            ]


@dataclass
class ToolRun:
    """What a span says about a tool's run. `result` None: not captured; `status` where it is more than an error."""

    name: str
    call_id: str = ""
    arguments: str = ""
    result: str | None = None
    is_error: bool | None = None
    status: ResultStatus | None = None

    def fill(self, other: ToolRun) -> None:
        """Take from another report of the same run what this one does not say."""
        self.call_id, self.arguments = self.call_id or other.call_id, self.arguments or other.arguments
        self.result = other.result if self.result is None else self.result
        self.is_error = other.is_error if self.is_error is None else self.is_error


@dataclass
class Span:
    """A span. `start` and `end` are seconds since 1970 (0: not known); `time` is the start as written."""

    id: str
    record: int
    trace: str = ""
    parent: str = ""
    name: str = ""
    kind: SpanKind = "other"
    start: float = 0.0
    end: float = 0.0
    time: str | None = None
    call: LLMCall | None = None
    tool: ToolRun | None = None
    error: str = ""
    agent: str | None = None
    scope: str = ""
    app: str | None = None
    feedback: tuple[Feedback, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    records: list[int] = field(default_factory=list)

    def merge(self, other: Span) -> None:
        """Take in another report of the same span (an update, or the same call seen by another library)."""
        if self.call is not None and other.call is not None:
            self.call.fill(other.call)
        if self.tool is not None and other.tool is not None:
            self.tool.fill(other.tool)
        self.call = self.call or other.call
        self.tool = self.tool or other.tool
        self.kind = other.kind if self.kind == "other" else self.kind
        self.parent, self.trace = self.parent or other.parent, self.trace or other.trace
        self.start, self.end = self.start or other.start, self.end or other.end
        self.time, self.agent = self.time or other.time, self.agent or other.agent
        self.error = self.error or other.error
        self.feedback += other.feedback
        self.texts += other.texts
        self.records += [number for number in [other.record, *other.records] if number != self.record]
