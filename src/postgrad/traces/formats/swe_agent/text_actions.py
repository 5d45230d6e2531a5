"""Actions that a model writes into its text: a fenced block, a tag, or a function in XML.

The action becomes a call whose `arguments_raw` is the very piece of text, so that text and raw arguments, put one
behind the other, are the response byte for byte; `arguments` is what it means.
"""

from __future__ import annotations

import re

from postgrad.core.message import Block, Text, ToolCall

SHELL = "bash"
_FENCE = re.compile(r"^```(?P<kind>[\w-]*)[ \t]*\n(?P<body>.*?)\n?^```[ \t]*$", re.DOTALL | re.MULTILINE)
_TAG = re.compile(r"<command>\n?(?P<body>.*?)\n?</command>", re.DOTALL)
_FUNCTION = re.compile(r"<function=(?P<name>[\w.-]+)>(?P<body>.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(?P<name>[\w.-]+)>\n?(?P<value>.*?)\n?</parameter>", re.DOTALL)


def with_action(response: str, action: str, *, id: str) -> list[Block]:
    """The response with the piece that stands for `action` (as the application parsed it) taken out as a call.

    Where the text holds no such piece, the action follows the text: it was said in a way that is not known here.
    """
    wanted = action.strip()
    for match in _FUNCTION.finditer(response):
        given = {found["name"]: found["value"] for found in _PARAMETER.finditer(match["body"])}
        return _cut(response, match.start(), match.end(), ToolCall(id, match["name"], match[0], given))
    found = [match for pattern in (_FENCE, _TAG) for match in pattern.finditer(response)]
    for match in reversed(found):
        if match["body"].strip() == wanted:
            return _cut(response, match.start(), match.end(), _shell(id, match[0], action))
    at = response.rfind(wanted)
    if at >= 0 and wanted:
        return _cut(response, at, at + len(wanted), _shell(id, wanted, action))
    return [*_text(response), _shell(id, action, action)]


def fenced_action(response: str, kinds: frozenset[str], *, id: str) -> list[Block]:
    """The response with its fenced command taken out as a call; more or fewer than one fence of these kinds: text."""
    found = [match for match in _FENCE.finditer(response) if match["kind"] in kinds]
    if len(found) != 1:
        return _text(response)
    return _cut(response, found[0].start(), found[0].end(), _shell(id, found[0][0], found[0]["body"]))


def _shell(id: str, raw: str, command: str) -> ToolCall:
    return ToolCall(id, SHELL, raw, {"command": command.strip("\n")})


def _cut(response: str, start: int, stop: int, call: ToolCall) -> list[Block]:
    return [*_text(response[:start]), call, *_text(response[stop:])]


def _text(said: str) -> list[Block]:
    return [Text(said)] if said else []
