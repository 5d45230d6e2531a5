"""An endpoint that breaks HTTP, against every kind of network teacher: each fault has its name, and none is a crash."""

from __future__ import annotations

import dataclasses
import gzip
import importlib
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postgrad.core.actor import Answer
from postgrad.core.errors import ConfigError
from postgrad.teachers.gateway import Limits
from postgrad.teachers.money.prices import Price
from postgrad.teachers.providers.anthropic_messages import AnthropicMessages
from postgrad.teachers.providers.ollama_native import OllamaNative
from postgrad.teachers.providers.provider import Provider
from unit.teachers.asking import SAMPLING, ask, openai, teacher
from unit.teachers.raw_endpoint import Bytes, answering, chunked, good, whole

ONCE = Limits(timeout=2.0, max_retries=0)
HALF = good()[: len(good()) // 2]
KINDS: dict[str, Callable[[str], Provider]] = {
    "openai": openai,
    "anthropic": lambda url: AnthropicMessages("asked-1", url),
    "ollama": lambda url: OllamaNative("asked-1", url),
}
FAULTS = {
    "closed at once": (Bytes([]), "cut"),
    "reset at once": (Bytes([], reset=True), "cut"),
    "half a status line": (Bytes([b"HTTP/1"]), "cut"),
    "no HTTP": (Bytes([b"SSH-2.0-OpenSSH_9.6\r\n"]), "cut"),
    "half the headers": (Bytes([b"HTTP/1.1 200 OK\r\ncontent-ty"]), "cut"),
    "half a body": (Bytes([whole(good())[:-40]]), "truncated"),
    "half a body, then a reset": (Bytes([whole(good())[:-40], b""], pause=0.05, reset=True), "truncated"),
    "chunks without an end": (Bytes([chunked(HALF, end=False)]), "truncated"),
    "half a chunk": (Bytes([chunked(good(), end=False)[:-30]]), "truncated"),
    "a reset behind the headers": (
        Bytes([whole(good())[:60], whole(good())[60:120]], pause=0.05, reset=True),
        "truncated",
    ),
    "gzip that is none": (Bytes([whole(b"no gzip", "content-encoding: gzip")]), "truncated"),
    "gzip cut short": (Bytes([whole(gzip.compress(good())[:-20], "content-encoding: gzip")]), "invalid_reply"),
    "an encoding nobody knows": (Bytes([whole(b"\x00\x01", "content-encoding: zz")]), "invalid_reply"),
    "half a JSON": (Bytes([whole(HALF)]), "invalid_reply"),
    "no UTF-8": (Bytes([whole(b'{"model": "\xff\xfe"}')]), "invalid_reply"),
    "a page": (Bytes([whole(b"<html>gateway</html>")]), "invalid_reply"),
    "a stream nobody asked for": (Bytes([whole(b'data: {"choices": []}\n\ndata: [DO')]), "invalid_reply"),
    "nothing": (Bytes([whole(b"")]), "invalid_reply"),
    "null": (Bytes([whole(b"null")]), "invalid_reply"),
    "a list": (Bytes([whole(b"[1, 2]")]), "invalid_reply"),
    "a text": (Bytes([whole(b'"hello"')]), "invalid_reply"),
    "JSON that is nested without end": (Bytes([whole(b"[" * 100_000)]), "invalid_reply"),
    "headers that drip": (Bytes([b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n"] * 200], pause=0.1), "timeout"),
    "a body that drips": (Bytes([whole(good())[:-60], *[b"x"] * 200], pause=0.1), "timeout"),
    "a server error in a page": (Bytes([whole(b"<html>", status="502 Bad Gateway")]), "server_error"),
    "a status nobody knows": (Bytes([whole(b"", status="599 Eh")]), "server_error"),
    "a teapot": (Bytes([whole(b"", status="418 Teapot")]), "refused"),
    "nothing more": (Bytes([b"HTTP/1.1 204 No Content\r\n\r\n"]), "invalid_reply"),
}
LIKE_OPENAI = ("reset at once", "chunks without an end", "half a JSON", "headers that drip")
"""Enough for anthropic, whose SDK is of the same mould."""
CASES = [(kind, fault) for kind in KINDS for fault in FAULTS if kind != "anthropic" or fault in LIKE_OPENAI]


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """So that no test measures how long importing an SDK takes."""
    for name in ("anthropic", "ollama", "openai"):
        importlib.import_module(name)


def answered(folder: Path, provider: Provider, limits: Limits = ONCE) -> Answer:
    (answer,) = teacher(folder, provider, limits=limits).answer([ask()], SAMPLING)
    return answer


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_a_fault_has_its_name(tmp_path: Path, kind: str, fault: str) -> None:
    """And the money: whatever is no status may have been billed, for the request was read."""
    reply, expected = FAULTS[fault]
    limits = Limits(timeout=0.7, max_retries=0) if expected == "timeout" else ONCE
    with answering(reply) as (url, requests):
        asked = teacher(tmp_path, KINDS[kind](url), price=Price(1.0, 1.0), limits=limits)
        started = time.monotonic()
        (answer,) = asked.answer([ask()], SAMPLING)
    assert (answer.message, answer.error) == (None, expected), answer.stop_reason
    assert len(requests) == 1
    assert (asked.gateway.budget.uncertain > 0) == (expected not in ("server_error", "refused"))
    assert time.monotonic() - started < 10.0  # a drip takes as long as it likes only where nobody watches the clock


@pytest.mark.parametrize("reply", [Bytes([]), Bytes([], reset=True)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_that_is_cut_before_it_begins_may_have_been_billed(tmp_path: Path, kind: str, reply: Bytes) -> None:
    with answering(reply) as (url, _):
        provider = dataclasses.replace(KINDS[kind](url), stream=True)  # type: ignore[type-var]
        asked = teacher(tmp_path, provider, price=Price(1.0, 1.0), limits=ONCE)
        (answer,) = asked.answer([ask()], SAMPLING)
    assert answer.error == "cut"
    assert asked.gateway.budget.uncertain > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_is_refused_is_free(tmp_path: Path, kind: str) -> None:
    with socket.socket() as nobody:  # a port that is taken, and at which nobody listens
        nobody.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        asked = teacher(tmp_path, KINDS[kind](gone), price=Price(1.0, 1.0), limits=ONCE)
        (answer,) = asked.answer([ask()], SAMPLING)
    assert answer.error == "connection"
    assert asked.gateway.budget.uncertain == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_reset_it_is_asked_again(tmp_path: Path, kind: str) -> None:
    """The second try gets what the third would: both are answered by the same script."""
    again = Limits(timeout=5.0, max_retries=1)
    with answering(Bytes([], reset=True), Bytes([whole(b"", status="400 Bad Request")])) as (url, requests):
        answer = answered(tmp_path, KINDS[kind](url), again)
    assert (answer.error, len(requests)) == ("refused", 2)


def test_a_compressed_answer_and_one_in_chunks_are_read(tmp_path: Path) -> None:
    zipped = Bytes([whole(gzip.compress(good()), "content-encoding: gzip")])
    slow = Bytes([chunked(good()[:10], good()[10:], end=True)])
    for number, reply in enumerate((zipped, slow)):
        with answering(reply) as (url, _):
            answer = answered(tmp_path / str(number), openai(url))
        assert answer.message is not None
        assert answer.message.text == "hi"


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_key_says_what_to_look_at(tmp_path: Path, kind: str) -> None:
    with answering(Bytes([whole(b'{"error": "bad key"}', status="401 Unauthorized")])) as (url, requests):
        with pytest.raises(ConfigError, match=r"401.*api_key_env"):
            answered(tmp_path, KINDS[kind](url))
        assert len(requests) == 1
