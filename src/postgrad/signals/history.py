"""`History`: a trace with every call judged once, and the order in which its steps follow each other.

Rules look back (which edit since the last pass?) and ahead (did a later call work?), so what a call came to is worked
out once a trace and not once a question.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from postgrad.core.message import ToolCall
from postgrad.core.trace import Event, Step, Trace
from postgrad.signals.evidence import Evidence
from postgrad.signals.rules import has_failed

_PATHS = re.compile(r"(?:[\w.@-]+[/\\])+[\w.@-]+|\b[\w-]+\.[a-z]{1,5}\b")
_PATH_TEXT = 4000
_RUN_IDS = (
    "session_id",
    "bash_id",
    "task_id",
    "shell_id",
    "shellId",
    "process_id",
    "pid",
    "terminal_id",
    "id",
    "command_id",
)
_STILL_RUNS = re.compile(r"running|background|session|started|still", re.IGNORECASE)


class History:
    """A trace, read for rules. `evidence` holds every answered call of the actions taken, in order."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.names = frozenset(_names(trace))
        self._judged: dict[str, bool] = {}
        self._positions = {step.index: at for at, step in enumerate(trace.steps)}
        self._events: defaultdict[int, list[Event]] = defaultdict(list)
        for event in trace.events:
            self._events[event.before_step].append(event)

    @cached_property
    def evidence(self) -> dict[str, Evidence]:
        """Call id -> evidence, for calls with a result."""
        return {call.id: found for answered in self._steps.values() for call, found in answered if found is not None}

    def of(self, step: Step) -> list[tuple[ToolCall, Evidence | None]]:
        """The calls of a step with what came back, None where nothing did."""
        return self._steps[step.index]

    @cached_property
    def _steps(self) -> dict[int, list[tuple[ToolCall, Evidence | None]]]:
        return {step.index: self._answered(step) for step in self.trace.steps}

    def _answered(self, step: Step) -> list[tuple[ToolCall, Evidence | None]]:
        results = {result.call_id: result for result in step.results}
        tools = step.request.tools
        return [
            (call, Evidence(call, result, tools=tools, session_names=self.names) if result is not None else None)
            for call in step.action.tool_calls
            for result in [results.get(call.id)]
        ]

    def times_spoken(self, evidence: Evidence) -> int:
        """How many calls of the same tool (and sub-command) were answered with words and went well."""
        wanted = (evidence.call.name, (evidence.call.arguments or {}).get("command"))
        spoken = (
            other
            for other in self.evidence.values()
            if (other.call.name, (other.call.arguments or {}).get("command")) == wanted and other.text.strip()
        )
        return sum(self.succeeded(other) for other in spoken)

    def failed(self, evidence: Evidence) -> bool:
        """Whether the call failed, by flag or by words."""
        key = evidence.call.id
        if key not in self._judged:
            self._judged[key] = has_failed(evidence)
        return self._judged[key]

    def succeeded(self, evidence: Evidence) -> bool:
        """Whether the call has an answer and did not fail."""
        return evidence.result.status == "ok" and not self.failed(evidence)

    def started_by(self, step: Step, poll: Evidence) -> tuple[Step, ToolCall] | None:
        """The shell call, and its step, whose background run `poll` asks about: its result gave the run's id."""
        wanted = {str(value) for name in _RUN_IDS if (value := (poll.call.arguments or {}).get(name)) not in (None, "")}
        found = None
        for earlier, evidence in self.answered(before=step.index):
            said = evidence.text[:1000]
            asked = any(re.search(rf"(?<!\w){re.escape(run)}(?!\w)", said) for run in wanted)
            if asked and evidence.kind == "shell" and _STILL_RUNS.search(said):
                found = earlier, evidence.call
        return found

    def answered(self, *, before: int | None = None, after: int = -1) -> Iterator[tuple[Step, Evidence]]:
        """Calls with results in the steps from `after` (exclusive) to `before` (exclusive), in order."""
        for step in self.trace.steps:
            if step.index <= after or (before is not None and step.index >= before):
                continue
            for _, evidence in self.of(step):
                if evidence is not None:
                    yield step, evidence

    def following(self, step: Step) -> Step | None:
        """The step that goes on from `step`, on its own branch."""
        steps = self.trace.steps
        at = self._positions[step.index] + 1
        if at < len(steps) and steps[at].parent in (None, step.index):
            return steps[at]
        return next((other for other in steps[at:] if other.parent == step.index), None)

    def events_after(self, step: Step) -> list[Event]:
        """Events between `step` and the next model step."""
        return self._events[step.index + 1]


def _names(trace: Trace) -> Iterator[str]:
    """Files and folders in the arguments of calls, without suffix, in small letters."""
    for step in trace.steps:
        for call in step.action.tool_calls:
            for found in _PATHS.finditer(call.arguments_raw[:_PATH_TEXT]):
                for part in re.split(r"[/\\]", found[0].lower()):
                    yield part.rsplit(".", 1)[0] if "." in part.strip(".") else part
