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
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from postgrad.core.actor import Ask, Sampling, TokenChoice
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message
from postgrad.teachers.providers.prompt_cache import RuleName
from postgrad.teachers.providers.wire import Form

Body = dict[str, Any]
Send = Callable[[Body, str], Awaitable[object]]
"""``await send(body, request_id)`` makes one try and gives the response's JSON, or raises `CallFailed`."""


_LIMITS = ("max_tokens", "max_completion_tokens", "num_predict")
_ANSWERS = ("n", "best_of")
_LONGEST_WORD, _KEY_WORD = 24, 12  # letters of a part of a variable's name; of one with digits in it


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


def count_of(value: object) -> int | None:
    """A number of tokens in a response, also where JSON wrote it as 12.0; None for what is none: text, null, below 0.

    Unmeasured is no number: an answer of which the endpoint does not say what was read or written has no `Usage`, so
    what it cost is not known, and stays counted as money that may be gone.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12 or value != int(value):
        return None
    return int(value)


def usage_of(read: object, written: object, *, cached: object = None, stored: object = None) -> Usage | None:
    """Usage as an endpoint tells it; None where `read` or `written` is no count. `read` holds the other two."""
    tokens, answer = count_of(read), count_of(written)
    if tokens is None or answer is None:
        return None
    found = min(tokens, count_of(cached) or 0)
    return Usage(tokens, answer, found, min(tokens - found, count_of(stored) or 0))


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
    def extra(self) -> Mapping[str, Any]:
        """Request parameters that a recipe adds."""
        ...

    @property
    def prompt_cache(self) -> RuleName:
        """The rule by which its prompt cache keeps beginnings."""
        ...

    @property
    def form(self) -> Form:
        """How its API writes messages and tools."""
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


@dataclass(frozen=True)
class ModelAt:
    """What every `Provider` is made of: which model is asked, where, with which key, and how.

    Attributes:
        model: model id to ask for.
        base_url: of the API.
        key_variable: environment variable that holds the key; None sends none.
        extra: further request parameters; they win over ours, and None takes a parameter out.
        stream: have answers sent in parts.

    Raises:
        ConfigError: the address is none, or the key is not there.
    """

    model: str
    base_url: str
    key_variable: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    stream: bool = False

    def __post_init__(self) -> None:
        check_address(self.base_url)
        key_of(self.key_variable)

    @property
    def address(self) -> str:
        """The base address without /v1, which most SDKs add themselves."""
        return check_address(self.base_url).removesuffix("/v1")


def host_of(url: str) -> str:
    """Host and port, without what a URL may hold of credentials."""
    parts = urlsplit(url)
    return f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""


_CALLS = ("/chat/completions", "/completions", "/messages", "/responses", "/api/chat")


def check_address(url: str) -> str:
    """`url` without a slash at its end.

    Raises:
        ConfigError: it is no http address, or that of a call and not of the API.
    """
    try:
        parts = urlsplit(url)
        fit = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        fit = fit and url.isprintable() and " " not in url and bool((parts.hostname or "").encode("idna"))
    except ValueError:
        fit = False
    if not fit:
        raise ConfigError("base_url is no URL", got=url, expected="http(s)://HOST...")
    base = url.rstrip("/")
    call = next((path for path in _CALLS if base.endswith(path)), None)
    if call is not None:
        raise ConfigError(f"base_url ends in {call}, which is added to it", got=url, expected=base.removesuffix(call))
    return base


def check_public(url: str) -> str:
    """`url`, which is written into run folders, without a user or a password in it.

    Raises:
        ConfigError: it holds one.
    """
    if "@" in url.partition("//")[2].partition("/")[0]:
        raise ConfigError(
            "base_url holds a user or a password",
            got=f"an address at {url.rpartition('@')[2]}",
            expected="http(s)://HOST/v1",
            do="export the key under a name, and write the name as api_key_env",
        )
    return url


def is_loopback(url: str) -> bool:
    """Whether `url` points to this machine by address; a name other than localhost is not trusted to."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_variable(name: str) -> str:
    """`name` as the name of an environment variable. A key that was pasted in its place is never shown again.

    Raises:
        ConfigError: it is no name, or looks like a key.
    """
    words = name.split("_")
    looks_like_a_key = any(len(word) > _LONGEST_WORD for word in words) or any(
        len(word) >= _KEY_WORD and any(letter.isdigit() for letter in word) for word in words
    )
    if not name.isascii() or not name.isidentifier() or looks_like_a_key:
        raise ConfigError(
            "api_key_env is no name of an environment variable",
            got=f"{len(name)} characters, not shown here because they may be a key",
            expected="a name such as TEACHER_KEY",
            do="export the key under a name, and write the name; a key that was in a file may need to be replaced",
        )
    return name


def key_of(variable: str | None) -> str:
    """The key in the environment variable; "none" where no variable is named, because SDKs insist on a key.

    The SDKs' own default variables are never read: a key goes only where its variable was named.

    Raises:
        ConfigError: the variable is not set.
    """
    if variable is None:
        return "none"
    key = os.environ.get(check_variable(variable))
    if not key:
        raise ConfigError(f"the environment variable {variable} is not set", do="set it to the endpoint's key")
    return key
