"""A hint from a better action that does not give it away: in what the two differ, and never a value of the better one.

It may name a tool, a program or an argument; the values are for the student to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from postgrad.core.message import Message, ToolCall
from postgrad.signals.actions import normal_call, same_action
from postgrad.signals.shell.commands import command_of
from postgrad.signals.shell.programs import programs

_SHORTEST_SECRET = 3  # characters of a value that must not stand in the hint


def difference_hint(worse: Message, better: Message) -> str | None:
    """In what `better` differs from `worse`, None where that cannot be said without giving it away."""
    if same_action(worse, better):
        return None
    hint = _difference(worse.tool_calls, better.tool_calls)
    known = {value for call in worse.tool_calls for value in _values(call.arguments)}
    secrets = {value for call in better.tool_calls for value in _values(call.arguments)} - known
    named = {name for call in better.tool_calls for name in (call.name, *(call.arguments or ()))}
    return None if hint is None or any(secret in hint for secret in secrets - named) else hint


def _difference(worse: tuple[ToolCall, ...], better: tuple[ToolCall, ...]) -> str | None:
    if not better:
        return "Do not call a tool here: answer in words." if worse else None
    wanted = sorted({call.name for call in better})
    if not worse:
        return f"Do not answer in words: {_call_of(wanted)}."
    if {call.name for call in worse} != set(wanted):
        return f"Another tool fits better here: {_call_of(wanted)}."
    if len(worse) != len(better):
        return f"The number of calls is not right: {len(better)} {'is' if len(better) == 1 else 'are'} needed here."
    pairs = [(one, other) for one, other in zip(worse, better, strict=True) if normal_call(one) != normal_call(other)]
    return _arguments(*pairs[0]) if pairs else None


def _call_of(names: list[str]) -> str:
    return f"call {names[0]}" if len(names) == 1 else f"call {', '.join(names[:-1])} and {names[-1]}"


def _arguments(worse: ToolCall, better: ToolCall) -> str | None:
    ours, theirs = worse.arguments, better.arguments
    if ours is None:
        return f"Write the arguments of {worse.name} as one valid JSON object."
    if theirs is None:
        return None
    line, wanted = command_of(worse), command_of(better)
    if line is not None and wanted is not None and line != wanted:
        return _command(line, wanted)
    missing, extra = sorted(theirs.keys() - ours.keys()), sorted(ours.keys() - theirs.keys())
    other = sorted(key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key])
    told = [f"give {', '.join(missing)} as well"] if missing else []
    told += [f"leave {', '.join(extra)} out"] if extra else []
    told += [f"work out {', '.join(other)} anew"] if other else []
    return f"The arguments of {worse.name} are not right: {'; '.join(told)}." if told else None


def _command(line: str, wanted: str) -> str:
    ours, theirs = programs(line), programs(wanted)
    if ours == theirs:
        return f"The command would not do: keep {' and '.join(theirs) or 'it'}, but mind its options and operands."
    return f"The command would not do: another one is needed here, with {', then '.join(theirs)}."


def _values(value: Any) -> Iterator[str]:
    """The texts and numbers in a value that are long enough to be an answer."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value).strip()
        if len(text) >= _SHORTEST_SECRET:
            yield text
