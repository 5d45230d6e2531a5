"""A local API in place of OpenAI's and Anthropic's: it keeps what it was sent and answers by script.

The `model` of a request chooses the answer: a status ("429"), "slow" (the second half of the stream waits for
`release`), "break" (the connection is closed in the middle), "hang" (no answer until `release`), else a plain answer,
or a stream where the request asks for one.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

from postgrad.serve.http import Socket, http_server

Events = list[dict[str, Any]]

CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"b": 2, "a": 1}'}}
CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "m-2024",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Grüße", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "two numbers", "signature": "c2ln"},
        {"type": "text", "text": "Grüße"},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"b": 2, "a": 1}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 9, "cache_read_input_tokens": 7},
}
ITEMS: Events = [
    {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "two numbers"}]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Grüße", "annotations": []}],
    },
    {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "call_1",
        "name": "add",
        "arguments": '{"b": 2, "a": 1}',
        "status": "completed",
    },
]
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1700000000,
    "status": "completed",
    "model": "m-2024",
    "output": ITEMS,
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}


def chat_events() -> Events:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m-2024"}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": ""},
        {"content": "Grü"},
        {"content": "ße"},
        {
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"b": 2,'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ' "a": 1}'}}]},
    ]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return [*events, {**head, "choices": [], "usage": CHAT["usage"]}]


def message_events() -> Events:
    start = {
        **MESSAGE,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 7},
    }
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "two "},
                {"type": "thinking_delta", "thinking": "numbers"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Grü"}, {"type": "text_delta", "text": "ße"}]),
        (
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
            [{"type": "input_json_delta", "partial_json": part} for part in ("", '{"b": 2,', ' "a": 1}')],
        ),
    ]
    events: Events = [{"type": "message_start", "message": start}, {"type": "ping"}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    return [
        *events,
        {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def response_events(*, whole: bool = True) -> Events:
    """With `whole` False the last event has no output, as some servers send it."""
    empty = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    begun = [{**ITEMS[0], "summary": []}, {**ITEMS[1], "content": []}, {**ITEMS[2], "arguments": ""}]
    part = {"type": "output_text", "text": "", "annotations": []}

    def event(kind: str, place: int, **told: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "output_index": place, "item_id": ITEMS[place]["id"], **told}

    events: Events = [
        {"type": "response.created", "response": empty},
        {"type": "response.in_progress", "response": empty},
        event("output_item.added", 0, item=begun[0]),
        event("reasoning_summary_text.delta", 0, summary_index=0, delta="two numbers"),
        event("output_item.done", 0, item=ITEMS[0]),
        event("output_item.added", 1, item=begun[1]),
        event("content_part.added", 1, content_index=0, part=part),
        event("output_text.delta", 1, content_index=0, delta="Grü", logprobs=[]),
        event("output_text.delta", 1, content_index=0, delta="ße", logprobs=[]),
        event("output_item.done", 1, item=ITEMS[1]),
        event("output_item.added", 2, item=begun[2]),
        event("function_call_arguments.delta", 2, delta='{"b": 2,'),
        event("function_call_arguments.delta", 2, delta=' "a": 1}'),
        event("output_item.done", 2, item=ITEMS[2]),
        {"type": "response.completed", "response": RESPONSE if whole else {**RESPONSE, "output": []}},
    ]
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


def stream(events: Events, *, named: bool) -> list[bytes]:
    """Events as they go over the wire; OpenAI's chat has no event names and ends with a mark."""
    lines = [
        (f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one, ensure_ascii=False)}\n\n"
        for one in events
    ]
    return [line.encode() for line in lines] + ([] if named else [b"data: [DONE]\n\n"])


@dataclass
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value


@dataclass
class ScriptedApi:
    """The ASGI application. `gone` is set when a client closes its connection before its answer ends."""

    asked: list[Asked] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        asked = Asked(scope["method"], scope["path"], scope["query_string"].decode(), headers, body)
        self.asked.append(asked)
        watcher = asyncio.create_task(self._watch(receive))
        await self._answer(asked, send)
        watcher.cancel()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone.set()

    async def _released(self) -> None:
        while not (self.release.is_set() or self.gone.is_set()):
            await asyncio.sleep(0.005)

    async def _answer(self, asked: Asked, send: Send) -> None:
        try:
            request = (
                asked.json
                if asked.headers.get("content-encoding") != "gzip"
                else json.loads(gzip.decompress(asked.body))
            )
        except ValueError:
            request = {}
        model = str(request.get("model", ""))
        api = asked.path.rpartition("/")[2]
        if model == "hang":
            await self._released()
        if model.isdigit():
            await self._error(int(model), asked, send)
        elif api in ("models", "count_tokens"):
            await self._plain({"object": "list", "data": [], "input_tokens": 3}, asked, send)
        elif request.get("stream"):
            await self._stream(api, model, send)
        else:
            await self._plain(
                {"completions": CHAT, "messages": MESSAGE, "responses": RESPONSE}.get(api, {"path": asked.path}),
                asked,
                send,
            )

    async def _error(self, status: int, asked: Asked, send: Send) -> None:
        detail = {"message": f"no: {status}", "type": "some_error", "param": "model", "code": "some_code"}
        wrapped = {"type": "error"} if asked.path.endswith("/messages") else {}
        body = b"<html>502</html>" if status == 502 else json.dumps({**wrapped, "error": detail}).encode()
        kind = b"text/html" if status == 502 else b"application/json"
        headers = [
            (b"content-type", kind),
            (b"retry-after", b"17"),
            (b"x-request-id", b"req_9"),
            (b"set-cookie", b"a=1"),
            (b"set-cookie", b"b=2"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _plain(self, value: Any, asked: Asked, send: Send) -> None:
        body = json.dumps(value, ensure_ascii=False).encode()
        headers = [(b"content-type", b"application/json"), (b"x-request-id", b"req_1")]
        if "gzip" in asked.headers.get("accept-encoding", ""):
            body = gzip.compress(body)
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, api: str, model: str, send: Send) -> None:
        events = {"completions": chat_events, "messages": message_events, "responses": response_events}[api]()
        pieces = stream(events, named=api != "completions")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for number, piece in enumerate(pieces):
            if number == len(pieces) // 2 and model in ("slow", "break"):
                if model == "break":
                    return  # without an end: the server closes the connection
                await self._released()
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@contextmanager
def scripted_api() -> Iterator[tuple[ScriptedApi, str]]:
    """The API and its address."""
    api = ScriptedApi()
    with http_server(api, Socket(log_level="critical")) as address:
        try:
            yield api, address
        finally:
            api.release.set()
