"""Texts that are long and all alike end in time: an expression that looks back for every character would take hours.

The limit is no measure of speed. What is linear takes a tenth of a second; what is not takes minutes to years.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from postgrad.core.message import Message
from postgrad.signals.error_sites.sites import find_sites
from unit.signals.traces_by_hand import TraceBuilder, act, bash

SECONDS, LENGTH = 30, 100_000
WORDS = ("the a ", " ", "word ", "\n", "it is not ", "ok, ", "a.b/", "error: ", "1", "1,", "-", '"', "a", "\t", "(")
LINES = ('  File "a", line 1\n', "\nerror\n", "# a\n", "a:1:", "[", "{", "\x1b[31m", "the page has a, ", "=", "<")
COMMANDS = (
    *("git -c x ", "git commit ", "python -m ", "uv run ", "npx --yes ", "make all ", "kubectl get ", "aws ls "),
    *("terraform -x ", "curl -f ", "a && ", "a ; ", "a | ", "'a' ", "$(a ", "cd /x && ", "FOO=1 ", "sudo ", "xargs "),
    *("docker exec a ", "bash -c ", "<<EOF\n", "|| ", "cat a > b ", "sed -i s/a/b/ c; ", "for x in a; do "),
)


@contextmanager
def in_time() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise AssertionError(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def repeated(part: str) -> str:
    return part * (LENGTH // len(part))


@pytest.mark.parametrize("part", [*WORDS, *LINES])
def test_results_answers_and_users_words(part: str) -> None:
    text = repeated(part)
    trace = (
        TraceBuilder()
        .step(act(bash("pytest -q")), [(f"Exit code 1\n{text}", True)])
        .step(act(bash("make", "c1")), [(text, None)])
        .event("user_text", text)
        .step(Message.of("assistant", text))
        .event("user_text", text)
        .build()
    )
    with in_time():
        find_sites(trace)


@pytest.mark.parametrize("part", COMMANDS)
@pytest.mark.parametrize("end", ["", "zzz"])
def test_commands(part: str, end: str) -> None:
    trace = TraceBuilder().step(act(bash(repeated(part) + end)), [("Exit code 1\nno", True)]).build()
    with in_time():
        find_sites(trace)
