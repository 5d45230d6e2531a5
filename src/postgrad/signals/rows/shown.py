"""A message as it is shown to a model that judges it or writes about it: text, calls, results."""

from __future__ import annotations

from postgrad.core.canonical import canonical_json
from postgrad.core.message import Message

LONGEST = 6000
"""Characters of a message that are shown."""


def shown(message: Message) -> str:
    """`message` as plain text, cut."""
    calls = [
        f"{call.name}({call.arguments_raw if call.arguments is None else canonical_json(call.arguments)})"
        for call in message.tool_calls
    ]
    results = [result.text for result in message.tool_results]
    return "\n".join(part for part in (message.text, *calls, *results) if part)[:LONGEST]
