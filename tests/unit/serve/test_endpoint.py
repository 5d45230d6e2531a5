"""The endpoint over a scripted engine, through the official client and through raw HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from postgrad.core.message import Message
from postgrad.serve.engine import Demand, Event
from postgrad.serve.scripted import ScriptedEngine
from postgrad.serve.server import Listening, Running, serving

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}
]
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
USER: list[Any] = [{"role": "user", "content": "one two three"}]

Serve = Callable[..., AbstractContextManager[Running]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Serves an engine that says the given pieces, or any engine, with captures under the test's folder."""

    @contextmanager
    def start(said: Sequence[str] | ScriptedEngine, **settings: Any) -> Iterator[Running]:
        engine = said if isinstance(said, ScriptedEngine) else ScriptedEngine(lambda messages: said)
        with serving(engine, Listening(tmp_path / "captures", **settings)) as running:
            yield running

    return start


def client_of(running: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=running.address, api_key="sk-very-secret-key", max_retries=0, timeout=20)


def captured(running: Running) -> list[dict[str, Any]]:
    files = sorted(running.service.captures.folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def wait_for(condition: Callable[[], bool], seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def events_of(text: str) -> list[Any]:
    """The data of a server-sent event stream."""
    assert text.endswith("\n\n")
    lines = text.removesuffix("\n\n").split("\n\n")
    assert all(line.startswith("data: ") for line in lines)
    return [line if (line := each.removeprefix("data: ")) == "[DONE]" else json.loads(line) for each in lines]


def post(running: Running, **body: Any) -> httpx.Response:
    whole = {"model": "scripted", "messages": USER} | body
    with httpx.Client(verify=False, timeout=20) as client:  # no TLS here, and loading certificates takes 0.1 s
        return client.post(f"{running.address}/chat/completions", json=whole)


def test_answer(serve: Serve) -> None:
    """Three words in, two pieces out: usage is 3 + 2 = 5."""
    with serve(["Hello", " there"]) as running:
        answer = client_of(running).chat.completions.create(model="scripted", messages=USER)
    assert answer.choices[0].message.content == "Hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 2, 5)


def test_stream_framing(serve: Serve) -> None:
    """Role first, then text, then an empty delta with the reason, then [DONE]; no usage, as none was asked for."""
    with serve(["Hel", "lo"]) as running:
        response = post(running, stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, done = events_of(response.text)
    assert done == "[DONE]"
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, None, "stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all("usage" not in chunk for chunk in chunks)


def test_usage_chunk_only_when_asked(serve: Serve) -> None:
    """One last chunk with empty choices and the counts of the plain answer."""
    with serve(["a", "b", "c"]) as running:
        *_, last, done = events_of(post(running, stream=True, stream_options={"include_usage": True}).text)
    assert done == "[DONE]"
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


@pytest.mark.parametrize("pieces", [[f"Sure. {CALL}\n{CALL}"], list(f"Sure. {CALL}\n{CALL}")])
def test_tool_calls_stream_and_fold_to_the_same(serve: Serve, pieces: list[str]) -> None:
    """The client's own accumulator folds the stream to what the plain answer says, however the text was cut."""
    with serve(pieces) as running:
        client = client_of(running)
        plain = client.chat.completions.create(model="scripted", messages=USER, tools=TOOLS)
        with client.chat.completions.stream(model="scripted", messages=USER, tools=TOOLS) as stream:
            folded = stream.get_final_completion()
        raw = events_of(post(running, stream=True, tools=TOOLS).text)
    for answer in (plain.choices[0], folded.choices[0]):
        calls = answer.message.tool_calls
        assert answer.message.content == "Sure."
        assert answer.finish_reason == "tool_calls"
        assert calls is not None
        assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == [("add", {"a": 1})] * 2
        assert len({call.id for call in calls}) == 2
    deltas = [call for c in raw[:-1] for call in c["choices"][0]["delta"].get("tool_calls", [])]
    assert [delta["index"] for delta in deltas] == [0, 1]
    assert all(delta["type"] == "function" and delta["id"] for delta in deltas)


@pytest.mark.parametrize("stream", [False, True])
def test_max_tokens_inside_a_call(serve: Serve, stream: bool) -> None:
    """10 characters of a call: reason "length", no content, no call; what was said stands beside."""
    with serve(list(CALL)) as running:
        response = post(running, stream=stream, tools=TOOLS, max_tokens=14)
        [line] = captured(running)
    last = events_of(response.text)[-2] if stream else response.json()
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["postgrad"] == {"unfinished": CALL[:14]}
    message = line["response"]["choices"][0]["message"]
    assert message["content"] is None
    assert "tool_calls" not in message


def test_a_named_tool(serve: Serve) -> None:
    """tool_choice with a name offers that tool alone, demands a call, and the reason is "stop", as OpenAI has it."""
    engine = ScriptedEngine(lambda messages: [CALL])
    other: Any = {"type": "function", "function": {"name": "other"}}
    named: Any = {"type": "function", "function": {"name": "add"}}
    with serve(engine) as running:
        answer = client_of(running).chat.completions.create(
            model="scripted", messages=USER, tools=[*TOOLS, other], tool_choice=named
        )
    assert answer.choices[0].finish_reason == "stop"
    [demand] = engine.demands
    assert [tool.name for tool in demand.tools] == ["add"]
    assert demand.must_call


def test_tool_choice_none_offers_nothing(serve: Serve) -> None:
    engine = ScriptedEngine(lambda messages: ["no"])
    with serve(engine) as running:
        assert post(running, tools=TOOLS, tool_choice="none").status_code == 200
    assert engine.demands[0].tools == ()


@pytest.mark.parametrize("stream", [False, True])
def test_stop_strings_never_leak(serve: Serve, stream: bool) -> None:
    """ "END" cut over pieces: nothing of it is sent, and work stops at the piece that completes it."""
    engine = ScriptedEngine(lambda messages: ["keep E", "N", "D", "lost"])
    with serve(engine) as running:
        response = post(running, stream=stream, stop=["END", "never"])
    if stream:
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in events_of(response.text)[:-1])
    else:
        text = response.json()["choices"][0]["message"]["content"]
    assert text == "keep "
    assert engine.steps == 3


REFUSED: list[tuple[dict[str, Any], int, str | None, str | None]] = [
    ({"n": 2}, 400, "n", "unsupported_parameter"),
    ({"logprobs": True}, 400, "logprobs", "unsupported_parameter"),
    ({"top_p": 0.9}, 400, "top_p", "unsupported_parameter"),
    ({"response_format": {"type": "json_object"}}, 400, "response_format", "unsupported_parameter"),
    ({"parallel_tool_calls": False}, 400, "parallel_tool_calls", "unsupported_parameter"),
    ({"frequency_penalty": 0.5}, 400, "frequency_penalty", "unsupported_parameter"),
    ({"top_k": 3}, 400, "top_k", "unknown_parameter"),
    ({"temperature": -1}, 400, "temperature", "invalid_value"),
    ({"temperature": "hot"}, 400, "temperature", "invalid_value"),
    ({"max_tokens": 3, "max_completion_tokens": 4}, 400, "max_tokens", None),
    ({"tool_choice": {"type": "allowed_tools"}}, 400, "tool_choice", "invalid_value"),
    ({"max_tokens": 0}, 400, "max_tokens", "invalid_value"),
    ({"stop": ["a"] * 5}, 400, "stop", "invalid_value"),
    ({"stop": ""}, 400, "stop.0", "invalid_value"),
    ({"messages": []}, 400, "messages", "invalid_value"),
    ({"messages": [{"role": "user"}]}, 400, "messages.0.content", "missing_required_parameter"),
    ({"messages": [{"role": "alien", "content": "x"}]}, 400, "messages.0", "invalid_value"),
    ({"messages": [{"role": "user", "content": "x", "name": "y"}]}, 400, "messages.0.name", "unknown_parameter"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages.0.content", "invalid_value"),
    ({"tool_choice": "required"}, 400, "tool_choice", None),
    ({"tools": TOOLS * 2}, 400, "tools", None),
    ({"stream_options": {"include_usage": True}}, 400, "stream_options", None),
    ({"model": "gpt-9"}, 404, "model", "model_not_found"),
    ({"messages": [{"role": "user", "content": "w " * 2000}]}, 400, "messages", "context_length_exceeded"),
]


def test_what_is_not_supported_is_refused_by_name(serve: Serve) -> None:
    """Every refusal has its status, OpenAI's shape and the parameter's name, streaming or not; none is a capture."""
    sent = 0
    with serve(["never"]) as running:
        for body, status, param, code in REFUSED:
            for stream in ({}, {"stream": True}) if "stream_options" not in body else ({},):
                response = post(running, **body, **stream)
                assert response.status_code == status, body
                error = response.json()["error"]
                assert (error["param"], error["code"], error["type"]) == (param, code, "invalid_request_error"), body
                assert error["message"]
                sent += 1
        assert captured(running) == []
        health = httpx.get(running.address.removesuffix("/v1") + "/health").json()
        assert (health["captured"], health["refused"]) == (0, sent)


def test_values_that_ask_for_nothing_are_accepted(serve: Serve) -> None:
    """Clients send nulls and neutral values, and copy a response's message into the next request."""
    copied = {"role": "assistant", "content": "hi", "refusal": None, "annotations": [], "audio": None}
    with serve(["ok"]) as running:
        response = post(
            running,
            messages=[*USER, copied, {"role": "user", "content": [{"type": "text", "text": "more"}]}],
            n=1,
            top_p=1.0,
            logprobs=False,
            presence_penalty=0,
            response_format={"type": "text"},
            tools=[{"type": "function", "function": {"name": "add", "description": None, "strict": None}}],
            stop=None,
            seed=3,
            user="me",
            metadata={"a": "b"},
        )
    assert response.status_code == 200, response.text


def test_typed_errors_of_the_client(serve: Serve) -> None:
    """The client raises its typed exceptions with the message that we wrote."""
    with serve(["never"]) as running:
        client = client_of(running)
        with pytest.raises(openai.NotFoundError, match="'gpt-9' does not exist; this server has 'scripted'"):
            client.chat.completions.create(model="gpt-9", messages=USER)
        with pytest.raises(openai.BadRequestError, match="'n' is not supported") as refused:
            client.chat.completions.create(model="scripted", messages=USER, n=2)
    assert refused.value.param == "n"
    assert refused.value.code == "unsupported_parameter"


def test_other_routes(serve: Serve) -> None:
    with serve(["x"]) as running:
        client = client_of(running)
        assert [model.id for model in client.models.list()] == ["scripted"]
        assert client.models.retrieve("scripted").id == "scripted"
        root = running.address.removesuffix("/v1")
        for method, path, status in [("GET", "/v1/models/none", 404), ("GET", "/nothing", 404)]:
            response = httpx.request(method, root + path)
            assert (response.status_code, set(response.json())) == (status, {"error"})
        assert httpx.get(f"{running.address}/chat/completions").status_code == 405
        for data in (b"{", b"[1]", b"\xff"):
            response = httpx.post(f"{running.address}/chat/completions", content=data)
            assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_json")
        health = httpx.get(f"{root}/health").json()
        assert (health["status"], health["running"], health["waiting"]) == ("ok", 0, 0)


class BrokenEngine(ScriptedEngine):
    """Fails after the first piece, as a model does that runs out of memory."""

    def generate(self, messages: Sequence[Message], demand: Demand) -> Any:
        def failing() -> Iterator[Event]:
            yield next(events)
            raise RuntimeError('out of "memory"\n')

        events = super().generate(messages, demand)
        return failing()


def test_a_failing_model(serve: Serve) -> None:
    """Before the status is sent: 500. In a stream: an error event that the client raises, then [DONE]."""
    with serve(BrokenEngine(lambda messages: ["partial", "x"])) as running:
        plain = post(running)
        assert (plain.status_code, plain.json()["error"]["type"]) == (500, "server_error")
        *_, error, done = events_of(post(running, stream=True).text)
        assert done == "[DONE]"
        assert error["error"]["message"] == 'the model failed: out of "memory"\n'
        with pytest.raises(openai.APIError, match="out of"):
            list(client_of(running).chat.completions.create(model="scripted", messages=USER, stream=True))
        first = captured(running)[0]["response"]
    assert first["error"]["message"].startswith("the model failed")
    assert first["choices"][0]["message"]["content"] == "partial"


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_the_work(serve: Serve, stream: bool) -> None:
    """After the connection is closed the engine does at most two more steps, and the next request is served at once.

    The partial answer is captured with the reason.
    """
    engine = ScriptedEngine(lambda messages: ["x"] * 1000, seconds=0.1)
    with serve(engine) as running:
        body = {"model": "scripted", "messages": USER, "stream": stream, "max_tokens": 1000}
        with httpx.Client() as client:
            if stream:
                with client.stream("POST", f"{running.address}/chat/completions", json=body) as response:
                    lines = response.iter_lines()
                    for _ in range(8):
                        next(lines)
            else:
                with pytest.raises(httpx.ReadTimeout):
                    client.post(f"{running.address}/chat/completions", json=body, timeout=0.35)
        at_close = engine.steps
        wait_for(lambda: bool(captured(running)))
        assert engine.steps - at_close <= 2
        [line] = captured(running)
        assert line["response"]["error"]["code"] == "cancelled"
        assert set(line["response"]["choices"][0]["message"]["content"]) == {"x"}
        began = time.monotonic()
        assert post(running, max_tokens=1).status_code == 200
        assert time.monotonic() - began < 1


def test_a_client_that_leaves_the_queue(serve: Serve) -> None:
    """A request whose client left while it waited never reaches a step."""
    engine = ScriptedEngine(lambda messages: [messages[-1].text], seconds=0.4)
    with serve(engine) as running, ThreadPoolExecutor() as pool:
        first = pool.submit(post, running, messages=[{"role": "user", "content": "first"}])
        wait_for(lambda: running.service.turns.running == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{running.address}/chat/completions", json={"model": "scripted", "messages": USER}, timeout=0.1)
        assert first.result().status_code == 200
        wait_for(lambda: running.service.turns.running == 0)
    assert engine.steps == 1


def test_one_at_a_time_in_order_and_bounded(serve: Serve) -> None:
    """One runs, two may wait: the fourth gets 503 with Retry-After; the others are answered in order of arrival."""
    order: list[str] = []

    def say(messages: Sequence[Message]) -> Iterator[str]:
        order.append(f"+{messages[-1].text}")
        yield "x"
        order.append(f"-{messages[-1].text}")

    engine = ScriptedEngine(say, seconds=0.2)
    with serve(engine, max_queue=2) as running, ThreadPoolExecutor() as pool:
        answers = []
        for number in range(3):
            answers.append(pool.submit(post, running, messages=[{"role": "user", "content": str(number)}]))
            wait_for(lambda number=number: running.service.turns.running + running.service.turns.waiting > number)
        full = post(running)
        assert [answer.result().status_code for answer in answers] == [200, 200, 200]
    assert (full.status_code, full.json()["error"]["code"], full.headers["retry-after"]) == (503, "queue_full", "1")
    assert order == ["+0", "-0", "+1", "-1", "+2", "-2"]


def test_a_long_answer_does_not_block_the_server(serve: Serve) -> None:
    """While a step computes, health answers: the engine has a thread of its own."""
    with serve(ScriptedEngine(lambda messages: ["x"], seconds=1.0)) as running, ThreadPoolExecutor() as pool:
        pool.submit(post, running)
        wait_for(lambda: running.service.turns.running == 1)
        began = time.monotonic()
        health = httpx.get(running.address.removesuffix("/v1") + "/health").json()
        assert health["running"] == 1
        assert time.monotonic() - began < 0.5


def test_stopping_the_server_cancels_and_captures(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in work when the server stops is captured as cancelled, and the block ends soon."""
    monkeypatch.setattr("postgrad.serve.http.GRACE_SECONDS", 0.2)
    engine = ScriptedEngine(lambda messages: ["x"] * 1000, seconds=0.02)
    with ThreadPoolExecutor() as pool:
        with serve(engine) as running:
            answer = pool.submit(post, running, stream=True, max_tokens=1000)
            wait_for(lambda: engine.steps > 2)
            began = time.monotonic()
        assert time.monotonic() - began < 3
        assert answer.exception() is None or isinstance(answer.exception(), httpx.HTTPError)
    [line] = captured(running)
    assert line["response"]["error"]["message"] == "the server stopped"


def test_the_capture_is_the_exchange(serve: Serve) -> None:
    """Plain and streamed answers are captured alike, folded, when the client has the answer; no key is in the file."""
    with serve(["Hi", " you"]) as running:
        client = client_of(running)
        plain = client.chat.completions.create(model="scripted", messages=USER, seed=4)
        assert captured(running)[-1]["response"] == plain.model_dump(exclude_unset=True)
        list(client.chat.completions.create(model="scripted", messages=USER, stream=True))
        lines = captured(running)
        raw = running.service.captures.today().read_text()
        assert running.service.captures.today().stat().st_mode & 0o777 == 0o600
    assert lines[0]["request"] == {"messages": USER, "model": "scripted", "seed": 4}
    assert lines[1]["response"]["choices"] == lines[0]["response"]["choices"]
    assert lines[1]["response"]["usage"] == lines[0]["response"]["usage"]
    assert "sk-very-secret-key" not in raw
    assert "uthorization" not in raw


def test_a_capture_that_cannot_be_written_is_told(serve: Serve, tmp_path: Path) -> None:
    """The folder's place is taken by a file: the answer still comes, and health counts the loss."""
    (tmp_path / "captures").write_text("in the way")
    with serve(["Hi"]) as running:
        assert post(running).status_code == 200
        health = httpx.get(running.address.removesuffix("/v1") + "/health").json()
    assert (health["captured"], health["captures_lost"]) == (0, 1)


def test_lone_surrogates_survive(serve: Serve) -> None:
    """A broken emoji from a client is answered and captured, escaped; it must not break the line or the response."""
    with serve(["ok"]) as running:
        data = b'{"model": "scripted", "messages": [{"role": "user", "content": "\\ud83d"}]}'
        assert httpx.post(f"{running.address}/chat/completions", content=data).status_code == 200
        assert captured(running)[0]["request"]["messages"][0]["content"] == "\ud83d"
        data = data.replace(b"scripted", b"\\ud83d")
        assert httpx.post(f"{running.address}/chat/completions", content=data).status_code == 404
