"""Ollama's own API, through its official client.

Ollama cuts a prompt that is longer than its context without a word, so the context is asked for by size: the next
power of two above what the request can need. The client forgets what an answer's headers say, and takes none for a
request; hooks see to both. Answers are free: the machine is the user's own. Not covered: pulling models, images.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import MissingDependency
from postgrad.teachers.providers.failures import CallFailed, of_status
from postgrad.teachers.providers.ollama_wire import OLLAMA, ollama_messages, ollama_tools
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.provider import Body, ModelAt, Reply, Send, is_loopback, key_of, usage_of
from postgrad.teachers.providers.replies import read_message, read_tokens
from postgrad.teachers.providers.sdk import CONNECT, broken, mark_begun
from postgrad.teachers.providers.streams import joined_chat
from postgrad.teachers.providers.wire import Form, ToolNames, sendable

if TYPE_CHECKING:
    import httpx
    from pydantic import ValidationError

LOCAL = "http://127.0.0.1:11434"
_SMALLEST_CONTEXT = 4096
_REQUEST: ContextVar[str] = ContextVar("request")  # of the call that a task makes
_BYTES_A_TOKEN = 2.5  # fewer than any text has on average, so that the context is never too small


@dataclass(frozen=True)
class OllamaNative(ModelAt):
    """A `Provider`; `base_url` is without a path (a /v1 at its end is taken off). `extra` are model options."""

    base_url: str = LOCAL
    kind: str = "Ollama endpoint"
    prompt_cache: ClassVar[RuleName] = "none"  # what it keeps is not told, and free
    form: ClassVar[Form] = OLLAMA

    def body(self, ask: Ask, sampling: Sampling, *, shared: int | None = None) -> Body:
        """The arguments of the client's `chat`."""
        names = ToolNames(tool.name for tool in ask.tools)
        messages, tools = ollama_messages(ask, names), ollama_tools(ask.tools, names)
        size = len(json.dumps([messages, tools]).encode())
        options = {
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            "num_predict": sampling.max_new_tokens,
            "num_ctx": _context(size / _BYTES_A_TOKEN + sampling.max_new_tokens),
            **self.extra,
        }
        options = {key: value for key, value in options.items() if value is not None}
        body: Body = {"model": self.model, "messages": messages, "tools": tools or None, "options": options}
        body["stream"] = self.stream
        if sampling.top_logprobs:
            body.update(logprobs=True, top_logprobs=sampling.top_logprobs)
        return {key: sendable(value) for key, value in body.items() if value is not None}

    def read(self, raw: object, ask: Ask) -> Reply:
        """Read a chat response."""
        message = raw.get("message") if isinstance(raw, dict) else None
        if not isinstance(raw, dict) or not isinstance(message, dict) or raw.get("done") is False:
            raise CallFailed("invalid_reply", f"something else than a chat response: {str(raw)[:200]}")
        return Reply(
            read_message(message, ToolNames(tool.name for tool in ask.tools)),
            str(raw.get("model") or ""),
            str(raw.get("done_reason") or "stop"),
            usage_of(raw.get("prompt_eval_count"), raw.get("eval_count")),
            read_tokens(raw.get("logprobs")),
        )

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Send]:
        """Open the official client."""
        try:
            import httpx
            import ollama
            from pydantic import ValidationError
        except ImportError:
            raise MissingDependency("ollama", extra="teachers") from None
        headers = {"authorization": f"Bearer {key_of(self.key_variable)}"}  # else it adds a key of the environment
        hooks = {"request": [_name], "response": [mark_begun, _refuse_errors]}
        client = ollama.AsyncClient(
            self.address,
            headers=headers,
            event_hooks=hooks,
            follow_redirects=False,
            trust_env=not is_loopback(self.address),
            timeout=httpx.Timeout(None, connect=CONNECT),
        )

        async def send(body: Body, request: str) -> object:
            _REQUEST.set(request)
            for tool in body.get("tools", ()):
                try:
                    ollama.Tool.model_validate(tool)
                except ValidationError as error:
                    raise CallFailed("refused", f"Ollama's client cannot write a tool: {_told(error)}") from error
            asked = {key: value for key, value in body.items() if key != "stream"}  # typed apart in the client
            try:
                if self.stream:
                    parts = [part async for part in await client.chat(**asked, stream=True)]
                    return joined_chat([part.model_dump(mode="json", exclude_none=True) for part in parts])
                response = await client.chat(**asked, stream=False)
            except (httpx.HTTPError, ConnectionError) as error:
                raise broken(error) from error
            except ollama.ResponseError as error:  # it went wrong when the stream had begun
                raise CallFailed("truncated", f"the stream ended in an error: {error}") from error
            except ValidationError as error:
                raise CallFailed("invalid_reply", f"the endpoint gave no chat response: {_told(error)}") from error
            except (ValueError, TypeError, AttributeError) as error:  # no JSON, or not an object
                raise CallFailed("invalid_reply", f"the endpoint gave no chat response: {error}") from error
            return response.model_dump(mode="json", exclude_none=True)

        async with client:
            yield send


async def _name(request: httpx.Request) -> None:
    """The client's `chat` takes no headers of one call, so a hook adds it, in the task of that call."""
    request.headers["idempotency-key"] = _REQUEST.get()


async def _refuse_errors(response: httpx.Response) -> None:
    """The client's own error keeps the text and loses the headers (Retry-After)."""
    if response.status_code >= 300:
        await response.aread()
        raise of_status(response.status_code, response.text, response.headers)


def _context(tokens: float) -> int:
    size = _SMALLEST_CONTEXT
    while size < tokens:
        size *= 2
    return size


def _told(error: ValidationError) -> str:
    """What does not fit, without the addresses of pages about it."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3])
