"""Recoveries: the first later call of the same sort on the same target that succeeds. No teacher is needed.

The target is the file that the call names, or the program of a shell line with its subcommand (`git push`). Tools of
one sort stand in for each other: a file that could not be edited is recovered by writing it. A call without a target
recovers when a later call of the tool keeps at least one of its arguments, or when the model calls the tool again at
once and that works (a wrong city, a missing argument: nothing need be the same). A program whose name was misspelt
recovers when the right one runs. A recovery proves that a hint was
true; it may use what the model learnt in between, so it is a candidate and not an oracle.
"""

from __future__ import annotations

from postgrad.core.message import ToolCall, ToolResult
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import normal_call
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.rules import has_failed
from postgrad.signals.shell.commands import command_of
from postgrad.signals.shell.misspelt import meant


def find_recovery(history: History | Trace, failed_step: Step, failed: ToolCall) -> int | None:
    """Index of the first step after `failed_step` with a successful call that does what `failed` meant to do."""
    history = history if isinstance(history, History) else History(history)
    wanted = Evidence(failed, ToolResult(failed.id, ""))
    following = history.following(failed_step)
    for step, evidence in history.alike(wanted, after=failed_step.index):
        again = following is not None and step.index == following.index and _is_another_try(evidence, wanted)
        if (again or _does_the_same(evidence, wanted)) and history.succeeded(evidence):
            return step.index
    later = history.answered(after=failed_step.index) if _meant(wanted) else ()
    right = (step.index for step, other in later if _is_respelt(other, wanted) and history.succeeded(other))
    return next(right, None)


def recovering_call(step: Step, failed: ToolCall) -> ToolCall | None:
    """The call of `step` that recovers `failed`, if there is one."""
    results = {result.call_id: result for result in step.results if result.status == "ok"}
    answered = [(call, results[call.id]) for call in step.action.tool_calls if call.id in results]
    for does in (_does_the_same, _is_respelt, _is_another_try):
        for call, result in answered:
            evidence = Evidence(call, result, tools=step.request.tools)
            if does(evidence, Evidence(failed, result)) and not has_failed(evidence):
                return call
    return None


def _is_respelt(one: Evidence, other: Evidence) -> bool:
    """The shell line with the right name in the place of a misspelt one, its subcommand or file the same, if any."""
    if one.target is None or other.target is None or one.kind != "shell":
        return False
    program, _, rest = one.target.partition(" ")
    wanted = other.target.partition(" ")[2]
    return program in _meant(other) and (rest == wanted or not rest or not wanted)


def _meant(evidence: Evidence) -> tuple[str, ...]:
    """The programs that a misspelt one of the line, which decides it, may stand for."""
    return meant((evidence.target or "").partition(" ")[0]) if evidence.kind == "shell" else ()


def _is_another_try(one: Evidence, other: Evidence) -> bool:
    """The same tool, which works on nothing that can be named; a shell line is told by its program."""
    names = one.call.name == other.call.name and command_of(one.call) is None
    return names and one.target is None and other.target is None


def _does_the_same(one: Evidence, other: Evidence) -> bool:
    if one.call.name != other.call.name and (one.kind != other.kind or one.kind == "other"):
        return False
    if one.target is not None or other.target is not None:
        return one.target == other.target and one.kind == other.kind
    if command_of(one.call) is not None or not other.call.arguments:
        return False
    return bool(_plain_arguments(one.call) & _plain_arguments(other.call))


def _plain_arguments(call: ToolCall) -> set[tuple[str, object]]:
    """Named values that can be compared by themselves."""
    named = normal_call(call)[1].items()
    return {(name, value) for name, value in named if isinstance(value, str | int | float | bool)}
