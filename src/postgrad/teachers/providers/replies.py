"""Messages of responses in the form of the OpenAI chat-completions API: what an endpoint said, as blocks.

Servers differ in where they put what a model said: thoughts in a field of their own (`reasoning_content`, `reasoning`,
`thinking`) or in the text as `<think>...</think>`; calls in `tool_calls`, or one in the old `function_call`; arguments
as a string or as the object; text in one piece or in parts. Thoughts become a `Reasoning` block: they are neither
compared nor learnt as words. A thought that was cut off has no words behind it. Not covered: images and sound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from postgrad.core.actor import TokenChoice
from postgrad.core.canonical import plain_json
from postgrad.core.message import Block, Message, Reasoning, Text, ToolCall
from postgrad.teachers.providers.wire import ToolNames

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
# A model thinks first: a tag further inside is something that it writes about. Templates that open the tag themselves
# leave only its end, which then stands at the border of a line.
_THOUGHT = re.compile(r"\s*<(think|thinking)>(?P<said>.*?)(?:</\1>|\Z)", re.DOTALL)
_ENDED = re.compile(r"(?P<said>.*?)(?:^[ \t]*</think>|</think>[ \t]*(?:\n|\Z))", re.DOTALL | re.MULTILINE)


def read_message(raw: dict[str, Any], names: ToolNames) -> Message:
    """A response's message. Argument strings are kept byte for byte, broken ones with their parse error."""
    thought, text = split_thought(_said(raw.get("content")))
    given = next((raw[key] for key in _THOUGHTS if isinstance(raw.get(key), str) and raw[key]), "")
    thoughts = "\n\n".join(one for one in (given, thought) if one)
    blocks: list[Block] = [Reasoning(thoughts)] if thoughts else []
    if text:
        blocks.append(Text(text))
    for place, (function, provider_id) in enumerate(_functions(raw)):
        arguments = function.get("arguments")
        arguments = arguments if isinstance(arguments, str) else plain_json({} if arguments is None else arguments)
        name = names.original(str(function.get("name") or ""))
        blocks.append(ToolCall.from_raw(id=f"call_{place}", name=name, raw=arguments, provider_id=provider_id))
    return Message("assistant", tuple(blocks))


def split_thought(text: str) -> tuple[str, str]:
    """The thought that `text` begins with, "" for none, and what is said after it."""
    found = _THOUGHT.match(text)
    if found is None and "<think>" not in text:
        found = _ENDED.match(text)
    if found is None:
        return "", text
    return found["said"].strip(), text[found.end() :].lstrip()


def _functions(raw: dict[str, Any]) -> list[tuple[dict[str, Any], str | None]]:
    """Every function that is called, with the provider's id; the old form names one, and has no ids."""
    calls = raw.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((function, None if call.get("id") is None else str(call["id"])))
    old = raw.get("function_call")
    return [(old, None)] if not found and isinstance(old, dict) else found


def _said(content: Any) -> str:
    """Text, also where it comes in parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def read_tokens(content: object) -> tuple[TokenChoice, ...]:
    """Log-probabilities of a response, token by token; () where there are none, or one of them is no number."""
    entries = content if isinstance(content, list) else []
    made = [_token(entry) for entry in entries]
    return tuple(token for token in made if token is not None) if all(made) else ()


def _token(entry: object) -> TokenChoice | None:
    if not isinstance(entry, dict) or not _is_logprob(entry.get("logprob")):
        return None
    top = entry.get("top_logprobs")
    entries: Sequence[object] = top if isinstance(top, list) else []
    likeliest = [one for one in entries if isinstance(one, dict) and _is_logprob(one.get("logprob"))]
    pairs = tuple((str(one.get("token")), float(one["logprob"])) for one in likeliest)
    return TokenChoice(str(entry.get("token")), float(entry["logprob"]), pairs)


def _is_logprob(value: object) -> bool:
    return isinstance(value, int | float) and -math.inf < value <= 0
