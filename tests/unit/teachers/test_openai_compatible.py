"""The HTTP teacher against a local server that misbehaves on cue."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.core.message import Message, Text
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.openai_compatible import Limits, OpenAICompatible, is_loopback
from postgrad.teachers.prices import Price
from unit.signals.traces_by_hand import WEATHER, act, call
from unit.teachers.endpoint_by_script import Endpoint, Reply, completion, serving

ERROR = {"error": {"message": "slow down", "type": "rate", "param": None, "code": None}}
SAMPLING = Sampling(temperature=0.5, max_new_tokens=64, seed=3)


def teacher(endpoint: Endpoint, **options: Any) -> OpenAICompatible:
    limits = options.pop("limits", Limits(concurrency=2, timeout=5.0, max_retries=2))
    return OpenAICompatible("http", "asked-1", endpoint.base_url, limits=limits, **options)


def ask(text: str = "weather?") -> Ask:
    return Ask((Message.of("user", text),), (WEATHER,))


def test_request_and_answer() -> None:
    """Cost by hand: (100 x 2 + 20 x 10) / 1e6 = 0.0004 US dollars."""
    with serving(completion(calls=[("get_weather", '{"city": "Rome"}')], finish="tool_calls")) as endpoint:
        (answer,) = teacher(endpoint, price=Price(2.0, 10.0)).answer([ask()], SAMPLING)
    called = call("get_weather", '{"city": "Rome"}', "call_0")
    assert answer.message == act(msgspec.structs.replace(called, provider_id="p0"))
    assert (answer.model, answer.stop_reason) == ("served-1", "tool_calls")
    assert (answer.prompt_tokens, answer.completion_tokens, answer.cost) == (100, 20, 0.0004)
    assert answer.seconds > 0
    (body,) = endpoint.requests
    assert body["model"] == "asked-1"
    assert (body["temperature"], body["max_tokens"], body["seed"]) == (0.5, 64, 3)
    assert body["messages"] == [{"role": "user", "content": "weather?"}]
    assert body["tools"][0]["function"]["parameters"] == WEATHER.parameters


def test_no_price_is_no_cost() -> None:
    with serving(completion("hi")) as endpoint:
        (answer,) = teacher(endpoint).answer([ask()], SAMPLING)
    assert answer.cost is None


def test_retry_after_is_waited_for() -> None:
    with serving(Reply(ERROR, 429, {"retry-after": "1"}), completion("hi")) as endpoint:
        (answer,) = teacher(endpoint).answer([ask()], SAMPLING)
    assert answer.message == Message.of("assistant", "hi")
    assert endpoint.times[1] - endpoint.times[0] >= 1.0


def test_a_server_error_is_tried_again_and_at_last_an_outside_failure() -> None:
    quick = Reply(ERROR, 500, {"retry-after-ms": "1"})
    with serving(quick, completion("hi")) as endpoint:
        assert teacher(endpoint).answer([ask()], SAMPLING)[0].message == Message.of("assistant", "hi")
    with serving(quick) as endpoint:
        with pytest.raises(OutsideFailure, match="keeps failing: 500"):
            teacher(endpoint).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 3  # once and two retries


def test_a_hanging_server_is_given_up() -> None:
    with serving(Reply({}, wait=0.6)) as endpoint:
        impatient = teacher(endpoint, limits=Limits(timeout=0.1, max_retries=0))
        with pytest.raises(OutsideFailure, match="cannot be reached"):
            impatient.answer([ask()], SAMPLING)


@pytest.mark.parametrize("body", [b"<html>", {"detail": "no"}, {"choices": []}, {"choices": [{}]}, []])
def test_an_endpoint_that_speaks_something_else_is_told(body: object) -> None:
    with serving(Reply(body)) as endpoint, pytest.raises(OutsideFailure, match="gave"):
        teacher(endpoint).answer([ask()], SAMPLING)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_unknown_model_is_the_users_mistake(status: int) -> None:
    with serving(Reply(ERROR, status)) as endpoint:
        with pytest.raises(ConfigError, match=rf"{status}.*check base_url, model"):
            teacher(endpoint).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 1


def test_an_ask_that_is_refused_for_itself_is_an_abstention_and_others_go_on() -> None:
    with serving(Reply(ERROR, 400), completion("hi")) as endpoint:
        answers = teacher(endpoint, limits=Limits(concurrency=1)).answer([ask("long"), ask("short")], SAMPLING)
    assert answers[0].message is None
    assert answers[0].stop_reason.startswith("refused: 400")
    assert answers[1].message == Message.of("assistant", "hi")


def test_broken_arguments_are_kept_byte_for_byte() -> None:
    with serving(completion("Well.", [("get_weather", '{"city": "Rome"')])) as endpoint:
        (answer,) = teacher(endpoint).answer([ask()], SAMPLING)
    assert answer.message is not None
    (broken,) = answer.message.tool_calls
    assert (broken.arguments_raw, broken.arguments) == ('{"city": "Rome"', None)
    assert broken.parse_error


def test_calls_at_once_stay_within_the_limit_and_answers_keep_their_order() -> None:
    with serving(Reply(completion("hi").body, wait=0.05)) as endpoint:
        answers = teacher(endpoint).answer([ask(str(number)) for number in range(6)], SAMPLING)
    assert len(answers) == 6
    assert endpoint.most_at_once == 2


def test_answers_that_arrived_before_a_failure_are_never_paid_twice(tmp_path: Any) -> None:
    """One at a time: two answers come, the third call fails, the fourth is not begun; then only two are asked."""
    down = Reply(ERROR, 503, {"retry-after-ms": "1"})
    asks = [ask(str(number)) for number in range(4)]
    with serving(completion("0"), completion("1"), down) as endpoint:
        cached = CachedActor(teacher(endpoint, limits=Limits(concurrency=1, max_retries=0)), tmp_path)
        with pytest.raises(OutsideFailure):
            cached.answer(asks, SAMPLING)
        assert len(endpoint.requests) == 3
    with serving(completion("2"), completion("3")) as endpoint:
        cached = CachedActor(teacher(endpoint, limits=Limits(concurrency=1)), tmp_path)
        answers = cached.answer(asks, SAMPLING)
        assert [body["messages"][0]["content"] for body in endpoint.requests] == ["2", "3"]
    assert [answer.message for answer in answers] == [Message.of("assistant", str(number)) for number in range(4)]


def test_nothing_leaves_before_redaction() -> None:
    def redact(given: Ask) -> Ask:
        return Ask((Message.of("user", given.messages[0].text.replace("hunter2", "<secret>")),), hint="<clean>")

    with serving(completion("hi")) as endpoint:
        teacher(endpoint, redact=redact).answer([msgspec.structs.replace(ask("pw hunter2"), hint="hunter2")], SAMPLING)
    assert endpoint.requests[0]["messages"] == [{"role": "user", "content": "pw <secret>\n\n<clean>"}]
    assert "hunter2" not in json.dumps(endpoint.requests)


def test_another_machine_needs_a_redactor() -> None:
    with pytest.raises(ConfigError, match="without redaction"):
        OpenAICompatible("far", "m", "https://api.example.com/v1")
    OpenAICompatible("far", "m", "https://api.example.com/v1", redact=lambda given: given)


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


def test_the_key_comes_from_the_named_variable_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-for-you")
    monkeypatch.setenv("MY_KEY", "k-1")
    with serving(completion("hi")) as endpoint:
        teacher(endpoint, key_variable="MY_KEY").answer([ask()], SAMPLING)
        teacher(endpoint).answer([ask()], SAMPLING)
    assert [headers["authorization"] for headers in endpoint.headers] == ["Bearer k-1", "Bearer none"]
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        OpenAICompatible("x", "m", "http://localhost/v1", key_variable="MY_KEY")


def test_extra_parameters_win_and_null_takes_one_out() -> None:
    with serving(completion("hi")) as endpoint:
        teacher(endpoint, extra={"temperature": None, "top_p": 0.9}).answer([ask()], SAMPLING)
    assert "temperature" not in endpoint.requests[0]
    assert endpoint.requests[0]["top_p"] == 0.9


def test_constrained_decoding_is_refused() -> None:
    with serving(completion("hi")) as endpoint, pytest.raises(ConfigError, match="local models"):
        teacher(endpoint).answer([ask()], Sampling(constrained=True))


def test_a_lone_surrogate_does_not_stop_a_request() -> None:
    with serving(completion("hi")) as endpoint:
        teacher(endpoint).answer([Ask((Message("user", (Text("half \ud83d"),)),))], SAMPLING)
    assert endpoint.requests[0]["messages"][0]["content"] == "half \ufffd"
