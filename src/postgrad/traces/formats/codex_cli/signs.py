"""`event_msg` rows that say more than the response items: stops, failures that no output tells of, spawns, modes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from postgrad.core.message import ToolResult
from postgrad.core.trace import Event, Trace
from postgrad.traces.formats.codex_cli.rows import OUTPUT_ITEMS, Row
from postgrad.traces.formats.shapes.plain import first, mapping, string, text, written

_ERRORS = frozenset({"error", "stream_error"})
_MODES = frozenset({"entered_review_mode", "exited_review_mode", "thread_settings_applied"})
_SPAWNS = {"collab_agent_spawn_end": "new_thread_id", "sub_agent_activity": "agent_thread_id"}
_APPROVALS = frozenset({"exec_approval_request", "apply_patch_approval_request", "guardian_assessment"})
_ENDS = frozenset({"patch_apply_end", "mcp_tool_call_end", "exec_command_end", "dynamic_tool_call_response"})


@dataclass(frozen=True)
class Sign:
    """An event before its place among the steps is known."""

    kind: str
    record: int
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def at(self, before_step: int) -> Event:
        """The event, before the step of that index."""
        return Event(self.kind, before_step, self.record, self.text, dict(self.data))


class Flags:
    """What `..._end` rows say about the success of calls, by the provider's call id."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._answered: set[str] = set()
        self._failed: dict[str, bool] = {}
        for row in rows:
            call = text(row.payload.get("call_id")) or ""
            if row.type == "response_item" and row.item in OUTPUT_ITEMS:
                self._answered.add(call)
            elif row.item in _ENDS and (failed := _failed(row)) is not None:
                self._failed[call] = failed

    def flagged(self, result: ToolResult) -> ToolResult:
        """`result` with the flag that a row sets beside it; a failure in its own text stands."""
        failed = self._failed.get(result.call_id)
        if failed is None or result.is_error:
            return result
        return msgspec.structs.replace(result, is_error=failed, status="error" if failed else result.status)

    def alone(self, row: Row) -> bool:
        """Whether a failure is told by this row and by no output of its call."""
        return bool(_failed(row)) and text(row.payload.get("call_id")) not in self._answered


def event_of(row: Row, flags: Flags) -> Sign | None:
    """The event that a row tells, None for what is only there for the screen."""
    payload, item = row.payload, row.item
    if item == "turn_aborted":
        return Sign("interrupt", row.number, data={"reason": payload.get("reason")})
    if item in _ERRORS:
        return Sign("api_error", row.number, _message(payload))
    if item == "task_complete" and isinstance(payload.get("error"), dict):
        return Sign("api_error", row.number, _message(payload))
    if item in _MODES:
        return Sign("mode_change", row.number, item)
    if item in _SPAWNS:
        return Sign("spawn", row.number, data={"agent": payload.get(_SPAWNS[item]), "call": payload.get("call_id")})
    if item in _APPROVALS:
        return Sign("approval", row.number, written(first(payload, "reason", "rationale", "decision", "status")))
    if item in _ENDS and flags.alone(row):
        return Sign("tool_failure", row.number, _output(payload), {"call": payload.get("call_id")})
    if item == "undo_completed":
        return Sign("undo", row.number, string(payload.get("message")))
    return None


def in_place(trace: Trace, typed: Iterable[int]) -> Trace:
    """The events in the order of the file, stops behind the call that they killed.

    Old versions write a stop before the call and its result, so it is looked for up to the user's next words.
    """
    killed = {
        trace.result_records[result.call_id]: (step.index, result.call_id)
        for step in trace.steps
        for result in step.results
        if result.status in ("interrupted", "rejected")
    }
    events = []
    for event in sorted(trace.events, key=lambda event: event.record):
        if event.kind == "interrupt":
            until = min((number for number in typed if number > event.record), default=None)
            later = [record for record in killed if record > event.record and (until is None or record < until)]
            if later:
                step, call = killed[min(later)]
                event = Event(event.kind, step + 1, event.record, event.text, {**event.data, "call": call})
        events.append(event)
    return msgspec.structs.replace(trace, events=tuple(events))


def _failed(row: Row) -> bool | None:
    """Whether the call failed, None when the row does not say."""
    payload = row.payload
    if isinstance(payload.get("success"), bool):
        return not payload["success"]
    if isinstance(code := payload.get("exit_code"), int):
        return code != 0
    result = mapping(payload.get("result"))
    if "Err" in result:
        return True
    if "Ok" in result:
        return mapping(result["Ok"]).get("isError") is True
    return None


def _output(payload: Mapping[str, Any]) -> str:
    result = mapping(payload.get("result"))
    told = [string(payload.get(name)) for name in ("stdout", "stderr", "aggregated_output")]
    return "".join(told) or written(first(result, "Err", "Ok"))


def _message(payload: Mapping[str, Any]) -> str:
    error = payload.get("error")
    return string(payload.get("message")) or string(mapping(error).get("message")) or written(error)
