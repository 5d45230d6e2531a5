"""The chat-completions provider: what is sent, what is read, and what the SDK must not do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.actor import Ask, Sampling, TokenChoice
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Text
from postgrad.teachers.money.prices import Price
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.providers.provider import Usage, check_address, is_loopback
from unit.signals.traces_by_hand import WEATHER, act, call
from unit.teachers.asking import SAMPLING, ask, openai, teacher
from unit.teachers.endpoint_by_script import Reply, completion, serving

AT_HOME = "http://localhost:1/v1"


def test_request_and_answer(tmp_path: Path) -> None:
    with serving(completion(calls=[("get_weather", '{"city": "Rome"}')], finish="tool_calls")) as endpoint:
        (answer,) = teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], SAMPLING)
    called = call("get_weather", '{"city": "Rome"}', "call_0")
    assert answer.message == act(msgspec.structs.replace(called, provider_id="p0"))
    assert (answer.model, answer.stop_reason) == ("asked-1", "tool_calls")
    (body,) = endpoint.requests
    assert endpoint.paths == ["/v1/chat/completions"]
    assert body["model"] == "asked-1"
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 64, 3)
    assert body["messages"] == [{"role": "user", "content": "weather?"}]
    assert body["tools"][0]["function"]["parameters"] == WEATHER.parameters
    assert "stream" not in body


def read(message: dict[str, Any], **more: Any) -> Any:
    return openai(AT_HOME).read({"choices": [{"message": message}], **more}, ask())


@pytest.mark.parametrize("failed", [{"finish_reason": "error", "error": {"code": 502, "message": "x"}}, {"error": "x"}])
def test_a_routers_error_in_place_of_an_answer_is_none(tmp_path: Path, failed: dict[str, Any]) -> None:
    """Its provider may have been paid, so the money stays aside, and it is asked again."""
    error = Reply({"model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, **failed}]})
    with serving(error, completion("hi")) as endpoint:
        asked = teacher(tmp_path, openai(endpoint.base_url), price=Price(1.0, 1.0))
        (answer,) = asked.answer([ask()], SAMPLING)
    assert (answer.message, len(endpoint.requests)) == (Message.of("assistant", "hi"), 2)
    ends = [(line.outcome, line.uncertain > 0) for line in asked.gateway.journal.lines if line.event == "settled"]
    assert ends == [("invalid_reply", True), ("answered", False)]


def test_of_several_answers_the_one_of_index_0_is_taken_wherever_it_stands() -> None:
    choices = [{"index": place, "message": {"content": text}} for place, text in ((1, "second"), (0, "first"))]
    assert openai(AT_HOME).read({"choices": choices}, ask()).message.text == "first"


def test_broken_arguments_are_kept_byte_for_byte() -> None:
    reply = read({"tool_calls": [{"id": "1", "function": {"name": "get_weather", "arguments": '{"city": "Rome"'}}]})
    (broken,) = reply.message.tool_calls
    assert (broken.arguments_raw, broken.arguments) == ('{"city": "Rome"', None)
    assert broken.parse_error


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": 12.0, "completion_tokens": 2.0}, Usage(12, 2)),
        ({"prompt_tokens": 12.5, "completion_tokens": 2}, None),
        ({"prompt_tokens": "12", "completion_tokens": 2}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 5, "completion_tokens": None}, None),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": "x"}}, Usage(5, 2)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 9.0}}, Usage(5, 2, 5)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(5, 2)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}, Usage(5, 2, 3)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(5, 2, 4)),  # DeepSeek
        (
            {"prompt_tokens": 5, "completion_tokens": 0, "prompt_tokens_details": {}, "prompt_cache_hit_tokens": 4},
            Usage(5, 0, 4),
        ),
    ],
)
def test_usage(usage: object, expected: Usage | None) -> None:
    assert read({"content": "hi"}, usage=usage).usage == expected


def test_log_probabilities_are_asked_for_and_kept() -> None:
    top = [{"token": "hi", "logprob": -0.1}, {"token": "yo", "logprob": -2.5}]
    entry = {"token": "hi", "logprob": -0.1, "bytes": [104, 105], "top_logprobs": top}
    body = openai(AT_HOME).body(ask(), Sampling(top_logprobs=2))
    assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
    choice = {"message": {"content": "hi"}, "logprobs": {"content": [entry]}}
    reply = openai(AT_HOME).read({"choices": [choice]}, ask())
    assert reply.tokens == (TokenChoice("hi", -0.1, (("hi", -0.1), ("yo", -2.5))),)


@pytest.mark.parametrize("content", [None, "x", [None], [{"token": "a"}], [{"token": "a", "logprob": 0.5}]])
def test_log_probabilities_that_are_none_are_left_out(content: object) -> None:
    choice = {"message": {"content": "hi"}, "logprobs": {"content": content}}
    assert openai(AT_HOME).read({"choices": [choice]}, ask()).tokens == ()


@pytest.mark.parametrize("raw", ["text", [], {}, {"choices": None}, {"choices": [None]}, {"choices": [{"delta": {}}]}])
def test_what_is_no_completion_is_told(raw: object) -> None:
    with pytest.raises(CallFailed) as told:
        openai(AT_HOME).read(raw, ask())
    assert told.value.kind == "invalid_reply"


def test_extra_parameters_win_and_null_takes_one_out() -> None:
    body = openai(AT_HOME, extra={"temperature": None, "top_p": 0.9}).body(ask(), SAMPLING)
    assert "temperature" not in body
    assert body["top_p"] == 0.9


def test_openai_itself_counts_the_limit_by_another_name() -> None:
    hosted = OpenAICompatible("m", "https://api.openai.com/v1").body(ask(), Sampling(max_new_tokens=7))
    assert (hosted["max_completion_tokens"], "max_tokens" in hosted) == (7, False)
    other = OpenAICompatible("m", "https://notopenai.com/v1").body(ask(), Sampling(max_new_tokens=7))
    assert other["max_tokens"] == 7


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1"),
        ("https://host/v1beta/openai", "https://host/v1beta/openai"),
    ],
)
def test_an_address_without_a_path_gets_v1(url: str, address: str) -> None:
    assert OpenAICompatible("m", url).address == address


NO_HOSTS = ["http://ü..com/v1", f"http://{'a' * 64}.com/v1", "http://a b/v1", "http://host/v1\0"]


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port", *NO_HOSTS])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url is no URL"):
        OpenAICompatible("m", url)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:80/v1", True),
        ("http://127.0.0.1.example.com/v1", False),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1/v1", False),
        ("http://0.0.0.0/v1", False),
    ],
)
def test_what_counts_as_this_machine(url: str, loopback: bool) -> None:
    assert is_loopback(url) is loopback


def test_keys_and_names_of_the_environment_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK reads a key, an organisation, a project, an address and headers from its own variables: none is sent."""
    secrets = ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
    for name in secrets:
        monkeypatch.setenv(name, "not-for-you")
    added = ("Authorization: Bearer", "X-Own:", "Content-Type: text/", "host:", "Idempotency-Key:", "User-Agent:")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "\n".join(f"{name} not-for-you" for name in added))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
    monkeypatch.setenv("MY_KEY", "k-1")
    with serving(completion("hi")) as endpoint:
        teacher(tmp_path / "a", openai(endpoint.base_url, key_variable="MY_KEY")).answer([ask()], SAMPLING)
        teacher(tmp_path / "b", openai(endpoint.base_url)).answer([ask()], SAMPLING)
    assert [headers["authorization"] for headers in endpoint.headers] == ["Bearer k-1", "Bearer none"]
    assert "not-for-you" not in str(endpoint.headers)
    assert os.environ["OPENAI_CUSTOM_HEADERS"].endswith("not-for-you")
    assert all(len(headers["idempotency-key"]) == 40 for headers in endpoint.headers)
    assert {headers["content-type"] for headers in endpoint.headers} == {"application/json"}
    assert {headers["host"] for headers in endpoint.headers} == {endpoint.base_url.split("/")[2]}
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        openai(AT_HOME, key_variable="MY_KEY")


def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(completion("hi")) as endpoint:
        (answer,) = teacher(tmp_path, openai(endpoint.base_url)).answer([ask()], SAMPLING)
    assert answer.error is None


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    body = openai(AT_HOME).body(Ask((Message("user", (Text("half \ud83d"),)),)), SAMPLING)
    assert body["messages"][0]["content"] == "half \ufffd"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/api/chat/"])
def test_the_address_of_a_call_is_not_that_of_the_api(path: str) -> None:
    with pytest.raises(ConfigError, match="which is added to it"):
        check_address(f"http://127.0.0.1:9{path}")
