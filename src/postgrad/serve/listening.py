"""`listen`: a socket bound to an address; a taken port is told with who has it, where the system says."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from postgrad.core.errors import ConfigError, OutsideFailure

_LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp."""


def listen(host: str, port: int) -> socket.socket:
    """A TCP socket bound to `host` and `port`; port 0 takes a free one.

    Raises:
        ConfigError: somebody else listens there.
        OutsideFailure: the address is not this machine's, or the port needs rights.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's delay off only for sockets that say TCP; with it every small answer waits for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise cannot_listen(host, port, error) from error
    return listener


def require_free(host: str, port: int) -> None:
    """Refuse a port that is taken now.

    Raises:
        ConfigError: it is.
        OutsideFailure: as `listen`.
    """
    if port:
        listen(host, port).close()


def cannot_listen(host: str, port: int, error: OSError) -> ConfigError | OutsideFailure:
    """What to tell about `error`: a taken port is for the user to change, so nothing else is advised."""
    if error.errno != errno.EADDRINUSE:
        return OutsideFailure(f"cannot listen on {host}:{port}: {error.strerror or error}")
    holder = _holder(port)
    by = f" ({holder} listens there)" if holder else ""
    return ConfigError(f"port {port} is taken{by}", do="give another --port, or --port 0 for a free one")


def _holder(port: int) -> str:
    """The process that listens on `port`, as far as Linux lets this user see it."""
    try:
        tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
        rows = [line.split() for table in tables for line in table]
    except OSError:
        return ""
    here = f":{port:04X}"
    sockets = {f"socket:[{row[9]}]" for row in rows if row[3] == _LISTENING and row[1].endswith(here)}
    for descriptor in Path("/proc").glob("[0-9]*/fd/*") if sockets else ():
        try:
            if os.readlink(descriptor) in sockets:
                process = descriptor.parents[1]
                return f"process {process.name}, {(process / 'comm').read_text().strip()},"
        except OSError:  # it ended, or is somebody else's
            continue
    return ""
