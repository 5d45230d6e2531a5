"""A teacher behind any endpoint that speaks the OpenAI chat-completions API: hosted models, vLLM, llama.cpp, Ollama.

The official SDK does the retries (429 with its Retry-After, 5xx, broken connections). What still fails then is an
`OutsideFailure`; answers that other asks got are handed over before it is raised, so that a cache can keep them. A
request that the endpoint refuses for itself (too long, filtered) is an abstention with its reason.

Everything is redacted before it leaves: without a `redact` function only a loopback address is accepted.
Not covered: streaming, the Responses API, images.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, MissingDependency, OutsideFailure
from postgrad.teachers.prices import Price
from postgrad.teachers.wire import ToolNames, read_message, sendable, wire_messages, wire_tools

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

Redact = Callable[[Ask], Ask]
Done = Callable[[int, Answer], None]


@dataclass(frozen=True)
class Limits:
    """How hard the endpoint is worked: calls at once, seconds per try, tries after the first."""

    concurrency: int = 8
    timeout: float = 120.0
    max_retries: int = 5


@dataclass(frozen=True)
class OpenAICompatible:
    """An `Actor` over HTTP.

    Attributes:
        name: short name for reports and caches.
        model: model id to ask for; the id that served is in each answer.
        base_url: of the API, usually ending in ``/v1``.
        key_variable: environment variable that holds the key; None sends none.
        redact: applied to every ask before it leaves.
        price: US dollars per million tokens, None if unknown.
        extra: further request parameters; they win over ours, and None takes a parameter out.
    """

    name: str
    model: str
    base_url: str
    key_variable: str | None = None
    redact: Redact | None = None
    price: Price | None = None
    limits: Limits = Limits()
    extra: dict[str, Any] = field(default_factory=dict)
    kind: str = "HTTP endpoint"

    def __post_init__(self) -> None:
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            raise ConfigError(f"teacher {self.name}: base_url is no URL", got=self.base_url, expected="http(s)://...")
        if self.redact is None and not is_loopback(self.base_url):
            raise ConfigError(
                f"teacher {self.name} would send traces to another machine without redaction",
                got=self.base_url,
                do="give it a redactor",
            )
        if self.key_variable is not None and not os.environ.get(self.key_variable):
            raise ConfigError(
                f"teacher {self.name}: the environment variable {self.key_variable} is not set",
                do="set it to the endpoint's key",
            )

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order; see `answer_each` for errors."""
        answers: dict[int, Answer] = {}
        self.answer_each(asks, sampling, answers.__setitem__)
        return [answers[place] for place in range(len(asks))]

    def answer_each(self, asks: Sequence[Ask], sampling: Sampling, done: Done) -> None:
        """Call ``done(place, answer)`` as each answer arrives, in any order.

        Raises:
            ConfigError: constrained sampling was asked for, the key is refused, or the model or address is not there.
            OutsideFailure: retries are used up; the asks that were under way have been finished and handed over.
            MissingDependency: the SDK is not installed.
        """
        if sampling.constrained:
            raise ConfigError(f"teacher {self.name}: constrained decoding is for local models", do="set it to false")
        asyncio.run(self._answer_all(asks, sampling, done))

    def what_is_sent(self, ask: Ask) -> Ask:
        """`ask` as it leaves."""
        return ask if self.redact is None else self.redact(ask)

    async def _answer_all(self, asks: Sequence[Ask], sampling: Sampling, done: Done) -> None:
        slots = asyncio.Semaphore(self.limits.concurrency)
        failures: list[OutsideFailure | ConfigError] = []

        async def one(place: int, ask: Ask, client: AsyncOpenAI) -> None:
            async with slots:
                if failures:  # start nothing new on an endpoint that is down; what is under way is paid for
                    return
                try:
                    done(place, await self._call(client, ask, sampling))
                except (OutsideFailure, ConfigError) as error:
                    failures.append(error)

        async with self._client() as client:
            await asyncio.gather(*(one(place, ask, client) for place, ask in enumerate(asks)))
        if failures:
            raise failures[0]

    def _client(self) -> AsyncOpenAI:
        try:
            from openai import AsyncOpenAI
        except ImportError:
            raise MissingDependency("openai", extra="teachers") from None
        # The SDK insists on a key; local servers take any. Never its own default variable: only the named one is read.
        key = os.environ[self.key_variable] if self.key_variable else "none"
        limits = self.limits
        return AsyncOpenAI(api_key=key, base_url=self.base_url, timeout=limits.timeout, max_retries=limits.max_retries)

    async def _call(self, client: AsyncOpenAI, ask: Ask, sampling: Sampling) -> Answer:
        from openai import APIConnectionError, APIError, APIStatusError

        names = ToolNames(tool.name for tool in ask.tools)
        body = self._body(self.what_is_sent(ask), sampling, names)
        started = time.perf_counter()
        try:
            response = await client.post("/chat/completions", body=body, cast_to=object)
        except APIConnectionError as error:
            raise OutsideFailure(f"teacher {self.name}: {self.base_url} cannot be reached: {error}") from error
        except APIStatusError as error:
            return self._refused(error, time.perf_counter() - started)
        except (APIError, ValueError) as error:
            raise OutsideFailure(f"teacher {self.name}: {self.base_url} gave no JSON: {error}") from error
        return self._read(response, names, time.perf_counter() - started)

    def _body(self, ask: Ask, sampling: Sampling, names: ToolNames) -> dict[str, Any]:
        host = urlsplit(self.base_url).hostname or ""
        limit = "max_completion_tokens" if host.endswith("openai.com") else "max_tokens"
        body: dict[str, Any] = {
            "model": self.model,
            "messages": wire_messages(ask, names),
            "temperature": sampling.temperature,
            "seed": sampling.seed,
            limit: sampling.max_new_tokens,
        }
        if ask.tools:
            body["tools"] = wire_tools(ask.tools, names)
        return {key: sendable(value) for key, value in {**body, **self.extra}.items() if value is not None}

    def _read(self, response: object, names: ToolNames, seconds: float) -> Answer:
        choices = response.get("choices") if isinstance(response, dict) else None
        if not isinstance(response, dict) or not choices or not isinstance(choices[0].get("message"), dict):
            got = str(response)[:200]
            raise OutsideFailure(f"teacher {self.name}: {self.base_url} gave something else than a completion: {got}")
        usage = response.get("usage") or {}
        read, written = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        priced = self.price is not None and bool(usage)
        return Answer(
            message=read_message(choices[0]["message"], names),
            model=str(response.get("model") or self.model),
            stop_reason=str(choices[0].get("finish_reason") or "stop"),
            prompt_tokens=read,
            completion_tokens=written,
            seconds=seconds,
            cost=self.price.cost(prompt_tokens=read, completion_tokens=written) if self.price and priced else None,
        )

    def _refused(self, error: APIStatusError, seconds: float) -> Answer:
        """What a status means after the SDK's retries: our mistake, the world's, or this ask's."""
        status, told = error.status_code, f"{error.status_code} {' '.join(error.message.split())[:300]}"
        if status in (401, 403, 404):
            raise ConfigError(
                f"teacher {self.name}: {self.base_url} refused the key, the model or the address: {told}",
                got=self.model,
                do=f"check base_url, model and {self.key_variable or 'key_variable'}",
            ) from error
        if status in (408, 409, 429) or status >= 500:
            raise OutsideFailure(f"teacher {self.name}: {self.base_url} keeps failing: {told}") from error
        return Answer(None, self.model, stop_reason=f"refused: {told}", seconds=seconds)


def is_loopback(url: str) -> bool:
    """Whether `url` points to this machine by address; a name other than localhost is not trusted to."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
