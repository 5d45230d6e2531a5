"""A recording around a command, or until it is stopped.

The command gets its own standard streams and the terminal's Ctrl-C; SIGTERM and SIGHUP are handed on to it. The
recording ends after the command has: calls that it left behind get the server's grace and are then recorded as cut.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.errors import ConfigError
from postgrad.serve.http import Socket, http_server
from postgrad.serve.recording.proxy import Proxy
from postgrad.serve.recording.recorder import Recorder, credentials_of_environment
from postgrad.serve.recording.upstreams import Upstreams
from postgrad.serve.waiting import handled

# The APIs keep idle connections open for minutes. A shorter time here would close one under a client that uses it.
_IDLE_SECONDS = 600
# While a line is being made the server waits for the interpreter at most this long, instead of Python's 5 ms.
_SWITCH_SECONDS = 0.0002
_NOT_RUN = 128  # what shells add to the number of the signal that ended a command


@dataclass(frozen=True)
class Recording:
    """A recording that goes on: where clients reach it, and what has been written so far."""

    address: str
    recorder: Recorder


@contextmanager
def recording(
    folder: Path, upstreams: Upstreams, *, environment: Mapping[str, Any], host: str = "127.0.0.1", port: int = 0
) -> Iterator[Recording]:
    """Record what passes until the block ends; every call is on the disk then.

    Raises:
        OutsideFailure: the port is taken, or the server does not start.
    """
    recorder = Recorder(folder, environment=environment, secrets=credentials_of_environment())
    # What the server would log of a broken stream, the client sees and the recording says.
    socket = Socket(host, port, log_level="critical", idle_seconds=_IDLE_SECONDS, own_headers=False)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with http_server(Proxy(upstreams, recorder), socket) as address:
            yield Recording(address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:"), recorder)
    finally:
        recorder.close()
        sys.setswitchinterval(before)


def run_command(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run `command` with further environment variables; its exit code, as a shell tells it.

    Raises:
        ConfigError: there is no such program.
    """
    try:
        process = subprocess.Popen(list(command), env={**os.environ, **variables})
    except (FileNotFoundError, PermissionError) as error:
        raise ConfigError(f"cannot run the command: {error.strerror}", got=command[0]) from None
    forwarded = {signal.SIGTERM: process.send_signal, signal.SIGHUP: process.send_signal}
    with handled({signal.SIGINT: _leave_to_command, **forwarded}):
        code = process.wait()
    return code if code >= 0 else _NOT_RUN - code


def _leave_to_command(number: int) -> None:
    """The terminal sends Ctrl-C to the command as well; what it makes of it decides when the recording ends."""
