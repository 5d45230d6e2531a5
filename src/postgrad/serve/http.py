"""`http_server`: an ASGI application on a real socket, in a thread of this process, while a `with` block lasts."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from postgrad.core.errors import OutsideFailure
from postgrad.serve.listening import listen

# A stop lets exchanges in work go on for this long; then they are cancelled.
GRACE_SECONDS = 3
START_SECONDS = 30


@dataclass(frozen=True)
class Socket:
    """Where to listen, and how the HTTP server behaves. Port 0 takes a free one.

    `log_level` is uvicorn's; `idle_seconds` is how long a connection may stay open without a request; `own_headers`
    adds `server` and `date` to every response.
    """

    host: str = "127.0.0.1"
    port: int = 0
    log_level: str = "warning"
    idle_seconds: int = 5
    own_headers: bool = True


@contextmanager
def http_server(app: ASGIApp, where: Socket) -> Iterator[str]:
    """Serve `app` until the block ends; yields the address, such as ``http://127.0.0.1:8000``.

    Raises:
        ConfigError: the port is taken.
        OutsideFailure: the server does not start.
    """
    listener = listen(where.host, where.port)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level=where.log_level,
            access_log=False,
            ws="none",
            server_header=where.own_headers,
            date_header=where.own_headers,
            timeout_keep_alive=where.idle_seconds,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="postgrad-http", daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield _address(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise OutsideFailure("the HTTP server did not start")
        time.sleep(0.01)
