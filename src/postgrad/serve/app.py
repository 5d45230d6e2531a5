"""The HTTP surface: chat completions, `/v1/models`, `/v1/corrections`, `/health`. Every error has OpenAI's shape."""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from postgrad.core.errors import DataError
from postgrad.serve.corrections import Correction, correct
from postgrad.serve.exchange import Exchange, Service
from postgrad.serve.refusal import Refusal, error_body
from postgrad.serve.wire import json_response


def build_app(service: Service) -> Starlette:
    """The ASGI application over `service`."""
    started = int(time.time())
    card = {"id": service.engine.name, "object": "model", "created": started, "owned_by": "postgrad"}

    async def chat(request: Request) -> Any:
        return Exchange(service, await _json_object(request))

    async def corrections(request: Request) -> Response:
        correction = _correction(await _json_object(request))
        try:
            told = await anyio.to_thread.run_sync(correct, service.captures.folder, correction)
        except DataError as error:
            missing = "no answer with this id" in str(error)
            raise Refusal(str(error), param="id" if missing else "message", status=404 if missing else 400) from None
        return json_response(told, status=201)

    async def models(request: Request) -> Response:
        return json_response({"object": "list", "data": [card]})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        if name != service.engine.name:
            raise Refusal(f"the model '{name}' does not exist", param="model", code="model_not_found", status=404)
        return json_response(card)

    async def health(request: Request) -> Response:
        return json_response(
            {
                "status": "ok",
                "model": service.engine.name,
                "context_length": service.engine.context_length,
                "running": service.turns.running,
                "waiting": service.turns.waiting,
                "captured": service.captures.written,
                "captures_lost": service.lost,
                "refused": service.refused,
            }
        )

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/corrections", corrections, methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", model),
            Route("/health", health),
        ],
        exception_handlers={Refusal: _refused, HTTPException: _http_error, Exception: _fault},
    )


def _correction(body: dict[str, Any]) -> Correction:
    """``{"id", "message" or "content", "reason", "by"}``."""
    unknown = sorted(body.keys() - {"id", "message", "content", "reason", "by"})
    if unknown:
        raise Refusal(f"unknown field '{unknown[0]}'; known are id, message, content, reason, by", param=unknown[0])
    texts = {name: body.get(name, "") for name in ("id", "reason", "by")}
    for name, value in texts.items():
        if not isinstance(value, str) or (name == "id" and not value):
            raise Refusal(f"'{name}' must be a text", param=name)
    if ("message" in body) == ("content" in body):
        raise Refusal("give either 'message' or, for an answer in words, 'content'", param="message")
    message = body.get("message", {"content": body.get("content")})
    if not isinstance(message, dict):
        raise Refusal("'message' must be a message of the assistant", param="message")
    return Correction(texts["id"], message, texts["reason"], texts["by"])


async def _json_object(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Refusal(f"the body is not JSON: {error}", code="invalid_json") from None
    except ClientDisconnect:
        raise Refusal("the client closed the connection within the body") from None
    if not isinstance(body, dict):
        raise Refusal(f"the body must be a JSON object, got {type(body).__name__}", code="invalid_json")
    return body


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return json_response(error.body, status=error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = f"{error.detail}: {request.method} {request.url.path}"
    return json_response(error_body(message, status=error.status_code), status=error.status_code)


async def _fault(request: Request, error: Exception) -> Response:
    return json_response(error_body("the server failed; its log says why"), status=500)
