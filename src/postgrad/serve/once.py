"""`once`: serve one request over a real socket and stop. A cycle's proof that the artifact it made can be served."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from postgrad.core.errors import OutsideFailure
from postgrad.serve.engine import Engine
from postgrad.serve.server import Listening, serving

SECONDS = 600


def once(engine: Engine, request: dict[str, Any], listening: Listening) -> dict[str, Any]:
    """Start a server, POST `request` to it, stop it.

    Returns:
        ``address``, ``request``, ``answer`` (the response body) and ``captured``, the file with the exchange.

    Raises:
        OutsideFailure: the server answered with an error, or not at all.
    """
    body = {"model": engine.name} | request
    with serving(engine, listening) as running:
        answer = _post(f"{running.address}/chat/completions", body)
        captured = running.service.captures.today()
        if running.service.lost:
            raise OutsideFailure(f"the exchange was not captured under {listening.captures}")
    return {"address": running.address, "request": body, "answer": answer, "captured": str(captured)}


def _post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    # A proxy of the environment must not see a request to this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS) as response:
            answer: dict[str, Any] = json.loads(response.read())
    except urllib.error.HTTPError as error:
        message = json.loads(error.read())["error"]["message"]
        raise OutsideFailure(f"the served model refused the request: {message}") from None
    except (urllib.error.URLError, TimeoutError) as error:
        raise OutsideFailure(f"the served model did not answer: {error}") from None
    return answer
