"""`serving`: the endpoint on a real socket, in a thread of this process, for as long as a `with` block lasts.

Not covered: TLS, authentication and several models; put a proxy before it when it must be reached from outside.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from postgrad.core.errors import OutsideFailure
from postgrad.serve.app import build_app
from postgrad.serve.engine import Engine
from postgrad.serve.exchange import Service
from postgrad.serve.log import CaptureLog
from postgrad.serve.request import Defaults
from postgrad.serve.worker import Turns

# A stop lets exchanges in work go on for this long; then they are cancelled and captured as such.
GRACE_SECONDS = 3
START_SECONDS = 30


@dataclass(frozen=True)
class Listening:
    """Where and how to serve. Port 0 takes a free one."""

    captures: Path
    host: str = "127.0.0.1"
    port: int = 0
    max_queue: int = 16
    defaults: Defaults = field(default_factory=Defaults)


@dataclass(frozen=True)
class Running:
    """A server that accepts requests at `address`, such as ``http://127.0.0.1:8000/v1``."""

    address: str
    service: Service


@contextmanager
def serving(engine: Engine, listening: Listening) -> Iterator[Running]:
    """Serve `engine` until the block ends; then finish or cancel what is in work and free the port.

    Raises:
        OutsideFailure: the port is taken, or the server does not start.
    """
    captures = CaptureLog(listening.captures)
    service = Service(engine, Turns(listening.max_queue), captures, listening.defaults)
    listener = _bind(listening.host, listening.port)
    server = uvicorn.Server(
        uvicorn.Config(
            build_app(service),
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="postgrad-http", daemon=True)
    thread.start()
    try:
        _wait_until_started(server, thread)
        yield Running(_address(listener), service)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
        service.worker.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OutsideFailure(f"cannot listen on {host}:{port}: {error.strerror or error}; try --port 0") from error
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise OutsideFailure("the HTTP server did not start")
        time.sleep(0.01)
