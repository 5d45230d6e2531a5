"""A local HTTP server that plays endpoints: for each request the next line of its script, or what a function says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What to say: a status, a body (bytes go out as they are), headers, how long to wait before.

    `cut`: end the connection after so many bytes of the body, though more are announced.
    """

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: int | None = None


Script = Callable[[dict[str, Any]], Reply]
ERROR = {"error": {"message": "slow down", "type": "rate", "param": None, "code": None}}


def completion(
    text: str | None = None,
    calls: Sequence[tuple[str, str]] = (),
    *,
    model: str | None = None,
    finish: str = "stop",
    usage: tuple[int, int, int] | None = (100, 20, 0),
) -> Reply:
    """A chat completion of the model that was asked for; `usage` is tokens read, written, and of the read ones cached.

    By default 100 tokens are read and 20 written.
    """
    named = [
        {"id": f"p{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": named} if named else {})}
    body = {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if usage is not None:
        read, written, cached = usage
        details = {"cached_tokens": cached}
        body["usage"] = {"prompt_tokens": read, "completion_tokens": written, "prompt_tokens_details": details}
    return Reply(body)


class Endpoint:
    """Replies in order; the last one again and again. `requests` are the bodies that came in, with their headers."""

    def __init__(self, script: Sequence[Reply] | Script) -> None:
        self._script, self._lock = script if callable(script) else list(script), threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.most_at_once = self._now = 0
        self.base_url = ""

    def take(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.paths.append(path)
            self.requests.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            if callable(self._script):
                reply = self._script(body)
            else:
                reply = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return _named(reply, body)

    def done(self) -> None:
        with self._lock:
            self._now -= 1


def _named(reply: Reply, body: dict[str, Any]) -> Reply:
    """A completion without a model is one of the model that was asked for."""
    if isinstance(reply.body, dict) and reply.body.get("model", "") is None:
        return Reply({**reply.body, "model": body.get("model")}, reply.status, reply.headers, reply.wait, reply.cut)
    return reply


@contextmanager
def serving(*script: Reply, answer: Script | None = None) -> Iterator[Endpoint]:
    """The endpoint on a free port of this machine."""
    endpoint = Endpoint(answer or script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = endpoint.take(self.path, data, {k.lower(): v for k, v in self.headers.items()})
            time.sleep(reply.wait)
            endpoint.done()
            with suppress(BrokenPipeError, ConnectionResetError):  # the client gave up waiting
                self._say(reply)

        def _say(self, reply: Reply) -> None:
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data if reply.cut is None else data[: reply.cut])
            self.close_connection = reply.cut is not None

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.socket.close()
        thread.join()
