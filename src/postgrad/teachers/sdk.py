"""One try with an SDK of the OpenAI family (openai and anthropic are of one mould), with its errors in our kinds.

The HTTP client: no redirects (a redirect would carry a trace to a host that nobody named), proxies of the environment
only for other machines, and none of the headers that the SDKs add from environment variables of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from postgrad.teachers.failures import CallFailed, of_status
from postgrad.teachers.provider import is_loopback

CONNECT = 10.0  # seconds
_BEGUN = "postgrad.begun"


def http_client(sdk: ModuleType, address: str, *, drop: Sequence[str] = ()) -> Any:
    """The SDK's own HTTP client class, set as above; request headers in `drop` are taken out."""

    async def without(request: Any) -> None:
        for name in drop:
            request.headers.pop(name, None)

    hooks = {"request": [without], "response": [mark_begun]}
    return sdk.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=not is_loopback(address), event_hooks=hooks)


@contextmanager
def without_custom_headers() -> Iterator[None]:
    """Where a client is made inside, the SDK finds no headers in the environment: they would replace the named key."""
    found = {name: os.environ.pop(name) for name in list(os.environ) if name.endswith("_CUSTOM_HEADERS")}
    try:
        yield
    finally:
        os.environ.update(found)


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
    except sdk.APITimeoutError as error:
        raise CallFailed("connection", f"not reached in {CONNECT:g} s") from error
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
    """A connection that broke: before anything came, or inside an answer."""
    request = getattr(cause, "_request", None)  # `request` raises where there is none
    inside = request is not None and _BEGUN in request.extensions
    return CallFailed("truncated" if inside else "connection", f"{type(cause).__name__}: {cause}")
