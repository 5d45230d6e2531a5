"""The Messages API: its form, its prompt cache, its bill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.actor import Ask, Sampling
from postgrad.core.message import Message, Reasoning, Text, ToolCall, ToolResult
from postgrad.teachers.money.prices import Price
from postgrad.teachers.providers.anthropic_messages import AnthropicMessages
from postgrad.teachers.providers.failures import CallFailed
from postgrad.teachers.providers.provider import Usage
from unit.signals.traces_by_hand import WEATHER, act, call
from unit.teachers.asking import SAMPLING, ask, teacher
from unit.teachers.endpoint_by_script import Reply, serving

AT_HOME = AnthropicMessages("m", "http://localhost:1")
SYSTEM, USER = Message.of("system", "be brief"), Message.of("user", "go")
ROME = act(Text("Let me see."), call("get_weather", {"city": "Rome"}, "c~1"))
SUN = Message("tool", (ToolResult("c~1", "sun"),))


def message(*content: dict[str, Any], stop: str = "end_turn", **usage: int) -> Reply:
    counts = {"input_tokens": 40, "output_tokens": 20, **usage}
    body = {"id": "x", "type": "message", "role": "assistant", "content": list(content), "stop_reason": stop}
    return Reply({**body, "model": None, "usage": counts})


def sent(*messages: Message, shared: int | None = None, hint: str | None = None) -> dict[str, Any]:
    return AT_HOME.body(Ask(messages, (WEATHER,), hint=hint), Sampling(temperature=1.5), shared=shared)


def marks(body: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Where breakpoints are: part, turn, block."""
    found = [(name, 0, place) for name in ("tools", "system") for place, b in enumerate(body[name]) if _marked(b)]
    turns = enumerate(body["messages"])
    return found + [("turn", n, place) for n, turn in turns for place, b in enumerate(turn["content"]) if _marked(b)]


def _marked(block: dict[str, Any]) -> bool:
    return block.get("cache_control") == {"type": "ephemeral"}


def test_request_answer_and_bill(tmp_path: Path) -> None:
    """40 plain tokens, 50 read from the cache, 10 written into it, 20 out: (40x3 + 50x.3 + 10x3.75 + 20x15) / 1e6."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Rome"}}
    say = message(
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "Sure."},
        use,
        stop="tool_use",
        cache_read_input_tokens=50,
        cache_creation_input_tokens=10,
    )
    with serving(say) as endpoint:
        asked = teacher(tmp_path, AnthropicMessages("m", endpoint.base_url), price=Price(3.0, 15.0, 0.3, 3.75))
        (answer,) = asked.answer([ask()], SAMPLING)
    assert endpoint.paths == ["/v1/messages"]  # base_url ends in /v1, and so does not get a second one
    assert answer.message == act(
        Reasoning("hm", signature="s"),
        Text("Sure."),
        ToolCall.from_raw(id="call_0", name="get_weather", raw='{"city": "Rome"}', provider_id="toolu_1"),
    )
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (100, 50, 20)
    assert answer.cost == pytest.approx((40 * 3 + 50 * 0.3 + 10 * 3.75 + 20 * 15) / 1e6, rel=1e-12)
    (body,) = endpoint.requests
    assert (body["max_tokens"], body["temperature"]) == (64, 0.5)
    assert "seed" not in body
    assert body["tools"][0]["input_schema"]["type"] == "object"


def test_a_blank_system_text_is_not_sent() -> None:
    """The API refuses text without a word in it."""
    assert "system" not in sent(Message.of("system", " \n"), USER)
    assert sent(Message.of("system", " "), SYSTEM, USER)["system"] == [{"type": "text", "text": "be brief"}]


def test_system_stands_apart_results_come_first_and_ids_are_plain() -> None:
    body = sent(SYSTEM, USER, ROME, SUN, Message.of("user", "and now?"))
    assert body["system"] == [{"type": "text", "text": "be brief"}]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    _, action, answer = body["messages"]
    assert action["content"][1] == {
        "type": "tool_use",
        "id": "call_0",
        "name": "get_weather",
        "input": {"city": "Rome"},
    }
    assert answer["content"] == [
        {"type": "tool_result", "tool_use_id": "call_0", "content": "sun"},
        {"type": "text", "text": "and now?"},
    ]
    assert body["temperature"] == 1.0


def test_what_the_api_refuses_is_not_sent() -> None:
    """A first turn of the assistant, empty text, broken arguments, an unanswered call, system words in the middle."""
    empty = Message("tool", (ToolResult("c0", ""),))
    broken = act(call("get_weather", "{oops", "c0"))
    body = sent(act(Text("")), broken, empty, Message.of("system", "hurry"), act(call("get_weather", {}, "c1")))
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user", "assistant", "user"]
    assert all(block.get("text", "x").strip() for turn in turns for block in turn["content"])
    assert turns[1]["content"][-1]["input"] == {"malformed": "{oops"}
    assert turns[2]["content"][-1] == {"type": "text", "text": "hurry"}
    assert turns[4]["content"][0]["type"] == "tool_result"


def test_breakpoints_stand_where_requests_agree() -> None:
    """The first request marks system and its end; the next one what the first had, and its own end."""
    context = (SYSTEM, USER, ROME, SUN)
    assert marks(sent(*context)) == []
    assert marks(sent(*context[:2], shared=0)) == [("system", 0, 0), ("turn", 0, 0)]
    assert marks(sent(*context, shared=2)) == [("system", 0, 0), ("turn", 0, 0), ("turn", 2, 0)]
    later = sent(*context, act(Text("ok")), USER, shared=4)
    assert marks(later) == [("system", 0, 0), ("turn", 2, 0), ("turn", 4, 0)]


def test_a_prefix_is_sent_the_same_in_every_step() -> None:
    """Else nothing would be found in the cache: turns of a beginning stay what they were."""
    whole = sent(SYSTEM, USER, ROME, SUN, act(Text("ok")), USER)["messages"]
    assert sent(SYSTEM, USER, ROME, SUN)["messages"] == whole[:3]


def test_a_hint_is_not_kept() -> None:
    """It stands in the last turn, so the end that is marked is the user's turn before it."""
    assert marks(sent(SYSTEM, USER, ROME, SUN, shared=0, hint="care")) == [("system", 0, 0), ("turn", 0, 0)]


def test_usage_adds_what_the_cache_had_to_do_with() -> None:
    counts = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": None}
    assert AT_HOME.read({"content": [], "usage": counts}, ask()).usage == Usage(8, 2, 5, 0)
    assert AT_HOME.read({"content": []}, ask()).usage is None


def test_an_answer_with_ids_that_are_no_text_is_kept_and_not_paid_again(tmp_path: Path) -> None:
    """What cannot be read back from the cache would be asked a second time."""
    used = {"type": "tool_use", "id": 7, "name": "get_weather", "input": {"city": "Rome"}}
    odd = message(
        {"type": "thinking", "thinking": "hm", "signature": 5}, {"type": "redacted_thinking", "data": []}, used
    )
    with serving(odd) as endpoint:
        asked = teacher(tmp_path, AnthropicMessages("m", endpoint.base_url), price=Price(1.0, 1.0))
        first, second = asked.answer([ask()], SAMPLING) + asked.answer([ask()], SAMPLING)
    assert first.message is not None
    assert first.message == second.message
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("raw", ["", [], {}, {"type": "error", "error": {}}, {"content": "text"}])
def test_what_is_no_message_is_told(raw: object) -> None:
    with pytest.raises(CallFailed, match="something else than a message"):
        AT_HOME.read(raw, ask())


def test_an_overloaded_api_is_asked_again_and_no_credential_of_the_environment_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """529 is Anthropic's own; the SDK would take a token of the environment and trace the call."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-for-you")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "not-for-you")
    added = ("X-Api-Key:", "x-own:", "Authorization: Bearer", "idempotency-key:", "Anthropic-Version:")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "\n".join(f"{name} not-for-you" for name in added))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MY_KEY", "k-1")
    busy = Reply({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529, {"retry-after": "0"})
    with serving(busy, message({"type": "text", "text": "hi"})) as endpoint:
        provider = AnthropicMessages("m", endpoint.base_url.removesuffix("/v1"), key_variable="MY_KEY")
        (answer,) = teacher(tmp_path, provider).answer([ask()], SAMPLING)
        assert len(endpoint.requests) == 2
    assert answer.message == Message.of("assistant", "hi")
    assert "not-for-you" not in json.dumps(endpoint.headers)
    assert all(len(headers["idempotency-key"]) == 40 for headers in endpoint.headers)
    assert {headers["anthropic-version"] for headers in endpoint.headers} == {"2023-06-01"}
    assert "k-1" in json.dumps(endpoint.headers)
