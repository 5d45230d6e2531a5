"""Ollama's own API through its client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.actor import Ask
from postgrad.core.canonical import canonical_json
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Tool, ToolResult
from postgrad.teachers.money.tokens import Scale
from postgrad.teachers.providers.ollama_native import OllamaNative
from unit.signals.traces_by_hand import WEATHER, act, call
from unit.teachers.asking import SAMPLING, ask, teacher
from unit.teachers.endpoint_by_script import Reply, serving

AT_HOME = OllamaNative("m", "http://localhost:1")


def chat(content: str = "hi", calls: list[dict[str, Any]] | None = None, **more: Any) -> Reply:
    message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    counts = {"prompt_eval_count": 100, "eval_count": 20}
    return Reply({"model": None, "done": True, "done_reason": "stop", "message": message, **counts, **more})


def test_request_and_answer(tmp_path: Path) -> None:
    called = [{"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}]
    with serving(chat("", called)) as endpoint:
        (answer,) = teacher(tmp_path, OllamaNative("llama3", endpoint.base_url)).answer([ask()], SAMPLING)
    assert endpoint.paths == ["/api/chat"]
    assert len(endpoint.headers[0]["idempotency-key"]) == 40
    assert answer.message == act(call("get_weather", '{"city": "Rome"}', "call_0"))
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost) == (100, 20, 0.0)
    (body,) = endpoint.requests
    assert body["stream"] is False
    assert body["options"] == {"temperature": 0.5, "seed": 3, "num_predict": 64, "num_ctx": 4096}
    assert body["tools"][0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_is_as_long_as_the_body_says(tmp_path: Path, stream: bool) -> None:
    """What is noted of a request is the size of its body, to the byte: the client adds nothing to it."""
    with serving(chat()) as endpoint:
        provider = OllamaNative("m", endpoint.base_url, stream=stream)
        (answer,) = teacher(tmp_path, provider).answer([ask("Köln?")], SAMPLING)
    assert answer.error is None
    noted = len(canonical_json(provider.body(ask("Köln?"), SAMPLING)).encode())
    assert int(endpoint.headers[0]["content-length"]) == noted


def test_calls_side_by_side_have_each_its_own_idempotency_key(tmp_path: Path) -> None:
    """As long as a request is tried again it keeps its key: the first of four tries meets a broken answer."""
    with serving(Reply(b"no JSON"), chat()) as endpoint:
        asked = teacher(tmp_path, OllamaNative("m", endpoint.base_url))
        asked.answer([ask("a"), ask("b"), ask("c")], SAMPLING)
    sent = zip(endpoint.requests, endpoint.headers, strict=True)
    keys = {(str(body["messages"]), headers["idempotency-key"]) for body, headers in sent}
    assert (len(endpoint.requests), len(keys), len({key for _, key in keys})) == (4, 3, 3)


def test_results_have_their_tools_name_and_arguments_are_objects() -> None:
    context = (
        Message.of("user", "go"),
        act(call("get_weather", "{oops", "a")),
        Message("tool", (ToolResult("a", "!"),)),
    )
    messages = AT_HOME.body(Ask(context, (WEATHER,)), SAMPLING)["messages"]
    assert messages[1]["tool_calls"] == [{"function": {"name": "get_weather", "arguments": {"malformed": "{oops"}}}]
    assert messages[2] == {"role": "tool", "content": "!", "tool_name": "get_weather"}


def test_the_context_is_asked_for_by_size() -> None:
    """30,000 bytes at 2.5 a token are 12,000 tokens: 16,384 is the next power of two."""
    body = AT_HOME.body(Ask((Message.of("user", "x" * 30_000),)), SAMPLING)
    assert body["options"]["num_ctx"] == 16_384
    assert OllamaNative("m", extra={"num_ctx": 2048}).body(ask(), SAMPLING)["options"]["num_ctx"] == 2048


def test_a_union_of_types_survives_the_client(tmp_path: Path) -> None:
    union = {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}
    tool = Tool("f", "", {"type": "object", "properties": {"a": union}, "required": ["a"]})
    with serving(chat()) as endpoint:
        teacher(tmp_path, OllamaNative("m", endpoint.base_url)).answer(
            [Ask((Message.of("user", "x"),), (tool,))], SAMPLING
        )
    parameters = endpoint.requests[0]["tools"][0]["function"]["parameters"]
    assert parameters["properties"]["a"] == {"type": ["string", "null"], "description": "d"}
    assert parameters["required"] == ["a"]


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city", "minLength": 2},
        "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 1},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def test_a_request_weighs_what_the_client_sends(tmp_path: Path) -> None:
    """The client drops `minLength`, `default`, `additionalProperties` and the empty words of a call.

    Of the two lists that arrive every member counts with the two bytes between it and the next. What is weighed has the
    name beside the result with the call, which is two bytes more: 0.5 tokens.
    """
    context = (
        Message.of("user", "go"),
        act(call("f", {"city": "Rome"}, "a")),
        Message("tool", (ToolResult("a", "!"),)),
    )
    told = Ask(context, (Tool("f", "Weather", SCHEMA),))
    with serving(chat()) as endpoint:
        provider = OllamaNative("m", endpoint.base_url)
        teacher(tmp_path, provider).answer([told], SAMPLING)
    (body,) = endpoint.requests
    (tool,) = body["tools"]
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": ["integer", "null"]},
        },
        "required": ["city"],
    }
    called = {"function": {"name": "f", "arguments": {"city": "Rome"}}}
    assert body["messages"][1] == {"role": "assistant", "tool_calls": [called]}
    messages, tools = (len(json.dumps(body[part], separators=(",", ":"))) for part in ("messages", "tools"))
    assert 4 * Scale(form=provider.form).ask(told).tokens == messages - len("[]") + tools + len(',"tools":')


def test_a_tool_that_the_client_does_not_take_is_refused_before_it_leaves(tmp_path: Path) -> None:
    tool = Tool("f", "", {"type": "object", "properties": {"a": True}})
    told = Ask((Message.of("user", "x"),), (tool,))
    with serving(chat()) as endpoint:
        provider = OllamaNative("m", endpoint.base_url)
        (answer,) = teacher(tmp_path, provider).answer([told], SAMPLING)
    assert (endpoint.requests, answer.error) == ([], "refused")
    assert "cannot write a tool: function.parameters.properties.a: " in answer.stop_reason
    assert Scale(form=provider.form).ask(told).tokens > 20


def test_what_is_wrong_with_an_answer_is_said_without_a_web_page(tmp_path: Path) -> None:
    with serving(Reply({"model": "m", "done": True})) as endpoint:
        (answer,) = teacher(tmp_path, OllamaNative("m", endpoint.base_url)).answer([ask()], SAMPLING)
    assert answer.stop_reason == "error: invalid_reply: the endpoint gave no chat response: message: Field required"


def test_failures_keep_their_headers_and_kinds(tmp_path: Path) -> None:
    """The client's own error would have lost Retry-After."""
    busy = Reply({"error": "busy"}, 503, {"retry-after": "1"})
    with serving(busy, Reply({"model": "m"}), Reply(b"{"), chat()) as endpoint:
        asked = teacher(tmp_path, OllamaNative("m", endpoint.base_url))
        (answer,) = asked.answer([ask()], SAMPLING)
        assert endpoint.times[1] - endpoint.times[0] >= 1.0
    assert [line.outcome for line in asked.gateway.journal.lines if line.event == "settled"] == [
        "server_error",
        "invalid_reply",
        "invalid_reply",
    ]
    assert answer.error == "invalid_reply"  # two retries are allowed here


def test_a_key_of_the_environment_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "not-for-you")
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    with serving(chat()) as endpoint:
        (answer,) = teacher(tmp_path, OllamaNative("m", endpoint.base_url)).answer([ask()], SAMPLING)
    assert answer.message == Message.of("assistant", "hi")
    assert "not-for-you" not in str(endpoint.headers)


def test_a_missing_model_is_the_users_mistake(tmp_path: Path) -> None:
    missing = Reply({"error": "model 'm' not found"}, 404)
    with serving(missing) as endpoint, pytest.raises(ConfigError, match="model 'm' not found"):
        teacher(tmp_path, OllamaNative("m", endpoint.base_url)).answer([ask()], SAMPLING)
