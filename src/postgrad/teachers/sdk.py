"""One try with an SDK of the OpenAI family (openai and anthropic are of one mould), with its errors in our kinds.

The HTTP client: no redirects (a redirect would carry a trace to a host that nobody named), proxies of the environment
only for other machines, and none of the headers that the SDKs add from environment variables of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from postgrad.teachers.failures import CallFailed, of_status
from postgrad.teachers.provider import is_loopback

CONNECT = 10.0  # seconds


def http_client(sdk: ModuleType, address: str, *, drop: Sequence[str] = ()) -> Any:
    """The SDK's own HTTP client class, set as above; request headers in `drop` are taken out."""

    async def without(request: Any) -> None:
        for name in drop:
            request.headers.pop(name, None)

    return sdk.DefaultAsyncHttpxClient(
        follow_redirects=False, trust_env=not is_loopback(address), event_hooks={"request": [without]}
    )


async def post(sdk: ModuleType, client: Any, path: str, body: dict[str, Any], *, request: str) -> object:
    """POST `body` once and give the response's JSON, text where it is none. The caller watches the clock.

    Raises:
        CallFailed: in every case of failure.
    """
    options = {"headers": {"Idempotency-Key": request}, "timeout": sdk.Timeout(None, connect=CONNECT)}
    try:
        return await client.post(path, body=body, cast_to=object, options=options)
    except sdk.APITimeoutError as error:
        raise CallFailed("connection", f"not reached in {CONNECT:g} s") from error
    except sdk.APIStatusError as error:
        told = f"{error.message} {getattr(error, 'code', None) or ''}"
        raise of_status(error.status_code, told, error.response.headers) from error
    except sdk.APIConnectionError as error:
        raise broken(error.__cause__ or error) from error
    except (sdk.APIError, ValueError) as error:
        raise CallFailed("invalid_reply", f"the endpoint gave no JSON: {error}") from error


def broken(cause: BaseException) -> CallFailed:
    """A connection that broke: before anything came, or inside an answer."""
    name, told = type(cause).__name__, str(cause)
    inside = name in ("ReadError", "DecodingError") or "complete message" in told or "incomplete" in told
    return CallFailed("truncated" if inside else "connection", f"{name}: {told}")
