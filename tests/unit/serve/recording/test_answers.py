"""Folding: a stream gives the object of the plain answer; cut anywhere it gives a beginning of it, and never fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postgrad.serve.recording.answers import fold_chat, fold_messages, fold_responses, has_ended
from postgrad.serve.recording.bodies import decoded, read_answer, read_object
from unit.serve.recording.scripted_api import (
    CHAT,
    MESSAGE,
    RESPONSE,
    chat_events,
    message_events,
    response_events,
    stream,
)

CHAT_STREAM = b"".join(stream(chat_events(), named=False)).decode()
MESSAGE_STREAM = b"".join(stream(message_events(), named=True)).decode()
RESPONSE_STREAM = b"".join(stream(response_events(), named=True)).decode()
FOLDS: list[tuple[Any, str]] = [
    (fold_chat, CHAT_STREAM),
    (fold_messages, MESSAGE_STREAM),
    (fold_responses, RESPONSE_STREAM),
]


def test_streams_fold_to_the_plain_answers() -> None:
    assert fold_chat(CHAT_STREAM) == CHAT
    assert fold_messages(MESSAGE_STREAM) == MESSAGE
    assert fold_responses(RESPONSE_STREAM) == RESPONSE


def test_an_end_without_output_takes_the_items() -> None:
    assert fold_responses(b"".join(stream(response_events(whole=False), named=True)).decode()) == RESPONSE


def test_deltas_alone_build_items() -> None:
    """The same stream without the items' ends, cut before the answer's end: what the deltas say, marked incomplete."""
    events = [e for e in response_events() if e["type"] not in ("response.output_item.done", "response.completed")]
    folded = fold_responses(b"".join(stream(events, named=True)).decode())
    assert folded["status"] == "incomplete"
    assert folded["output"][0]["summary"] == [{"type": "summary_text", "text": "two numbers"}]
    assert folded["output"][1]["content"][0]["text"] == "Grüße"
    assert folded["output"][2]["arguments"] == '{"b": 2, "a": 1}'


@pytest.mark.parametrize(("fold", "text"), FOLDS, ids=["chat", "messages", "responses"])
def test_a_cut_anywhere_is_no_end_and_no_fault(fold: Any, text: str) -> None:
    assert has_ended(text)
    last = max(
        text.rstrip().rfind("data: [DONE]"), text.rfind("event: message_stop"), text.rfind("event: response.completed")
    )
    for cut in range(0, last, 37):
        assert isinstance(fold(text[:cut]), dict)
        assert not has_ended(text[:cut])


def test_arguments_that_were_cut_stay_text() -> None:
    events = [*message_events()[:-4], {"type": "content_block_stop", "index": 2}]
    folded = fold_messages(b"".join(stream(events, named=True)).decode())
    assert folded["content"][2]["input"] == '{"b": 2,'
    assert folded["stop_reason"] is None


def test_errors_within_a_stream() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    folded = fold_messages(b"".join(stream([*message_events()[:3], error], named=True)).decode())
    assert folded["error"] == error["error"]
    folded = fold_responses(
        b"".join(stream([{"type": "error", "code": "x", "message": "no", "param": None}], named=True)).decode()
    )
    assert folded["error"] == {"code": "x", "message": "no", "param": None}


def test_citations_and_foreign_deltas() -> None:
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 1}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 2}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "news": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta", "news": "b"}},
        {"type": "content_block_delta", "index": "x", "delta": 5},
    ]
    [block] = fold_messages(b"".join(stream(events, named=True)).decode())["content"]
    assert block == {"type": "text", "text": "", "citations": [{"n": 1}, {"n": 2}], "news": "ab"}


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", "gzip, zstd", "identity", ""])
def test_codings_are_undone_and_a_cut_body_gives_its_beginning(coding: str) -> None:
    import gzip
    import zlib

    import zstandard

    plain = json.dumps({"a": "x" * 5000}).encode()
    body = plain
    for one in [part.strip() for part in coding.split(",")]:
        pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}.get(one)
        body = pack(body) if pack else body
    assert decoded(body, coding) == plain
    assert plain.startswith(decoded(body[: len(body) // 2], coding))
    assert decoded(b"", coding) == b""


def test_raw_deflate_and_several_gzip_members() -> None:
    import gzip
    import zlib

    engine = zlib.compressobj(wbits=-15)
    assert decoded(engine.compress(b"abc") + engine.flush(), "deflate") == b"abc"
    assert decoded(gzip.compress(b"a") + gzip.compress(b"b"), "gzip") == b"ab"
    assert decoded(b"no gzip", "gzip") == b""


@pytest.mark.parametrize("data", [b"", b"[1]", b"{no", b"\xff\xfe", b'"x"', b'{"a":' * 500 + b"1" + b"}" * 500])
def test_what_is_no_object(data: bytes) -> None:
    assert read_object(data) is None
    assert isinstance(read_answer("openai_chat", data, content_type="application/json"), dict)
