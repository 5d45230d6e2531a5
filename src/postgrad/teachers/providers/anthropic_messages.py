"""The Anthropic Messages API, with breakpoints for its prompt cache.

Where requests of a trace begin alike, the end of the system text (or of the tools), the end of what the last request
had and the end of this one are marked: the provider finds there what it kept, and keeps the prompt up to there. Writing
into the cache costs more than plain input, so a request that begins like no other is not marked. Not covered:
images, server tools, thinking budgets (give them as `extra`), the Batches API.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from postgrad.core.actor import Ask, Sampling
from postgrad.core.canonical import plain_json
from postgrad.core.errors import MissingDependency
from postgrad.core.message import Block, Message, Reasoning, Text, ToolCall
from postgrad.teachers.providers.anthropic_wire import (
    ANTHROPIC,
    anthropic_messages,
    anthropic_tools,
    beginning,
    mark_breakpoints,
)
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.provider import Body, ModelAt, Reply, Send, Usage, count_of, key_of, usage_of
from postgrad.teachers.providers.sdk import Route, http_client, post
from postgrad.teachers.providers.streams import joined_message
from postgrad.teachers.providers.wire import Form, ToolNames, sendable

PUBLIC = "https://api.anthropic.com"
ROUTE = Route("/v1/messages", joined_message)
_VERSION = "2023-06-01"  # of the API
_STORED = "cache_creation_input_tokens"


@dataclass(frozen=True)
class AnthropicMessages(ModelAt):
    """A `Provider`; `base_url` is without /v1 (one at its end is taken off)."""

    base_url: str = PUBLIC
    kind: str = "Anthropic endpoint"
    prompt_cache: ClassVar[RuleName] = "anthropic"  # up to a mark
    form: ClassVar[Form] = ANTHROPIC

    def body(self, ask: Ask, sampling: Sampling, *, shared: int | None = None) -> Body:
        """The request. The API takes no seed, and no temperature above 1."""
        names = ToolNames(tool.name for tool in ask.tools)
        system, messages = anthropic_messages(ask, names)
        body: Body = {
            "model": self.model,
            "max_tokens": sampling.max_new_tokens,
            "temperature": min(1.0, sampling.temperature),
            "messages": messages,
        }
        if ask.tools:
            body["tools"] = anthropic_tools(ask.tools, names)
        if self.stream:
            body["stream"] = True
        if system:
            body["system"] = [{"type": "text", "text": system}]
        if shared is not None:
            mark_breakpoints(body, kept=anthropic_messages(beginning(ask, shared), names)[1], hinted=bool(ask.hint))
        return {key: sendable(value) for key, value in {**body, **self.extra}.items() if value is not None}

    def read(self, raw: object, ask: Ask) -> Reply:
        """Read a message."""
        content = raw.get("content") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(content, list) or raw.get("type", "message") != "message":
            raise CallFailed("invalid_reply", f"something else than a message: {str(raw)[:200]}")
        blocks = _blocks(content, ToolNames(tool.name for tool in ask.tools))
        stop = str(raw.get("stop_reason") or "end_turn")
        return Reply(Message("assistant", tuple(blocks)), str(raw.get("model") or ""), stop, _usage(raw.get("usage")))

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        """Open the official SDK with its retries and its tracing off."""
        try:
            import anthropic
        except ImportError:
            raise MissingDependency("anthropic", extra="teachers") from None
        key = key_of(self.key_variable)
        own = {"x-api-key": key, "anthropic-version": _VERSION}
        http = http_client(anthropic, self.address, own=own, drop=("authorization",))
        client = anthropic.AsyncAnthropic(
            api_key=key, base_url=self.address, max_retries=0, open_telemetry=False, http_client=http
        )

        async def send(body: Body, request: str) -> object:
            return await post(anthropic, client, ROUTE, body, request=request)

        async with client:
            yield send


def _blocks(content: Sequence[Any], names: ToolNames) -> list[Block]:
    """Text, thinking and calls, in order; what else there may be is not an action."""
    blocks: list[Block] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and part.get("text"):
            blocks.append(Text(str(part["text"])))
        elif kind == "thinking":
            blocks.append(Reasoning(str(part.get("thinking") or ""), signature=_word(part.get("signature"))))
        elif kind == "redacted_thinking":
            blocks.append(Reasoning(encrypted=_word(part.get("data"))))
        elif kind == "tool_use":
            name = names.original(str(part.get("name") or ""))
            given = part.get("input")
            raw = given if isinstance(given, str) else plain_json({} if given is None else given)
            place = sum(isinstance(block, ToolCall) for block in blocks)
            blocks.append(ToolCall.from_raw(id=f"call_{place}", name=name, raw=raw, provider_id=_word(part.get("id"))))
    return blocks


def _word(value: object) -> str | None:
    """As text: what is of another type could be kept, and not be read again, so that it would be paid for twice."""
    return None if value is None else str(value)


def _usage(raw: object) -> Usage | None:
    """`input_tokens` are those that the cache had nothing to do with."""
    if not isinstance(raw, dict):
        return None
    plain, found, stored = raw.get("input_tokens"), raw.get("cache_read_input_tokens"), raw.get(_STORED)
    cached, written = count_of(found) or 0, count_of(stored) or 0
    counted = count_of(plain)
    read = None if counted is None else counted + cached + written
    return usage_of(read, raw.get("output_tokens"), cached=cached, stored=written)
