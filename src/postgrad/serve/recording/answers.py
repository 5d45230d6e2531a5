"""A streamed answer as the object that the same call gives without streaming: what is written of it.

The folds are those with which logs are read (`traces.formats.api_log.streams`). Folding keeps what an answer says and
drops how it was cut into pieces; only then can a secret be found that was split over two events. The arguments of a
call that was cut stay the text that they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from postgrad.serve.recording.upstreams import Api
from postgrad.traces.formats.api_log import streams
from postgrad.traces.formats.openai_chat.stream import chunks_of, fold

Object = dict[str, Any]


def fold_chat(text: str) -> Object:
    """Chunks of chat completions."""
    return {"object": "chat.completion", **fold(chunks_of(text))}


def fold_messages(text: str) -> Object:
    """Events of Anthropic's Messages API."""
    message = streams.anthropic(chunks_of(text))
    return message | ({"content": [_with_input(block) for block in message["content"]]} if "content" in message else {})


def _with_input(block: Object) -> Object:
    """A block with its arguments read, as a plain answer has them; what was cut, or is no JSON, stays a text."""
    raw = block.get("input")
    if not isinstance(raw, str):
        return block
    try:
        return {**block, "input": json.loads(raw) if raw else {}}
    except (ValueError, RecursionError):
        return block


def fold_responses(text: str) -> Object:
    """Events of OpenAI's Responses API."""
    return streams.responses(chunks_of(text))


def has_ended(text: str) -> bool:
    """Whether a stream has said that it is at its end. Some clients close the connection at this word."""
    last = text.rstrip().rpartition("\n\n")[2].rpartition("\r\n\r\n")[2]
    ends = ("[DONE]", '"message_stop"', '"response.completed"', '"response.incomplete"', '"response.failed"')
    return any(end in last for end in ends)


FOLDS: Mapping[Api, Callable[[str], Object]] = {
    "openai_chat": fold_chat,
    "openai_responses": fold_responses,
    "anthropic_messages": fold_messages,
}
"""How each API's stream is folded."""
