"""Attempts at one thing: which steps stood before the same context, and how well each of them came out."""

from __future__ import annotations

import msgspec

from postgrad.core.canonical import content_id
from postgrad.core.message import Message, Tool
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import normal_form


def context_key(trace: Trace, step: Step) -> str:
    """Equal for equal contexts: messages by their words and calls (not by the ids of calls), and the tools offered."""
    return content_id([[_said(trace.messages[key]) for key in step.request.messages], _tools(step.request.tools)])


def step_outcome(step: Step, end: float | None) -> float | None:
    """How a step came out, 0 to 1: what its own verifier said, else `end`, the outcome of the whole run."""
    scores = [said.value for said in step.feedback if said.kind == "verifier" and said.value is not None]
    return min(1.0, max(0.0, min(scores))) if scores else end


def group_of(trace: Trace) -> str:
    """What a trace is an attempt at: its task, else its first context."""
    if trace.task_id is not None:
        return f"task {trace.task_id}"
    return f"context {context_key(trace, trace.steps[0])}" if trace.steps else f"trace {trace.id}"


def _said(message: Message) -> str:
    results = [result.text for result in message.tool_results]
    return content_id([message.role, normal_form(message), message.text, results])


def _tools(tools: tuple[Tool, ...]) -> str:
    return content_id([msgspec.to_builtins(tool) for tool in tools])
