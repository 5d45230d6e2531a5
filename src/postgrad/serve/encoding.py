"""Events as chat-completions JSON: one folded response, or the chunks of a stream that fold to the same.

What clients rely on: the role comes in the first delta; a tool call's id, type and name come once, in the first
delta of its index; the finish reason comes in an empty delta; usage, when asked for, in a last chunk whose
`choices` is an empty list.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from postgrad.core.message import ToolCall
from postgrad.serve.engine import Event, Finish, TextDelta, ToolCallDone


@dataclass
class Answer:
    """One answer as it grows. `named`: the request's `tool_choice` named a function."""

    model: str
    named: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    finish: Finish | None = None

    def add(self, event: Event) -> list[dict[str, Any]]:
        """Fold an event in; returns the chunks that tell a stream of it."""
        match event:
            case TextDelta(text):
                self.text += text
                return [self._chunk({"content": text})]
            case ToolCallDone(call):
                self.calls.append(call)
                return [self._chunk({"tool_calls": [_call(call, index=len(self.calls) - 1)]})]
            case Finish():
                self.finish = event
                return [self._chunk({}, finished=True)]
        return []

    def opening(self) -> dict[str, Any]:
        """The first chunk of a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def usage_chunk(self) -> dict[str, Any]:
        """The last chunk of a stream that asked for usage."""
        return self._head("chat.completion.chunk") | {"choices": [], "usage": self._usage()}

    def response(self) -> dict[str, Any]:
        """The folded response; before the end its finish reason is null."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None, "refusal": None}
        if self.calls:
            message["tool_calls"] = [_call(call) for call in self.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason()}
        response = self._head("chat.completion") | {"choices": [choice]}
        return response | ({"usage": self._usage()} if self.finish else {}) | self._extra()

    def _finish_reason(self) -> str | None:
        if self.finish is None:
            return None
        # OpenAI says "stop" where the request itself named the function.
        called = bool(self.calls) and not self.named
        return "tool_calls" if called and self.finish.reason == "stop" else self.finish.reason

    def _chunk(self, delta: dict[str, Any], *, finished: bool = False) -> dict[str, Any]:
        reason = self._finish_reason() if finished else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        extra = self._extra() if finished else {}
        return self._head("chat.completion.chunk") | {"choices": [choice]} | extra

    def _extra(self) -> dict[str, Any]:
        """A call that was cut off stands beside the answer: it is no content, and it must not be lost."""
        unfinished = self.finish.unfinished if self.finish else ""
        return {"postgrad": {"unfinished": unfinished}} if unfinished else {}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def _usage(self) -> dict[str, int]:
        assert self.finish is not None, "usage is known at the end"
        prompt, completion = self.finish.prompt_tokens, self.finish.completion_tokens
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _call(call: ToolCall, *, index: int | None = None) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments_raw}
    place = {} if index is None else {"index": index}
    return place | {"id": call.id, "type": "function", "function": function}
