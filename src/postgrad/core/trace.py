"""`Trace` and `Step`: one history of an LLM application, a step per LLM decision.

A recorded session, a live rollout, an evaluation transcript and a served chat are all this type.
Messages are kept once in the trace's pool and steps refer to them by content id, so a trace of K steps
costs its length and not K contexts.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from postgrad.core.message import Message, Tool, ToolResult

Fidelity = Literal["exact", "exact-messages", "reconstructed", "partial", "none"]
StepKind = Literal["main", "subagent", "compaction"]
EVALUATION = "evaluation"
"""The `purpose` among a request's parameters that marks a trace as not to be trained on; captures keep it."""


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a trace was read from: file, its format, and the application that wrote it."""

    path: str
    format: str
    sha256: str = ""
    app: str | None = None
    app_version: str | None = None


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the model was given: message ids of the pool, tools, sampling parameters.

    `fidelity` says how exactly the context is known and `missing` what is not.
    """

    messages: tuple[str, ...]
    tools: tuple[Tool, ...] = ()
    params: dict[str, Any] = {}
    fidelity: Fidelity = "exact"
    missing: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer at a step: the action taken (`chosen`), a regeneration, or a teacher's action."""

    message: Message
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] = {}
    chosen: bool = True
    teacher: str | None = None


class Feedback(msgspec.Struct, frozen=True, omit_defaults=True):
    """A judgement on a step from outside the model: a verifier's score, a rating, a correction."""

    kind: str
    value: float | None = None
    text: str = ""
    source: str = ""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """One LLM decision: request, candidates, results of its calls, feedback.

    `parent` is the index of the step that this one goes on from, where that is not the step before it; a step with
    `abandoned` lies on a branch that the user left by going back. `agent` names the agent where a trace has several.
    """

    index: int
    request: Request
    candidates: tuple[Candidate, ...]
    results: tuple[ToolResult, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    kind: StepKind = "main"
    records: tuple[int, ...] = ()
    time: str | None = None
    parent: int | None = None
    abandoned: bool = False
    agent: str | None = None

    @property
    def action(self) -> Message:
        """The message of the action taken."""
        return next(c.message for c in self.candidates if c.chosen and c.teacher is None)

    @property
    def can_be_learnt(self) -> bool:
        """Whether there is a context, it is known, and the step is part of the conversation (a compaction is not)."""
        return bool(self.request.messages) and self.request.fidelity != "none" and self.kind != "compaction"


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is no LLM step: compaction, interruption, user text, API error, spawn.

    `before_step` is the index of the first step after the event.
    """

    kind: str
    before_step: int
    record: int
    text: str = ""
    data: dict[str, Any] = {}


class Trace(msgspec.Struct, frozen=True, omit_defaults=True):
    """One history. `index` is its place in its file; `records` in results are raw record numbers.

    `orphans` are results whose calls the source does not hold (a cut or slid window); they belong to no step.
    `environment` is where it was recorded, so that it can be executed again: folder, command, repository with commit
    and state, versions; plain JSON data, empty where the source does not say.
    """

    id: str
    source: Source
    messages: dict[str, Message]
    steps: tuple[Step, ...]
    index: int = 0
    events: tuple[Event, ...] = ()
    parent: str | None = None
    task_id: str | None = None
    result_records: dict[str, int] = {}
    orphans: tuple[ToolResult, ...] = ()
    environment: dict[str, Any] = {}

    @property
    def for_evaluation(self) -> bool:
        """Whether it is the transcript of an evaluation: to be looked at, never to be trained on."""
        return any(step.request.params.get("purpose") == EVALUATION for step in self.steps)

    def context(self, step: Step) -> tuple[Message, ...]:
        """The messages that the model saw before `step`."""
        return tuple(self.messages[i] for i in step.request.messages)

    @property
    def tool_calls(self) -> int:
        """Calls made by actions taken."""
        return sum(len(step.action.tool_calls) for step in self.steps)

    @property
    def tool_results(self) -> int:
        """Results received: for those calls, and orphans."""
        return sum(len(step.results) for step in self.steps) + len(self.orphans)

    @property
    def flagged_errors(self) -> int:
        """Results that the source itself flags as errors, and events so flagged (an error that answers no call)."""
        results = sum(result.is_error is True for step in self.steps for result in step.results)
        results += sum(result.is_error is True for result in self.orphans)
        return results + sum(event.data.get("is_error") is True for event in self.events)
