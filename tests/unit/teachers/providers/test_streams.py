"""Streamed answers: put together they are what would have come in one piece; cut short they are no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.actor import Answer
from postgrad.core.message import Message, Reasoning, Text, ToolCall
from postgrad.teachers.money.prices import Price
from postgrad.teachers.providers.anthropic_messages import AnthropicMessages
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.ollama_native import OllamaNative
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.providers.provider import Provider
from postgrad.teachers.providers.streams import joined_completion
from unit.teachers.asking import SAMPLING, ask, teacher
from unit.teachers.raw_endpoint import Bytes, answering, chunked
from unit.teachers.test_hostile_endpoint import ONCE

MODEL = "asked-1"
ROME = '{"city": "Rome"}'


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"model": MODEL, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": None}


def called(**part: Any) -> dict[str, Any]:
    return chunk({"tool_calls": [part]})


CHUNKS = [
    chunk({"role": "assistant", "content": "Su"}),
    chunk({"content": "re."}),
    called(index=0, id="p0", type="function", function={"name": "get_weather", "arguments": ROME[:5]}),
    called(index=0, function={"arguments": ROME[5:]}),
    called(index=1, id="p1", function={"name": "get_weather", "arguments": "{}"}),
    chunk({}, "tool_calls"),
    {"model": MODEL, "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}},
]
EVENTS = [
    {
        "type": "message_start",
        "message": {"type": "message", "model": MODEL, "content": [], "usage": {"input_tokens": 100}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Sure."}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t", "name": "get_weather", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ROME[:5]}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ROME[5:]}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]
PARTS = [
    {"model": MODEL, "message": {"role": "assistant", "content": "Su"}, "done": False},
    {"model": MODEL, "message": {"role": "assistant", "content": "re."}, "done": False},
    {
        "model": MODEL,
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"b": 1}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 100,
        "eval_count": 20,
    },
]


def sse(events: list[dict[str, Any]], *, named: bool = False, done: str = "") -> list[bytes]:
    lines = [(f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in events]
    return [line.encode() for line in [*lines, *([f"data: {done}\n\n"] if done else [])]]


def answered(folder: Path, provider: Provider) -> Answer:
    (answer,) = teacher(folder, provider, price=Price(1.0, 1.0), limits=ONCE).answer([ask()], SAMPLING)
    return answer


def of_kind(kind: str, url: str) -> Provider:
    return {"openai": OpenAICompatible, "anthropic": AnthropicMessages, "ollama": OllamaNative}[kind](
        MODEL, url, stream=True
    )


STREAMS = {
    "openai": sse(CHUNKS, done="[DONE]"),
    "anthropic": sse(EVENTS, named=True),
    "ollama": [json.dumps(part).encode() + b"\n" for part in PARTS],
}


@pytest.mark.parametrize("kind", STREAMS)
def test_the_parts_are_one_answer_with_its_bill(tmp_path: Path, kind: str) -> None:
    """100 tokens read and 20 written at 1 US dollar a million."""
    with answering(Bytes([chunked(*STREAMS[kind], end=True)])) as (url, requests):
        answer = answered(tmp_path, of_kind(kind, url))
    assert answer.message is not None, answer.stop_reason
    assert answer.message.text == "Sure."
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost) == (100, 20, pytest.approx(120e-6))
    assert b'"stream":true' in requests[0].replace(b" ", b"")


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("whole_end", [True, False])
def test_a_stream_that_stops_in_the_middle_is_no_answer(tmp_path: Path, kind: str, whole_end: bool) -> None:
    """Whether the connection breaks or ends as if all were said."""
    with answering(Bytes([chunked(*STREAMS[kind][:2], end=whole_end)])) as (url, _):
        answer = answered(tmp_path, of_kind(kind, url))
    assert (answer.message, answer.error) == (None, "truncated")


FAULTS = {
    "openai": b'data: {"error": {"message": "overloaded"}}\n\n',
    "anthropic": b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}\n\n',
    "ollama": b'{"error": "out of memory"}\n',
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("said", [None, b"[1]\n", b"data: nonsense\n\n"])
def test_a_stream_that_tells_an_error_or_nonsense_is_no_answer(tmp_path: Path, kind: str, said: bytes | None) -> None:
    with answering(Bytes([chunked(STREAMS[kind][0], said or FAULTS[kind], end=True)])) as (url, _):
        answer = answered(tmp_path, of_kind(kind, url))
    assert answer.message is None
    assert answer.error in ("truncated", "invalid_reply")


def test_calls_and_thoughts_keep_their_places(tmp_path: Path) -> None:
    first = ToolCall.from_raw(id="call_0", name="get_weather", raw=ROME, provider_id="p0")
    second = ToolCall.from_raw(id="call_1", name="get_weather", raw="{}", provider_id="p1")
    with answering(Bytes([chunked(*STREAMS["openai"], end=True)])) as (url, _):
        answer = answered(tmp_path / "a", of_kind("openai", url))
    assert answer.message == Message("assistant", (Text("Sure."), first, second))
    third = ToolCall.from_raw(id="call_0", name="get_weather", raw=ROME, provider_id="t")
    with answering(Bytes([chunked(*STREAMS["anthropic"], end=True)])) as (url, _):
        answer = answered(tmp_path / "b", of_kind("anthropic", url))
    assert answer.message == Message("assistant", (Reasoning("hm", signature="s"), Text("Sure."), third))
    assert answer.stop_reason == "tool_use"


def test_servers_that_do_not_count_their_calls() -> None:
    """Two calls by their ids, the second in two pieces; the name may come again with every piece."""
    deltas = [
        called(id="a", function={"name": "f", "arguments": "{}"}),
        called(id="b", function={"name": "g", "arguments": '{"x"'}),
        called(id="b", function={"name": "g", "arguments": ": 1}"}),
    ]
    calls = joined_completion([*deltas, chunk({}, "stop")])["choices"][0]["message"]["tool_calls"]
    assert [call["function"] for call in calls] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": '{"x": 1}'},
    ]


def test_a_server_that_puts_all_calls_in_one_place() -> None:
    """Index 0 for both: the second id begins the second call. A new id without a name goes on with the call."""
    deltas = [
        called(index=0, id="a", function={"name": "f", "arguments": '{"x"'}),
        called(index=0, id="a2", function={"arguments": ": 1}"}),
        called(index=0, id="b", function={"name": "g", "arguments": {"y": 2}}),
    ]
    calls = joined_completion([*deltas, chunk({}, "stop")])["choices"][0]["message"]["tool_calls"]
    assert [call["function"] for call in calls] == [
        {"name": "f", "arguments": '{"x": 1}'},
        {"name": "g", "arguments": '{"y": 2}'},
    ]


WRONG_TYPES = {
    "openai": [{"choices": [None]}, {"choices": [{"delta": "x"}]}, called(index=0, function=1)],
    "anthropic": [
        {"type": "content_block_start", "index": "x", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": 1}},
        {"type": "message_delta", "delta": [1]},
    ],
    "ollama": [{"message": 1}],
}


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind, parts in WRONG_TYPES.items() for part in parts])
def test_parts_of_the_wrong_type_are_no_crash(tmp_path: Path, kind: str, part: dict[str, Any]) -> None:
    said = f"{json.dumps(part)}\n".encode() if kind == "ollama" else sse([part], named=kind == "anthropic")[0]
    parts = STREAMS[kind]
    with answering(Bytes([chunked(*parts[:-1], said, parts[-1], end=True)])) as (url, _):
        answer = answered(tmp_path, of_kind(kind, url))
    assert (answer.message, answer.error) in ((None, "invalid_reply"), (None, "truncated"))


@pytest.mark.parametrize("chunks", [[], [1], ["x"], [chunk({"content": "hi"})]])
def test_what_is_no_whole_stream(chunks: list[Any]) -> None:
    with pytest.raises(CallFailed):
        joined_completion(chunks)


def test_of_several_streamed_answers_the_one_of_index_0_is_taken() -> None:
    """Their parts come in turn; put together as they come they would be "no Yesirs"."""

    def part(place: int, text: str, finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": place, "delta": {"content": text}, "finish_reason": finish}]}

    parts = [part(1, "no "), part(0, "Ye"), part(1, "sir", "length"), part(0, "s", "stop")]
    (choice,) = joined_completion(parts)["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Yes", "stop")


def test_an_error_in_place_of_the_end_of_a_stream_is_no_answer() -> None:
    said = [
        chunk({"content": "Su"}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error", "error": "502"}]},
    ]
    with pytest.raises(CallFailed, match="502") as failed:
        OpenAICompatible(MODEL, "http://localhost:1/v1").read(joined_completion(said), ask())
    assert failed.value.kind == "invalid_reply"
