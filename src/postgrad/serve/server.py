"""`serving`: the endpoint on a real socket, in a thread of this process, for as long as a `with` block lasts.

Not covered: TLS, authentication and several models; put a proxy before it when it must be reached from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from postgrad.serve.app import build_app
from postgrad.serve.engine import Engine
from postgrad.serve.exchange import Service
from postgrad.serve.http import Socket, http_server
from postgrad.serve.log import CaptureLog
from postgrad.serve.request import Defaults
from postgrad.serve.worker import Turns


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
    try:
        with http_server(build_app(service), Socket(listening.host, listening.port)) as address:
            yield Running(f"{address}/v1", service)
    finally:
        service.worker.close()
