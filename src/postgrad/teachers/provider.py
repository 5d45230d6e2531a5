"""`Provider`: one client protocol for everything that is spoken to over a network.

A provider knows one API: how an ask is written in it, how its reply is read, and how its official SDK is opened. It
makes one try and says in one of few kinds why it failed (`failures`). All else (redaction, cache, money, retries,
limits, failover) is the gateway's, once for all of them; the SDKs' own retries are switched off, because a retry that
nobody sees is a payment that nobody reserved.
"""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from postgrad.core.actor import Ask, Sampling, TokenChoice
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message

Body = dict[str, Any]
Send = Callable[[Body, str], Awaitable[object]]
"""``await send(body, request_id)`` makes one try and gives the response's JSON, or raises `CallFailed`."""


_LIMITS = ("max_tokens", "max_completion_tokens", "num_predict")
_ANSWERS = ("n", "best_of")


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens as billed. `cached` and `cache_written` are parts of `read`."""

    read: int = 0
    written: int = 0
    cached: int = 0
    cache_written: int = 0


def most_written(body: Body) -> float:
    """Most tokens that the answers to a request may have, infinite where it sets no limit.

    A recipe's `extra` may change the limit (also under another of its names) and ask for several answers.
    """
    options = body.get("options")
    said = {**body, **(options if isinstance(options, dict) else {})}
    limits = [said[name] for name in _LIMITS if isinstance(said.get(name), int | float) and said[name] >= 0]
    answers = [said[name] for name in _ANSWERS if isinstance(said.get(name), int) and said[name] > 1]
    return max(limits, default=math.inf) * max(answers, default=1)


def count_of(value: object) -> int:
    """A number of tokens in a response; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e12 else 0


class Reply(msgspec.Struct, frozen=True):
    """A response. `usage` is None where the endpoint does not say; `model` is "" where it names none.

    `tokens` are there where log-probabilities were asked for and the endpoint gives them.
    """

    message: Message
    model: str
    stop_reason: str
    usage: Usage | None
    tokens: tuple[TokenChoice, ...] = ()


class Provider(Protocol):
    """One API at one address, asked for one model."""

    @property
    def kind(self) -> str:
        """What reports print: "HTTP endpoint", "Anthropic endpoint", "Ollama endpoint"."""
        ...

    @property
    def model(self) -> str:
        """The model id that is asked for."""
        ...

    @property
    def address(self) -> str:
        """Base address, as the SDK takes it."""
        ...

    @property
    def prompt_cache(self) -> tuple[int, int]:
        """The shortest beginning that its prompt cache keeps, and the unit in which it counts, both in tokens."""
        ...

    def body(self, ask: Ask, sampling: Sampling, *, shared: int | None) -> Body:
        """The request; `shared` messages at its beginning may be in a prompt cache, None where it pays no cache."""
        ...

    def read(self, raw: object, ask: Ask) -> Reply:
        """Read a response.

        Raises:
            CallFailed: it is no answer (invalid_reply).
        """
        ...

    def connect(self) -> AbstractAsyncContextManager[Send]:
        """Open the SDK's client.

        Raises:
            MissingDependency: the SDK is not installed.
        """
        ...


def host_of(url: str) -> str:
    """Host and port, without what a URL may hold of credentials."""
    parts = urlsplit(url)
    return f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""


def check_address(url: str) -> str:
    """`url` without a slash at its end.

    Raises:
        ConfigError: it is no http address.
    """
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        fit = fit and url.isprintable() and " " not in url and bool((parts.hostname or "").encode("idna"))
    except ValueError:
        fit = False
    if not fit:
        raise ConfigError("base_url is no URL", got=url, expected="http(s)://HOST...")
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether `url` points to this machine by address; a name other than localhost is not trusted to."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def key_of(variable: str | None) -> str:
    """The key in the environment variable; "none" where no variable is named, because SDKs insist on a key.

    The SDKs' own default variables are never read: a key goes only where its variable was named.

    Raises:
        ConfigError: the variable is not set.
    """
    if variable is None:
        return "none"
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(f"the environment variable {variable} is not set", do="set it to the endpoint's key")
    return key
