"""`Exchange`: one request from its body to the last byte of its answer, and its line in the capture log.

The order of a good exchange: understand, take a place in the queue, read the prompt, wait for the turn, generate,
capture, finish. What is refused before the generation starts gets its HTTP status; a fault within a stream becomes
an error event, because the status is sent by then. Whatever way a generation ends, its exchange is captured, once; a
request that was refused asked the model nothing, and is no trace of it: `/health` counts it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import anyio
from starlette.types import Receive, Scope, Send

from postgrad.core.errors import OutsideFailure, PostgradError
from postgrad.serve.encoding import Answer
from postgrad.serve.engine import Engine, Event, Finish
from postgrad.serve.log import CaptureLog
from postgrad.serve.refusal import Refusal, error_body
from postgrad.serve.request import ChatRequest, Defaults, read_request
from postgrad.serve.wire import end_events, json_response, send_event, start_events
from postgrad.serve.worker import Turns, Worker

LOGGER = logging.getLogger("postgrad.serve")

# What a model's own code may raise while it computes: torch reports out-of-memory and shape faults this way.
ENGINE_FAULTS = (PostgradError, RuntimeError, ValueError, OSError, MemoryError)


@dataclass
class Service:
    """What all exchanges share. `lost` counts exchanges whose capture could not be written, `refused` requests."""

    engine: Engine
    turns: Turns
    captures: CaptureLog
    defaults: Defaults = field(default_factory=Defaults)
    worker: Worker = field(default_factory=Worker)
    lost: int = 0
    refused: int = 0


@dataclass
class Exchange:
    """An ASGI application for the answer to one request body."""

    service: Service
    body: dict[str, Any]
    answer: Answer | None = None
    _gone: bool = False
    _captured: bool = False
    _started: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the answer is complete or the client is gone."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, receive, group.cancel_scope)
            await self._serve(scope, receive, send)
            group.cancel_scope.cancel()

    async def _watch(self, receive: Receive, scope: anyio.CancelScope) -> None:
        """Cancel the work when the client closes the connection, be it queued, prefilling or generating."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        scope.cancel()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            chat = read_request(self.body, model=self.service.engine.name, defaults=self.service.defaults)
            self.answer = Answer(self.service.engine.name, named=chat.named)
            with self.service.turns.place():
                await self._generate(chat, scope, receive, send)
        except Refusal as refusal:
            self._captured = not self._started  # nothing was asked of the model, so there is nothing to keep
            self.service.refused += self._captured
            await self._fail(refusal.body, scope, receive, send, status=refusal.status)
        except ENGINE_FAULTS as fault:
            LOGGER.exception("the engine failed")
            await self._fail(error_body(f"the model failed: {fault}"), scope, receive, send, status=500)
        except anyio.get_cancelled_exc_class():
            why = "the client closed the connection" if self._gone else "the server stopped"
            with anyio.CancelScope(shield=True):
                await self._capture(error_body(why, code="cancelled"))
            raise

    async def _generate(self, chat: ChatRequest, scope: Scope, receive: Receive, send: Send) -> None:
        engine, worker = self.service.engine, self.service.worker
        events = await worker.call(lambda: engine.generate(chat.messages, chat.demand))
        async with aclosing(self._chunks(chat, worker.pull(events))) as chunks:
            if not chat.stream:
                async for _ in chunks:
                    pass
                assert self.answer is not None
                await json_response(self.answer.response())(scope, receive, send)
                return
            await start_events(send)
            self._started = True
            async for chunk in chunks:
                await send_event(send, chunk)
            await end_events(send)

    async def _chunks(
        self, chat: ChatRequest, events: AsyncGenerator[Event, None]
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Fold the events and tell of them; the exchange is captured before its end is told."""
        answer = self.answer
        assert answer is not None
        yield answer.opening()
        async with self.service.turns.mine, aclosing(events) as pulled:
            async for event in pulled:
                chunks = answer.add(event)
                if isinstance(event, Finish):
                    await self._capture()
                for chunk in chunks:
                    yield chunk
        if chat.include_usage:
            yield answer.usage_chunk()

    async def _fail(self, error: dict[str, Any], scope: Scope, receive: Receive, send: Send, *, status: int) -> None:
        await self._capture(error)
        if self._started:
            await send_event(send, error)
            await end_events(send)
            return
        headers = {"retry-after": "1"} if status == 503 else None
        await json_response(error, status=status, headers=headers)(scope, receive, send)

    async def _capture(self, error: dict[str, Any] | None = None) -> None:
        """Write the exchange down, once. A full disk must not take the answer from the client; /health tells of it."""
        if self._captured:
            return
        self._captured = True
        partial = self.answer.response() if self.answer and (self.answer.text or self.answer.calls) else {}
        response = self.answer.response() if self.answer and error is None else partial | (error or {})
        try:
            await anyio.to_thread.run_sync(self.service.captures.append, self.body, response)
        except OutsideFailure as failure:
            self.service.lost += 1
            LOGGER.error("an exchange was not captured: %s", failure)
