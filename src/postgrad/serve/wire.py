"""How bytes go out: JSON bodies and server-sent events.

JSON is written in ASCII: a text may hold a lone surrogate, which has no UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Send


def json_response(value: dict[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON body."""
    return Response(json.dumps(value), status_code=status, headers=headers, media_type="application/json")


async def start_events(send: Send) -> None:
    """Status and headers of an event stream."""
    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def send_event(send: Send, value: dict[str, Any]) -> None:
    """One event."""
    await send({"type": "http.response.body", "body": f"data: {json.dumps(value)}\n\n".encode(), "more_body": True})


async def end_events(send: Send) -> None:
    """The mark that ends every stream, good or bad: some clients wait for it."""
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})
