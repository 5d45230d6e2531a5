"""`Upstreams`: the true APIs behind the recorder, and the way from a path that a client asks for to theirs.

A command gets base URLs that mirror the true ones: where OpenAI's is ``https://host/api/v1``, the command's is
``http://127.0.0.1:PORT/openai/api/v1``, so everything after ``/openai`` is a path of the true host. Without that first
part (``http://127.0.0.1:PORT/v1`` given to a client by hand) the API is told by the path and by the header that every
Anthropic client sends. Not covered: websockets, Bedrock's and Vertex's own paths, logins that bring their own host.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from postgrad.core.errors import ConfigError

Provider = Literal["openai", "anthropic"]
Api = Literal["openai_chat", "openai_responses", "anthropic_messages"]

DEFAULTS: Mapping[Provider, str] = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
# What agents read, with the part of the base URL that they want: "base" as the official clients have it, "host"
# without its path (goose adds the path itself).
_VARIABLES: Mapping[Provider, Mapping[str, Literal["base", "host"]]] = {
    "openai": {
        "OPENAI_BASE_URL": "base",
        "OPENAI_API_BASE": "base",
        "OPENAI_API_BASE_URL": "base",
        "OPENAI_HOST": "host",
    },
    "anthropic": {"ANTHROPIC_BASE_URL": "base", "ANTHROPIC_API_BASE": "base", "ANTHROPIC_HOST": "host"},
}
_RECORDED: Mapping[tuple[Provider, str], Api] = {
    ("openai", "/chat/completions"): "openai_chat",
    ("openai", "/responses"): "openai_responses",
    ("anthropic", "/messages"): "anthropic_messages",
}


@dataclass(frozen=True)
class Target:
    """Where a request goes: the whole URL without its query, and which API is recorded there, None for no one."""

    provider: Provider
    url: str
    api: Api | None


@dataclass(frozen=True)
class Upstreams:
    """Base URLs as the official clients have them: OpenAI's with ``/v1``, Anthropic's without."""

    openai: str = DEFAULTS["openai"]
    anthropic: str = DEFAULTS["anthropic"]

    def __post_init__(self) -> None:
        for provider in DEFAULTS:
            parts = urlsplit(self.base(provider))
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.query:
                raise ConfigError(
                    f"upstream {provider} is no base URL", got=self.base(provider), expected="https://HOST/PATH"
                )

    @classmethod
    def found(cls, environment: Mapping[str, str], *, openai: str | None, anthropic: str | None) -> Upstreams:
        """As given, else as the caller's environment has them, else the public APIs.

        A bare host given for OpenAI means its ``/v1``; a ``/v1`` at the end of Anthropic's is what its clients add.
        """
        if openai is not None and not urlsplit(openai).path.strip("/"):
            openai = f"{openai.rstrip('/')}/v1"
        urls = {"openai": openai, "anthropic": anthropic}
        for provider, names in _VARIABLES.items():
            told = (environment[name] for name, part in names.items() if part == "base" and environment.get(name))
            urls[provider] = (urls[provider] or next(told, DEFAULTS[provider])).rstrip("/")
        return cls(urls["openai"] or "", (urls["anthropic"] or "").removesuffix("/v1"))

    def base(self, provider: Provider) -> str:
        """The base URL of an API."""
        return self.openai if provider == "openai" else self.anthropic

    def environment(self, address: str) -> dict[str, str]:
        """What a command must find in its environment to come through the recorder at `address`.

        A proxy of the environment must not see what goes to this machine, so the machine is added to its exceptions.
        """
        told: dict[str, str] = {}
        for provider, names in _VARIABLES.items():
            host = f"{address}/{provider}"
            told |= {
                name: host + (urlsplit(self.base(provider)).path if part == "base" else "")
                for name, part in names.items()
            }
        known = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        direct = ",".join(part for part in (known, "127.0.0.1,localhost") if part)
        return told | {"NO_PROXY": direct, "no_proxy": direct}

    def target(self, path: str, headers: Mapping[str, str]) -> Target:
        """Where a request for `path` (percent-encoded, without query) goes; `headers` have lower-case names."""
        if not path.startswith("/"):  # a whole URL, as proxies are asked, or the "*" of OPTIONS
            path = f"/{path.partition('://')[2].partition('/')[2]}"
        for named in DEFAULTS:
            if path.startswith(f"/{named}/"):
                return self._target(named, _origin(self.base(named)), path.removeprefix(f"/{named}"))
        theirs = path.startswith(("/v1/messages", "/v1/complete/", "/messages")) or "anthropic-version" in headers
        provider: Provider = "anthropic" if theirs and "/chat/completions" not in path else "openai"
        base = self.base(provider)
        # A client's base URL ends in /v1 for OpenAI only; the upstream's may have another path, or none.
        if provider == "openai" and urlsplit(base).path:
            path = path.removeprefix("/v1")
        return self._target(provider, base, path)

    def _target(self, provider: Provider, base: str, path: str) -> Target:
        if provider == "anthropic" and path.startswith("/messages"):
            path = f"/v1{path}"  # clients whose base URL has the version in it, as the others' have
        if base.endswith("/v1"):
            path = path.removeprefix("/v1")
        url = base + path
        recorded = (api for (own, end), api in _RECORDED.items() if own == provider and url.rstrip("/").endswith(end))
        return Target(provider, url, next(recorded, None))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
