"""Grades an answer to a function-calling task: 1 for the right calls, else 0 and the kind of error.

    malformed_call       the arguments do not parse to an object
    unknown_tool         no tool of that name is offered
    wrong_tool           another offered tool is right
    missing_argument     a required argument, or one that the request states
    unexpected_argument  one that the tool does not have
    wrong_type           not the type of the schema
    wrong_value          the right type with another value than the request says
    wrong_count          more or fewer calls than expected
    no_call              text where a call is expected
    unwanted_call        a call where the right answer is text
    no_answer            neither a call nor text

All or nothing: a half-right call does the wrong thing. Calls of one message may come in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postgrad.core.message import Message, Tool, ToolCall
from postgrad.core.task import Grade, Task
from postgrad.envs.function_calling.matching import Problem, match_call

VERSION = "2"


def grade(task: Task, message: Message) -> Grade:
    """Grade the calls of `message`; of its text it only matters whether there is any."""
    problem = _problem(task, message.tool_calls)
    if problem is None and not message.tool_calls and not message.text.strip():
        problem = Problem("no_answer", "no tool fits, and the answer does not say so")
    return Grade(1.0) if problem is None else Grade(0.0, problem.kind, problem.detail)


def _problem(task: Task, calls: Sequence[ToolCall]) -> Problem | None:
    offered = {tool.name: tool for tool in task.tools}
    broken = next((p for call in calls if (p := _unreadable(call, offered))), None)
    if not task.expected:
        return broken or (Problem("unwanted_call", f"no tool fits, but {calls[0].name} was called") if calls else None)
    if not calls:
        return Problem("no_call", f"expected a call of {' and '.join(_names(task))}, got text")
    if broken:
        return broken
    if len(calls) != len(task.expected):
        return Problem("wrong_count", f"expected {len(task.expected)} call(s), got {len(calls)}")
    return _match_all(task, offered, list(calls))


def _unreadable(call: ToolCall, offered: dict[str, Tool]) -> Problem | None:
    if call.arguments is None:
        return Problem("malformed_call", f"the arguments of {call.name or 'the call'} are broken: {call.parse_error}")
    if call.name not in offered:
        return Problem("unknown_tool", f"there is no tool {call.name!r}; offered: {', '.join(offered)}")
    return None


def _match_all(task: Task, offered: dict[str, Tool], calls: list[ToolCall]) -> Problem | None:
    """Take for each expected call the first one that matches it, as BFCL does for parallel calls."""
    for expected in task.expected:
        problems = [_match_one(expected, offered, call) for call in calls]
        if None not in problems:
            # the problem of a call to the right function tells more than "another function"
            return next((p for p in problems if p and p.kind != "wrong_tool"), problems[0])
        del calls[problems.index(None)]
    return None


def _match_one(expected: dict[str, Any], offered: dict[str, Tool], call: ToolCall) -> Problem | None:
    ((name, acceptable),) = expected.items()
    if call.name != name:
        return Problem("wrong_tool", f"{call.name} was called where {name} is right")
    assert call.arguments is not None
    return match_call(offered[name].parameters, call.arguments, acceptable)


def _names(task: Task) -> list[str]:
    return [name for expected in task.expected for name in expected]
