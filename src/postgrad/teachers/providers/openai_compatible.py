"""The OpenAI chat-completions API: OpenAI, OpenRouter, vLLM, SGLang, llama.cpp, Ollama's /v1 and many more.

An address without a path gets /v1, as every one of these has it. Not covered: the Responses API, images.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import MissingDependency
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.provider import Body, ModelAt, Reply, Send, Usage, check_address, key_of, usage_of
from postgrad.teachers.providers.replies import read_message, read_tokens
from postgrad.teachers.providers.sdk import Route, http_client, post
from postgrad.teachers.providers.streams import first_choice, joined_completion
from postgrad.teachers.providers.wire import CHAT, Form, ToolNames, sendable, wire_messages, wire_tools

ROUTE = Route("/chat/completions", joined_completion)


@dataclass(frozen=True)
class OpenAICompatible(ModelAt):
    """A `Provider`; `base_url` usually ends in ``/v1``."""

    kind: str = "HTTP endpoint"
    form: ClassVar[Form] = CHAT
    prompt_cache: ClassVar[RuleName] = "openai"  # the strictest of those that speak its API, until bills say more

    @property
    def address(self) -> str:
        """The base address with its /v1."""
        plain = check_address(self.base_url)
        return plain if urlsplit(plain).path else f"{plain}/v1"

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI itself."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "openai.com" or host.endswith(".openai.com")

    def body(self, ask: Ask, sampling: Sampling, *, shared: int | None = None) -> Body:
        """The request. Prompt caches of this API need no marks."""
        names = ToolNames(tool.name for tool in ask.tools)
        limit = "max_completion_tokens" if self.is_openai else "max_tokens"
        body: Body = {
            "model": self.model,
            "messages": wire_messages(ask, names),
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            limit: sampling.max_new_tokens,
        }
        if sampling.top_logprobs:
            body.update(logprobs=True, top_logprobs=sampling.top_logprobs)
        if ask.tools:
            body["tools"] = wire_tools(ask.tools, names)
        if self.stream:
            body.update(stream=True, stream_options={"include_usage": True})
        return {key: sendable(value) for key, value in {**body, **self.extra}.items() if value is not None}

    def read(self, raw: object, ask: Ask) -> Reply:
        """Read a chat completion; of several answers the one of index 0."""
        choice = first_choice(raw.get("choices") if isinstance(raw, dict) else None)
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(raw, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
            raise CallFailed("invalid_reply", f"something else than a completion: {str(raw)[:200]}")
        if choice.get("finish_reason") == "error" or choice.get("error"):  # a router's word that its provider failed
            raise CallFailed("invalid_reply", f"an error in place of an answer: {str(choice.get('error'))[:200]}")
        logprobs = choice.get("logprobs")
        return Reply(
            read_message(message, ToolNames(tool.name for tool in ask.tools)),
            str(raw.get("model") or ""),
            str(choice.get("finish_reason") or "stop"),
            _usage(raw.get("usage")),
            read_tokens(logprobs.get("content") if isinstance(logprobs, dict) else None),
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        """Open the official SDK with its retries off."""
        try:
            import openai
        except ImportError:
            raise MissingDependency("openai", extra="teachers") from None
        # An organisation and a project of the environment are OpenAI's business only.
        drop = () if self.is_openai else ("openai-organization", "openai-project")
        key = key_of(self.key_variable)
        http = http_client(openai, self.address, own={"authorization": f"Bearer {key}"}, drop=drop)
        client = openai.AsyncOpenAI(api_key=key, base_url=self.address, max_retries=0, http_client=http)

        async def send(body: Body, request: str) -> object:
            return await post(openai, client, ROUTE, body, request=request)

        async with client:
            yield send


def _usage(raw: object) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    details = raw.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = raw.get("prompt_cache_hit_tokens") if cached is None else cached
    return usage_of(raw.get("prompt_tokens"), raw.get("completion_tokens"), cached=cached)
