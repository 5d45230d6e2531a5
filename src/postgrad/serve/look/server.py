"""The page on this machine: it opens at once and fills while the store is read.

Only 127.0.0.1 is listened on, only GET is answered, and only to requests that name this machine as their host: a page
of another site that points its name here (DNS rebinding) gets nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from postgrad.core.errors import PostgradError
from postgrad.core.trace import Trace
from postgrad.serve.listening import cannot_listen
from postgrad.serve.look.page import live_page
from postgrad.serve.look.shelf import Shelf

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


@contextmanager
def looking(traces: Iterable[Trace], *, name: str, port: int = 0) -> Iterator[str]:
    """Serve the page until the block ends; yields its address. Port 0 takes a free one.

    Raises:
        ConfigError: the port is taken.
    """
    shelf = Shelf()
    try:
        server = ThreadingHTTPServer((HOST, port), _handler(shelf, live_page(name)))
    except OSError as error:
        raise cannot_listen(HOST, port, error) from error
    server.daemon_threads = True
    threads = [
        threading.Thread(target=server.serve_forever, name="postgrad-look", daemon=True),
        threading.Thread(target=_fill, args=(shelf, traces), name="postgrad-look-reader", daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def _fill(shelf: Shelf, traces: Iterable[Trace]) -> None:
    """Read the store; what stops the reading is told on the page."""
    try:
        shelf.fill(traces)
    except (PostgradError, OSError) as error:
        shelf.fault = str(error)


def _handler(shelf: Shelf, page: bytes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers for one shelf."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            name = self.headers.get("Host", "").rpartition(":")[0]
            if name not in (HOST, "localhost"):
                self._send(HTTPStatus.FORBIDDEN, b"this page is for this machine only", "text/plain")
            elif asked.path == "/":
                self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
            elif asked.path == "/api/rows":
                self._json(self._rows(_first(asked.query, "from")))
            elif asked.path == "/api/search":
                self._json(list(shelf.found(_first(asked.query, "words"))))
            else:
                self._trace(asked.path)

        def _rows(self, start: str) -> dict[str, object]:
            done, first = shelf.done, int(start) if start.isdecimal() else 0
            return {"rows": shelf.rows[first : first + 2000], "done": done, "fault": shelf.fault}

        def _trace(self, path: str) -> None:
            key = path.removeprefix("/api/trace/")
            try:
                packed = shelf.packed(int(key) if key.isdecimal() else -1)
            except IndexError:
                self._send(HTTPStatus.NOT_FOUND, b"no such trace", "text/plain")
                return
            self._send(HTTPStatus.OK, packed, "application/json", coding="deflate")

        def _json(self, value: object) -> None:
            self._send(HTTPStatus.OK, json.dumps(value).encode(), "application/json")

        def _send(self, status: HTTPStatus, body: bytes, kind: str, *, coding: str = "") -> None:
            self.send_response(status)
            for key, value in {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            if coding:
                self.send_header("Content-Encoding", coding)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """The terminal stays quiet."""

    return Handler


def _first(query: str, key: str) -> str:
    return parse_qs(query).get(key, [""])[0]
