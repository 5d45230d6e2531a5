"""`History`: a trace with every call judged once, and the order in which its steps follow each other.

Rules look back (which edit since the last pass?) and ahead (did a later call work?), so what a call came to is worked
out once a trace and not once a question.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from postgrad.core.message import ToolCall
from postgrad.core.trace import Event, Step, Trace
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.rules import has_failed

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
        steps = self.trace.steps
        stop = len(steps) if before is None else self._positions.get(before, len(steps))
        for step in islice(steps, self._positions.get(after, -1) + 1, stop):
            for _, evidence in self.of(step):
                if evidence is not None:
                    yield step, evidence

    def alike(self, evidence: Evidence, *, after: int) -> Iterator[tuple[Step, Evidence]]:
        """Answered calls of the same sort on the same target (of the same tool, where it has none), later than that."""
        found = self._alike.get(_sort(evidence), [])
        first = bisect_right(found, self._positions.get(after, -1), key=lambda entry: entry[0])
        return ((self.trace.steps[at], other) for at, other in islice(found, first, None))

    @cached_property
    def _alike(self) -> dict[tuple[str, ...], list[tuple[int, Evidence]]]:
        found: defaultdict[tuple[str, ...], list[tuple[int, Evidence]]] = defaultdict(list)
        for at, step in enumerate(self.trace.steps):
            for _, evidence in self.of(step):
                if evidence is not None:
                    found[_sort(evidence)].append((at, evidence))
        return found

    def following(self, step: Step) -> Step | None:
        """The step that goes on from `step`, on its own branch."""
        steps = self.trace.steps
        at = self._positions[step.index] + 1
        if at < len(steps) and steps[at].parent in (None, step.index):
            return steps[at]
        return next((other for other in steps[at:] if other.parent == step.index), None)

    def back_from(self, step: Step) -> Iterator[Step]:
        """The step and those before it, the latest first."""
        steps = self.trace.steps
        return (steps[at] for at in range(self._positions[step.index], -1, -1))

    def events_after(self, step: Step) -> list[Event]:
        """Events between `step` and the next model step."""
        return self._events[step.index + 1]


def _sort(evidence: Evidence) -> tuple[str, ...]:
    """Calls of one sort can stand in for each other; tools that nobody knows only for themselves."""
    sort = evidence.call.name if evidence.kind == "other" else f"a {evidence.kind}"
    return (sort,) if evidence.target is None else (sort, evidence.target)


def _names(trace: Trace) -> Iterator[str]:
    """Files and folders in the arguments of calls, without suffix, in small letters."""
    for step in trace.steps:
        for call in step.action.tool_calls:
            for found in _PATHS.finditer(call.arguments_raw[:_PATH_TEXT]):
                for part in re.split(r"[/\\]", found[0].lower()):
                    yield part.rsplit(".", 1)[0] if "." in part.strip(".") else part
