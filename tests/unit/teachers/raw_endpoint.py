"""An endpoint below HTTP: it answers a request with bytes as they stand, slowly, in parts, or with a reset."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 seconds: closing sends RST


@dataclass(frozen=True)
class Bytes:
    """What to send: `parts` with `pause` seconds before each; then the connection ends, by a reset if so wanted."""

    parts: Sequence[bytes]
    pause: float = 0.0
    reset: bool = False


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A response with its length."""
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*chunks: bytes, end: bool) -> bytes:
    """A response in chunks; without its end it is truncated."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    said = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks)
    return head + said + (b"0\r\n\r\n" if end else b"")


def good(model: str = "asked-1") -> bytes:
    """The body of a chat completion that says hi."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    body = {"id": "x", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}
    return json.dumps(body).encode()


@contextmanager
def answering(*script: Bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Address, and the requests so far; one connection a request, the last of the script again and again."""
    listening = socket.create_server(("127.0.0.1", 0))
    requests: list[bytes] = []
    left, lock = list(script), threading.Lock()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the client may be gone
            request = _read(connection)
            if not request:
                return
            with lock:
                requests.append(request)
                reply = left.pop(0) if len(left) > 1 else left[0]
            for part in reply.parts:
                time.sleep(reply.pause)
                connection.sendall(part)
            if reply.reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def accept() -> None:
        with suppress(OSError):  # closed
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", requests
    finally:
        listening.close()


def _read(connection: socket.socket) -> bytes:
    """A request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
