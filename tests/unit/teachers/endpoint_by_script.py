"""A local HTTP server that plays an OpenAI endpoint: for each request the next line of its script."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What to say: a status, a body (bytes go out as they are), headers, and how long to wait before."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0


def completion(
    text: str | None = None, calls: Sequence[tuple[str, str]] = (), *, model: str = "served-1", finish: str = "stop"
) -> Reply:
    """A chat completion that took 100 tokens to read and 20 to write."""
    named = [
        {"id": f"p{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": named} if named else {})}
    return Reply(
        {
            "id": "x",
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        }
    )


class Endpoint:
    """Replies in order; the last one again and again. `requests` are the bodies that came in, with their headers."""

    def __init__(self, script: Sequence[Reply]) -> None:
        self._script, self._lock = list(script), threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.most_at_once = self._now = 0
        self.base_url = ""

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> Reply:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            return self._script.pop(0) if len(self._script) > 1 else self._script[0]

    def done(self) -> None:
        with self._lock:
            self._now -= 1


@contextmanager
def serving(*script: Reply) -> Iterator[Endpoint]:
    """The endpoint on a free port of this machine."""
    endpoint = Endpoint(script)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            reply = endpoint.take(json.loads(self.rfile.read(length)), {k.lower(): v for k, v in self.headers.items()})
            time.sleep(reply.wait)
            data = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            endpoint.done()
            try:
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except BrokenPipeError:
                pass  # the client gave up waiting

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
