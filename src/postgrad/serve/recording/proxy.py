"""`Proxy`: the ASGI application between a client and the true API.

Bytes pass in both directions as they come: nothing waits for a whole body, and content codings, status and headers
stay as they are. Of calls that are recorded a copy is kept on the way. A client that goes away cancels the call
upstream; an API that breaks off in the middle breaks off for the client too, because a stream that merely stops would
look complete. An API that cannot be reached gives status 502 in the form that the client's library reads.

Not passed on: hop-by-hop headers (RFC 9110, 7.6.1), `Expect`, and codings that cannot be read (`READABLE_CODINGS`).
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
import httpx
from starlette.types import Message, Receive, Scope, Send

from postgrad.serve.recording.bodies import READABLE_CODINGS
from postgrad.serve.recording.recorder import Call, Recorder
from postgrad.serve.recording.upstreams import Target, Upstreams

CONNECT_SECONDS = 20.0
REST_SECONDS = 5.0
_HOP = {
    *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade", "expect", "host"),
}
_CLIENT_GONE = "the client closed the connection"

Headers = list[tuple[bytes, bytes]]


@dataclass
class Proxy:
    """Passes calls on to `upstreams` and hands those that are recorded to `recorder`."""

    upstreams: Upstreams
    recorder: Recorder
    _client: httpx.AsyncClient | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the server's start and end."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            assert self._client is not None, "the server has started"
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
            target = self.upstreams.target(path, headers)
            passage = Passage(self._client, target, scope, receive, send)
            if target.api is not None and scope["method"] == "POST":
                passage.call = Call(target.api, target.provider, httpx.URL(target.url).path, headers)
            try:
                await passage.run()
            finally:
                if passage.call is not None:
                    self.recorder.add(passage.call)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Hold the connections upstream for as long as the server runs; they belong to its event loop."""
        await receive()
        async with httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30),
        ) as self._client:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


@dataclass
class Passage:
    """One request on its way to the API, and its answer on the way back."""

    client: httpx.AsyncClient
    target: Target
    scope: Scope
    receive: Receive
    send: Send
    call: Call | None = None
    _asked: anyio.Event = field(default_factory=anyio.Event)
    _whole: bool = False

    async def run(self) -> None:
        """Pass the call on until it has ended, one way or another."""
        begun = time.monotonic()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch, group.cancel_scope)
                await self._pass_on()
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            self._abort("the recorder was stopped")
            raise
        finally:
            if self.call is not None:
                self.call.seconds = time.monotonic() - begun

    async def _watch(self, scope: anyio.CancelScope) -> None:
        """Cancel the call when the client closes the connection."""
        await self._asked.wait()
        while (await self.receive())["type"] != "http.disconnect":
            pass
        if not self._whole:  # the server says "disconnect" after a whole answer too
            self._abort(_CLIENT_GONE)
            scope.cancel()

    def _abort(self, why: str) -> None:
        if self.call is not None and not self.call.aborted:
            self.call.aborted = why

    async def _pass_on(self) -> None:
        try:
            response = await self.client.send(self._request(), stream=True)
        except _ClientGone:
            self._abort(_CLIENT_GONE)
            return
        except httpx.HTTPError as error:
            await self._unreachable(error)
            return
        try:
            await self._answer(response)
        except httpx.HTTPError as error:
            # Returning without the last chunk makes the server close the connection: the client sees the break.
            self._abort(f"the API broke off: {type(error).__name__} {error}".strip())
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    def _request(self) -> httpx.Request:
        headers: Headers = self.scope["headers"]
        has_body = any(
            (name == b"content-length" and value.strip() != b"0") or name == b"transfer-encoding"
            for name, value in headers
        )
        if not has_body:
            self._asked.set()
        query: bytes = self.scope["query_string"]
        url = httpx.URL(self.target.url + (f"?{query.decode('latin-1')}" if query else ""))
        kept = [(name, self._readable(name, value)) for name, value in _end_to_end(headers)]
        content = self._body() if has_body else None
        return httpx.Request(self.scope["method"], url, headers=kept, content=content)

    def _readable(self, name: bytes, value: bytes) -> bytes:
        """The codings that a client accepts, of a recorded call only those that can be undone here."""
        if name != b"accept-encoding" or self.call is None:
            return value
        wanted = [part.strip() for part in value.decode("latin-1").split(",")]
        return ", ".join(part for part in wanted if part.split(";")[0] in READABLE_CODINGS).encode() or b"identity"

    async def _body(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message: Message = await self.receive()
            if message["type"] == "http.disconnect":
                raise _ClientGone
            body: bytes = message.get("body", b"")
            if self.call is not None:
                self.call.request += body
            more = message.get("more_body", False)
            if body:
                yield body
        self._asked.set()

    async def _read_on(self) -> None:
        """Read the rest of a request that was answered before it was whole, or could not be sent: it is recorded.

        After the last byte of an answer the server gives no more of the request.
        """
        if self.call is not None and not self._asked.is_set():
            with suppress(_ClientGone), anyio.move_on_after(REST_SECONDS):
                async for _ in self._body():
                    pass

    async def _answer(self, response: httpx.Response) -> None:
        if self.call is not None:
            self.call.status, self.call.response_headers = response.status_code, response.headers
        headers = [(name.lower(), value) for name, value in _end_to_end(response.headers.raw)]
        await self.send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for chunk in response.aiter_raw():
            if self.call is not None:
                self.call.response += chunk
            await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
        await self._read_on()
        self._whole = True
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _unreachable(self, error: httpx.HTTPError) -> None:
        """The recorder's own answer: no answer came from the API."""
        host = httpx.URL(self.target.url).netloc.decode("latin-1").rpartition("@")[2]
        what = f"postgrad record: no answer from {host}: {type(error).__name__} {error}".strip()
        detail = {"message": what, "type": "api_error", "param": None, "code": "upstream_unreachable"}
        kind = {"type": "error"} if self.target.provider == "anthropic" else {}
        body = json.dumps({**kind, "error": detail}).encode()
        self._abort(what)
        if self.call is not None:
            self.call.status = 502
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self._read_on()
        self._whole = True
        await self.send({"type": "http.response.start", "status": 502, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


class _ClientGone(Exception):
    """The client closed the connection before its request was whole."""


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers that are not for one hop only."""
    headers = [(name.lower(), value) for name, value in headers]
    named = b",".join(value for name, value in headers if name == b"connection").decode("latin-1").lower()
    hop = _HOP | {part.strip() for part in named.split(",")}
    return [(name, value) for name, value in headers if name.decode("latin-1") not in hop]
