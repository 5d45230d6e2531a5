"""The official clients through the recorder: what they see is what the API says, and every call is written down."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from postgrad.serve.recording.session import Recording, recording
from postgrad.serve.recording.upstreams import Upstreams
from postgrad.traces.readers import read
from unit.serve.recording.scripted_api import CHAT, MESSAGE, RESPONSE, ScriptedApi, scripted_api

USER: list[Any] = [{"role": "user", "content": "What is 1 + 2?"}]
CHAT_TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {"name": "add", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}},
    }
]
TOOLS: list[Any] = [
    {"name": "add", "description": "Add.", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}}
]
KEY = "sk-proj-Zq8vT2mN4xR7wL1kJ5hG9dF3sA6pB0cE"


@dataclass
class Setting:
    """The API behind, the recorder before it, and the files that it writes."""

    api: ScriptedApi
    upstream: str
    recording: Recording
    folder: Path

    def lines(self, api: str, *, calls: int = 1) -> list[dict[str, Any]]:
        """The recorded calls of an API, once `calls` of all APIs are there: they are written after their answers."""
        counts = self.recording.recorder.counts
        wait_for(lambda: counts.recorded + counts.unreadable == calls)
        path = self.folder / f"{api}.jsonl"
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []

    def openai(self, **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=f"{self.recording.address}/v1", api_key=KEY, max_retries=0, **options)

    def anthropic(self, **options: Any) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.recording.address, api_key=KEY, max_retries=0, **options)


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with scripted_api() as (api, address):
        upstreams = Upstreams(f"{address}/v1", address)
        with recording(tmp_path, upstreams, environment={"session": "s"}) as running:
            yield Setting(api, address, running, tmp_path)
            api.release.set()


def wait_for(condition: Callable[[], bool], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_chat(setting: Setting) -> None:
    answer = setting.openai().chat.completions.create(model="m", messages=USER, tools=CHAT_TOOLS, temperature=0.5)
    assert answer.choices[0].message.content == "Grüße"
    [line] = setting.lines("openai_chat")
    assert line["request"] == {"model": "m", "messages": USER, "tools": CHAT_TOOLS, "temperature": 0.5}
    assert list(line["request"]["tools"][0]["function"]["parameters"]["properties"]) == ["b", "a"], "the order is kept"
    assert line["response"] == CHAT
    assert (line["provider"], line["path"], line["status"], line["stream"]) == (
        "openai",
        "/v1/chat/completions",
        200,
        False,
    )
    assert line["environment"] == {"session": "s"}
    assert "aborted" not in line


def test_chat_streamed_folds_to_the_plain_answer(setting: Setting) -> None:
    chunks = list(setting.openai().chat.completions.create(model="m", messages=USER, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Grüße"
    [line] = setting.lines("openai_chat")
    assert line["response"] == CHAT
    assert line["stream"]
    assert "aborted" not in line


@pytest.mark.parametrize("streamed", [False, True])
def test_messages(setting: Setting, streamed: bool) -> None:
    ask: Any = {"model": "c", "max_tokens": 9, "messages": USER, "system": "Be brief.", "tools": TOOLS}
    if streamed:
        with setting.anthropic().messages.stream(**ask) as stream:
            answer = stream.get_final_message()
    else:
        answer = setting.anthropic().messages.create(**ask)
    assert [block.type for block in answer.content] == ["thinking", "text", "tool_use"]
    [line] = setting.lines("anthropic_messages")
    assert {key: line["request"][key] for key in ask} == ask
    assert line["response"] == MESSAGE
    assert list(line["response"]["content"][2]["input"]) == ["b", "a"]
    assert (line["provider"], line["path"], line["stream"]) == ("anthropic", "/v1/messages", streamed)
    assert line["api_headers"]["anthropic-version"] == setting.api.asked[0].headers["anthropic-version"]


@pytest.mark.parametrize("streamed", [False, True])
def test_responses(setting: Setting, streamed: bool) -> None:
    ask: Any = {"model": "m", "input": "What is 1 + 2?", "instructions": "Be brief."}
    if streamed:
        with setting.openai().responses.stream(**ask) as stream:
            answer = stream.get_final_response()
    else:
        answer = setting.openai().responses.create(**ask)
    assert answer.output_text == "Grüße"
    [line] = setting.lines("openai_responses")
    assert line["request"].items() >= ask.items()
    assert line["response"] == RESPONSE


def test_async_clients_at_once(setting: Setting) -> None:
    """20 calls of both APIs at the same time, streamed and plain; each has its own line."""

    async def ask(number: int) -> None:
        said: list[Any] = [{"role": "user", "content": f"number {number}"}]
        if number % 2:
            chat = openai.AsyncOpenAI(base_url=f"{setting.recording.address}/openai/v1", api_key=KEY, max_retries=0)
            async with chat:
                stream = await chat.chat.completions.create(model="m", messages=said, stream=True)
                assert [chunk async for chunk in stream]
        else:
            claude = anthropic.AsyncAnthropic(
                base_url=f"{setting.recording.address}/anthropic", api_key=KEY, max_retries=0
            )
            async with claude:
                assert (await claude.messages.create(model="c", max_tokens=9, messages=said)).id == "msg_1"

    async def all_of_them() -> None:
        await asyncio.gather(*(ask(number) for number in range(20)))

    asyncio.run(all_of_them())
    lines = setting.lines("openai_chat", calls=20) + setting.lines("anthropic_messages", calls=20)
    assert sorted(line["request"]["messages"][0]["content"] for line in lines) == sorted(
        f"number {n}" for n in range(20)
    )
    assert not [line for line in lines if line.get("aborted")]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "BadRequestError"),
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
    ],
)
def test_errors_pass_unchanged(setting: Setting, status: int, kind: str) -> None:
    """Status, headers (two cookies among them) and body are those of the API; the call is recorded with its error."""
    model = str(status)
    with pytest.raises(openai.APIStatusError) as chat:
        setting.openai().chat.completions.create(model=model, messages=USER)
    with pytest.raises(anthropic.APIStatusError) as claude:
        setting.anthropic().messages.create(model=model, max_tokens=9, messages=USER)
    assert {type(chat.value).__name__, type(claude.value).__name__} == {kind}
    direct = httpx.post(f"{setting.upstream}/v1/chat/completions", json={"model": model})
    through = httpx.post(f"{setting.recording.address}/v1/chat/completions", json={"model": model})
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    own = {"date", "server", "transfer-encoding", "content-length", "connection"}
    assert [h for h in through.headers.multi_items() if h[0] not in own] == [
        h for h in direct.headers.multi_items() if h[0] not in own
    ]
    [line, _] = setting.lines("openai_chat", calls=3)
    assert (line["status"], line["response"]["error"]["message"]) == (status, f"no: {status}")
    assert setting.recording.recorder.counts.errors == 3


def test_an_error_that_is_no_json(setting: Setting) -> None:
    with pytest.raises(openai.InternalServerError):
        setting.openai().chat.completions.create(model="502", messages=USER)
    [line] = setting.lines("openai_chat")
    assert line["response"] == {"error": {"message": "<html>502</html>", "type": "no_json"}}


@pytest.mark.parametrize("name", ["openai_chat", "anthropic_messages", "openai_responses"])
def test_chunks_come_before_the_end(setting: Setting, name: str) -> None:
    """The API holds back the second half until the client has the first: a proxy that waits would hang."""
    paths = {"openai_chat": "chat/completions", "anthropic_messages": "messages", "openai_responses": "responses"}
    body = {"model": "slow", "stream": True, "messages": USER}
    with httpx.stream("POST", f"{setting.recording.address}/v1/{paths[name]}", json=body, timeout=5) as response:
        pieces = response.iter_bytes()
        assert next(pieces)
        setting.api.release.set()
        for _ in pieces:
            pass
    [line] = setting.lines(name)
    assert "aborted" not in line


def test_bytes_are_the_same(setting: Setting) -> None:
    body = {"model": "m", "stream": True, "messages": USER}
    for path in ("chat/completions", "messages", "responses"):
        direct = httpx.post(f"{setting.upstream}/v1/{path}", json=body)
        through = httpx.post(f"{setting.recording.address}/v1/{path}", json=body)
        assert through.content == direct.content


def test_a_client_that_goes_away(setting: Setting) -> None:
    """The call upstream ends too, and what had come is recorded as cut."""
    stream = setting.openai().chat.completions.create(model="slow", messages=USER, stream=True)
    next(iter(stream))
    stream.close()
    wait_for(setting.api.gone.is_set)
    [line] = setting.lines("openai_chat")
    assert line["aborted"] == "the client closed the connection"
    assert line["response"]["choices"][0]["message"]["content"] == "Grüße"
    assert line["response"]["choices"][0]["finish_reason"] is None


def test_a_client_that_goes_away_before_any_answer(setting: Setting) -> None:
    with pytest.raises(anthropic.APITimeoutError):
        setting.anthropic(timeout=0.3).messages.create(model="hang", max_tokens=9, messages=USER)
    wait_for(setting.api.gone.is_set)
    [line] = setting.lines("anthropic_messages")
    assert (line["status"], line["response"]["error"]["type"]) == (0, "aborted")


def test_an_api_that_breaks_off(setting: Setting) -> None:
    """The client must not take half a stream for a whole one."""
    body = {"model": "break", "stream": True, "max_tokens": 9, "messages": USER}
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{setting.recording.address}/v1/messages", json=body)
    [line] = setting.lines("anthropic_messages")
    assert line["aborted"].startswith("the API broke off")
    assert line["response"]["stop_reason"] is None
    assert line["response"]["content"][0]["thinking"] == "two numbers"


def test_an_api_that_is_not_there(tmp_path: Path) -> None:
    with recording(tmp_path, Upstreams("http://127.0.0.1:9/v1"), environment={}) as running:
        client = openai.OpenAI(base_url=f"{running.address}/v1", api_key=KEY, max_retries=0)
        with pytest.raises(openai.InternalServerError, match=r"no answer from 127\.0\.0\.1:9"):
            client.chat.completions.create(model="m", messages=USER)
    [line] = [json.loads(line) for line in (tmp_path / "openai_chat.jsonl").read_text().splitlines()]
    assert (line["status"], line["request"]["messages"]) == (502, USER)


def test_a_hanging_call_holds_no_other_up(setting: Setting) -> None:
    """120 calls hang: more than a pool of 100 connections would let through."""
    body = {"model": "hang", "messages": USER}
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(limits=limits, timeout=20) as client, ThreadPoolExecutor(120) as pool:
        url = f"{setting.recording.address}/v1/chat/completions"
        hanging = [pool.submit(client.post, url, json=body) for _ in range(120)]
        wait_for(lambda: len(setting.api.asked) == 120, seconds=20)
        assert setting.openai(timeout=5).chat.completions.create(model="m", messages=USER).id == "chatcmpl-1"
        setting.api.release.set()
        assert {future.result().status_code for future in hanging} == {200}
    assert len(setting.lines("openai_chat", calls=121)) == 121


def test_compressed_bodies(setting: Setting) -> None:
    """A gzip request goes on as it is and a gzip answer comes as it is; both are recorded as what they say."""
    body = gzip.compress(json.dumps({"model": "m", "messages": USER}).encode())
    headers = {
        "content-encoding": "gzip",
        "content-type": "application/json",
        "accept-encoding": "br;q=1.0, gzip, zstd",
    }
    with httpx.stream(
        "POST", f"{setting.recording.address}/v1/chat/completions", content=body, headers=headers
    ) as answer:
        raw = b"".join(answer.iter_raw())
    assert json.loads(gzip.decompress(raw)) == CHAT
    assert setting.api.asked[0].body == body
    assert setting.api.asked[0].headers["accept-encoding"] == "gzip, zstd"
    [line] = setting.lines("openai_chat")
    assert (line["request"]["messages"], line["response"]) == (USER, CHAT)


def test_other_paths_pass_unrecorded(setting: Setting) -> None:
    assert list(setting.openai().models.list()) == []
    count = setting.anthropic().messages.count_tokens(model="c", messages=USER)
    assert count.input_tokens == 3
    other = httpx.request("PUT", f"{setting.recording.address}/v1/fine%20tuning/a%2Fb?x=1&y=%20", content=b"\x00\xff")
    assert other.json() == {"path": "/v1/fine tuning/a/b"}
    assert [asked.path for asked in setting.api.asked] == [
        "/v1/models",
        "/v1/messages/count_tokens",
        "/v1/fine tuning/a/b",
    ]
    assert (setting.api.asked[2].query, setting.api.asked[2].body) == ("x=1&y=%20", b"\x00\xff")
    assert "transfer-encoding" not in setting.api.asked[0].headers
    assert list(setting.folder.iterdir()) == []
    assert setting.recording.recorder.counts.calls == 0


def test_a_request_that_is_no_json_is_counted(setting: Setting) -> None:
    assert httpx.post(f"{setting.recording.address}/v1/chat/completions", content=b"{no").status_code == 200
    assert setting.lines("openai_chat") == []
    assert setting.recording.recorder.counts.unreadable == 1


def test_headers_that_the_api_sees(setting: Setting) -> None:
    """The client's own, its key among them; only what is for one hop is the recorder's."""
    setting.anthropic(default_headers={"anthropic-beta": "b-1"}).messages.create(model="c", max_tokens=9, messages=USER)
    seen = setting.api.asked[0].headers
    assert (seen["authorization"], seen["anthropic-beta"]) == (f"Bearer {KEY}", "b-1")
    assert seen["host"] == setting.upstream.removeprefix("http://")
    assert seen["user-agent"].startswith("Anthropic/Python")


def test_keys_are_never_written(setting: Setting) -> None:
    """Not from headers, query, parameters, tools or text; also a key that has no form of a key but came as one."""
    plain = "correct horse battery staple".replace(" ", "-")
    body = {
        "model": "m",
        "api_key": KEY,
        "messages": [{"role": "user", "content": f"I use {KEY}, {plain} and ghp_16C7e42F292c6912E7710c838347Ae178B4a"}],
        "extra_headers": {"Authorization": f"Bearer {KEY}"},
        "mcp_servers": [{"url": "https://x", "authorization_token": "mcp-token-9f8e7d6c5b4a39281706"}],
    }
    for path in ("chat/completions", "messages", "responses"):
        url = f"{setting.recording.address}/v1/{path}?api_key={KEY}"
        httpx.post(url, json=body, headers={"Authorization": f"Bearer {plain}", "Cookie": f"session={KEY}"})
    assert setting.api.asked[0].json == body, "the API gets what was sent"
    setting.lines("openai_chat", calls=3)
    files = list(setting.folder.iterdir())
    assert len(files) == 3
    for file in files:
        text = file.read_text()
        assert "I use <secret:" in text
        for secret in (KEY, plain, "ghp_16C7", "mcp-token-9f8e"):
            assert secret not in text, (file.name, secret)


def test_recorded_chat_is_read_as_exact(setting: Setting) -> None:
    """Two turns of one conversation and a failed call between them: one trace, two exact steps, the call answered."""
    client = setting.openai()
    client.chat.completions.create(model="m", messages=USER, tools=CHAT_TOOLS)
    turn = [*USER, CHAT["choices"][0]["message"], {"role": "tool", "tool_call_id": "call_1", "content": "3"}]  # type: ignore[index]
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="429", messages=turn, tools=CHAT_TOOLS)
    list(client.chat.completions.create(model="m", messages=turn, tools=CHAT_TOOLS, stream=True))
    setting.lines("openai_chat", calls=3)
    result = read(setting.folder / "openai_chat.jsonl")
    assert (result.source.format, len(result.diagnostics)) == ("openai_chat", 0)
    [trace] = result.traces
    assert [step.request.fidelity for step in trace.steps] == ["exact", "exact"]
    assert [step.action.tool_calls[0].arguments_raw for step in trace.steps] == ['{"b": 2, "a": 1}'] * 2
    assert [result.text for result in trace.steps[0].results] == ["3"]
    assert "api_error" in [event.kind for event in trace.events]


@pytest.mark.parametrize("streamed", [False, True])
def test_recorded_messages_are_read_as_exact(setting: Setting, streamed: bool) -> None:
    """Two turns: the second brings the first one's answer and the result of its call."""
    turn: list[Any] = [
        *USER,
        {"role": "assistant", "content": MESSAGE["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}]},
    ]
    for messages in (USER, turn):
        body = {"model": "c", "max_tokens": 9, "messages": messages, "tools": TOOLS, "stream": streamed}
        httpx.post(f"{setting.recording.address}/v1/messages", json=body)
    setting.lines("anthropic_messages", calls=2)
    result = read(setting.folder / "anthropic_messages.jsonl")
    assert (result.source.format, len(result.diagnostics)) == ("anthropic_messages", 0)
    [trace] = result.traces
    assert [step.request.fidelity for step in trace.steps] == ["exact", "exact"]
    assert [call.arguments for call in trace.steps[0].action.tool_calls] == [{"b": 2, "a": 1}]
    assert [result.text for result in trace.steps[0].results] == ["3"]


@pytest.mark.parametrize("streamed", [False, True])
def test_recorded_responses_are_read_as_exact(setting: Setting, streamed: bool) -> None:
    """The second call goes on from the first by its id."""
    said = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
    for ask in ({"input": "What is 1 + 2?"}, {"input": [said], "previous_response_id": "resp_1"}):
        body = {"model": "m", "instructions": "Be brief.", "stream": streamed, **ask}
        httpx.post(f"{setting.recording.address}/v1/responses", json=body)
    setting.lines("openai_responses", calls=2)
    result = read(setting.folder / "openai_responses.jsonl")
    assert (result.source.format, len(result.diagnostics)) == ("openai_responses", 0)
    [trace] = result.traces
    assert [step.request.fidelity for step in trace.steps] == ["exact", "exact"]
    assert [call.arguments_raw for call in trace.steps[0].action.tool_calls] == ['{"b": 2, "a": 1}']
    assert [result.text for result in trace.steps[0].results] == ["3"]
