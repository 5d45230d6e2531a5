"""Ctrl-C and SIGTERM in a replay: the first ends it when the calls under way have their answers, the next at once.

A call that is broken off is billed all the same, and asked and billed again by the next run. Signals reach the main
thread only, so elsewhere nothing is changed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from postgrad.core.actor import Sampling
from postgrad.teachers.gateway import Gateway
from postgrad.teachers.network import NetworkTeacher
from postgrad.teachers.replay import Teacher

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Heard:
    """The name of the signal that asked a replay to end, None where none did."""

    name: str | None = None


@contextmanager
def ending(gateway: Gateway, teachers: Sequence[Teacher], sampling: Sampling) -> Iterator[Heard]:
    """Listen for the signals while the block lasts.

    Raises:
        SystemExit: a second one; 128 and its number.
    """
    from postgrad.serve.waiting import handled

    heard = Heard()
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    wait = _what_is_waited_for(teachers, sampling)

    def hear(number: int) -> None:
        name = signal.Signals(number).name
        if heard.name is not None:
            raise SystemExit(128 + number)
        heard.name = name
        gateway.stop.ask()
        # Printing is not safe here: the signal may have come in the middle of a print. And whoever reads this may have
        # got the signal as well (`2>&1 | tee log`): no reason to drop calls.
        with suppress(OSError):
            os.write(2, f"{name}: no new calls; waiting for {wait}; once more leaves at once\n".encode())

    with handled(dict.fromkeys(SIGNALS, hear)):
        yield heard


def _what_is_waited_for(teachers: Sequence[Teacher], sampling: Sampling) -> str:
    """In words; a call takes its timeout at most, and of a local model nobody knows."""
    network = [teacher.actor for teacher in teachers if isinstance(teacher.actor, NetworkTeacher)]
    limits = [endpoint.limits for actor in network for endpoint in actor.endpoints]
    longest = max((limit.seconds(sampling) for limit in limits), default=0.0)
    calls = [f"calls under way (at most {longest:g} s)"] if network else []
    others = ["answers that a model is being run for"] if len(network) < len(teachers) else []
    return " and ".join(calls + others)
