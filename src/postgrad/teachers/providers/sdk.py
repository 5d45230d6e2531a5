"""One try with an SDK of the OpenAI family (openai and anthropic are of one mould), with its errors in our kinds.

The HTTP client: no redirects (a redirect would carry a trace to a host that nobody named), proxies of the environment
only for other machines, and none of the headers that the SDKs add from environment variables of their own, which would
replace the named key and go where nobody meant them to.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from postgrad.teachers.providers.failures import CallFailed, of_status
from postgrad.teachers.providers.provider import is_loopback

CONNECT = 10.0  # seconds
_BEGUN = "postgrad.begun"
_NOT_MADE = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "ConnectionError"}
"""Errors of httpx and of its successor, by name, after which no request can have been read; the last is Ollama's."""
_JSON = {"accept": "application/json", "content-type": "application/json"}
_OWN = {"idempotency-key", "content-length", "transfer-encoding"}  # of each request: the SDK and its client set them


def http_client(sdk: ModuleType, address: str, *, own: Mapping[str, str], drop: Sequence[str] = ()) -> Any:
    """The SDK's own HTTP client class, set as above.

    Args:
        sdk: openai or anthropic.
        address: of the API.
        own: headers that every request has, whatever the environment says: the key that was named.
        drop: further headers that are taken out of requests.
    """
    foreign = {*drop, *_of_the_environment()} - _OWN

    async def as_named(request: Any) -> None:
        for name in foreign:
            request.headers.pop(name, None)
        request.headers.update({**_JSON, **own, "host": request.url.netloc.decode()})

    hooks = {"request": [as_named], "response": [mark_begun]}
    return sdk.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=not is_loopback(address), event_hooks=hooks)


def _of_the_environment() -> Iterator[str]:
    """Names of the headers that the SDKs add from OPENAI_CUSTOM_HEADERS and the like: a line each, `Name: value`."""
    for variable, lines in os.environ.items():
        if variable.endswith("_CUSTOM_HEADERS"):
            yield from (line.partition(":")[0].strip().lower() for line in lines.split("\n"))


Join = Callable[[Sequence[object]], dict[str, Any]]


@dataclass(frozen=True)
class Route:
    """Where an API is asked: its path, and how the parts of a streamed answer are put together."""

    path: str
    join: Join


async def post(sdk: ModuleType, client: Any, route: Route, body: dict[str, Any], *, request: str) -> object:
    """POST `body` once and give the response's JSON, text where it is none. The caller watches the clock.

    A body that asks for a stream gets the whole answer as well.

    Raises:
        CallFailed: in every case of failure.
    """
    options = {"headers": {"Idempotency-Key": request}, "timeout": sdk.Timeout(None, connect=CONNECT)}
    try:
        if not body.get("stream"):
            return await client.post(route.path, body=body, cast_to=object, options=options)
        kind = sdk.AsyncStream[object]
        stream = await client.post(route.path, body=body, cast_to=object, options=options, stream=True, stream_cls=kind)
        return _joined(route, [part async for part in stream])
    except sdk.APIStatusError as error:
        if error.status_code < 300:  # it went wrong when the stream had begun
            raise CallFailed("truncated", f"the stream ended in an error: {error.message}") from error
        told = f"{error.message} {getattr(error, 'code', None) or ''}"
        raise of_status(error.status_code, told, error.response.headers) from error
    except sdk.APIConnectionError as error:
        raise broken(error.__cause__ or error) from error
    except _http_error(sdk) as error:  # inside a stream not every SDK makes it one of its own
        raise broken(error) from error
    except (sdk.APIError, ValueError) as error:
        raise CallFailed("invalid_reply", f"the endpoint gave no JSON: {error}") from error


def _joined(route: Route, parts: Sequence[object]) -> dict[str, Any]:
    """The whole answer. The joins read foreign JSON by its documented types; where it has others it is no answer."""
    try:
        return route.join(parts)
    except (AttributeError, TypeError, ValueError) as error:
        raise CallFailed("invalid_reply", f"something else than a stream: {error}") from error


def _http_error(sdk: ModuleType) -> type[Exception]:
    """`HTTPError` of the library that the SDK's client comes from, httpx or its successor."""
    client = next(one for one in sdk.DefaultAsyncHttpxClient.__mro__ if one.__name__ == "AsyncClient")
    error: type[Exception] = sys.modules[client.__module__.partition(".")[0]].HTTPError
    return error


async def mark_begun(response: Any) -> None:
    """A response hook: the headers have come, so what breaks from now on is cut inside an answer."""
    response.request.extensions[_BEGUN] = True


def broken(cause: BaseException) -> CallFailed:
    """A connection that was never made, that broke before an answer began, or inside an answer."""
    name = type(cause).__name__
    if name in _NOT_MADE:
        return CallFailed("connection", f"not reached: {name}: {cause}")
    request = getattr(cause, "_request", None)  # `request` raises where there is none
    inside = request is not None and _BEGUN in request.extensions
    return CallFailed("truncated" if inside else "cut", f"{name}: {cause}")
