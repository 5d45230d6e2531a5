"""Recoveries: the first later call of the same tool on the same target that succeeds. No teacher is needed.

The target is the file that the call names, or the program of a shell line with its subcommand (`git push`). A call
with neither recovers when a later call of the tool keeps at least one of its arguments. A recovery proves that a hint
was true; it may use what the model learnt in between, so it is a candidate and not an oracle.
"""

from __future__ import annotations

from postgrad.core.message import ToolCall
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import normal_call
from postgrad.signals.commands import command_of, target_of
from postgrad.signals.rules import clean, failed_in_words, has_failed


def find_recovery(trace: Trace, failed_step: Step, failed: ToolCall) -> int | None:
    """Index of the first step after `failed_step` with a successful call that does what `failed` meant to do."""
    for step in trace.steps:
        if step.index > failed_step.index and recovering_call(step, failed) is not None:
            return step.index
    return None


def recovering_call(step: Step, failed: ToolCall) -> ToolCall | None:
    """The call of `step` that recovers `failed`, if there is one."""
    results = {result.call_id: result for result in step.results}
    for call in step.action.tool_calls:
        result = results.get(call.id)
        if result is None or result.status != "ok" or has_failed(call, result):
            continue
        line = command_of(call)
        if line is not None and failed_in_words(line, clean(result.text)) is not None:
            continue
        if call.name == failed.name and _same_target(call, failed):
            return call
    return None


def _same_target(one: ToolCall, other: ToolCall) -> bool:
    ours, theirs = target_of(one), target_of(other)
    if ours is not None or theirs is not None:
        return ours == theirs
    if command_of(one) is not None or not other.arguments:
        return False
    return bool(_plain_arguments(one) & _plain_arguments(other))


def _plain_arguments(call: ToolCall) -> set[tuple[str, object]]:
    """Named values that can be compared by themselves."""
    named = normal_call(call)[1].items()
    return {(name, value) for name, value in named if isinstance(value, str | int | float | bool)}
