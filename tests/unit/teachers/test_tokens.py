"""Estimates and bounds of tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, ToolResult
from postgrad.teachers.anthropic_messages import AnthropicMessages
from postgrad.teachers.ollama_native import OllamaNative
from postgrad.teachers.openai_compatible import OpenAICompatible
from postgrad.teachers.provider import ModelAt
from postgrad.teachers.tokens import Meter, Scale, by_tokenizer
from unit.signals.traces_by_hand import WEATHER, act, call

USER = Message.of("user", "x" * 400)
ROME = act(call("get_weather", {"city": "Rome"}))
SUN = Message("tool", (ToolResult("c0", "sun " * 50),))
SAMPLING = Sampling(max_new_tokens=10)


@pytest.mark.parametrize("kind", [OpenAICompatible, AnthropicMessages, OllamaNative])
@pytest.mark.parametrize(
    "said", ["What is the weather? " * 20, "天气怎么样？" * 20, "Wie wäre das Wetter für Köln? " * 20]
)
def test_a_request_is_estimated_by_the_bytes_that_are_sent(kind: type[ModelAt], said: str) -> None:
    """A token for four bytes of the body's messages and tools in UTF-8, in the form of the API that is asked.

    Of a message alone neither the ids that a whole request counts up nor the tool's name beside a result are known, and
    lists are in brackets with no comma after the last: two tokens a message at most.
    """
    provider: Any = kind("m", "http://127.0.0.1:1")
    ask = Ask((Message.of("system", "Be brief."), Message.of("user", said), ROME, SUN), (WEATHER,))
    body = provider.body(ask, SAMPLING, shared=None)
    told = [*(body.get("system") or ()), *body["messages"], *body["tools"]]
    sent = sum(len(json.dumps(one, ensure_ascii=False).encode()) + 2 for one in told) / 4
    assert Scale(form=provider.form).ask(ask).tokens == pytest.approx(sent, abs=2 * len(ask.messages))


def test_what_is_not_sent_is_not_counted() -> None:
    assert Scale().ask(Ask(())).tokens == 0
    assert Scale().ask(Ask((USER,), (WEATHER,))).tokens > Scale().ask(Ask((USER,))).tokens + 20
    assert Scale().ask(Ask((USER,), hint="h" * 40)).tokens == Scale().ask(Ask((USER,))).tokens + 10


def test_a_bound_is_bytes_not_characters() -> None:
    """Three bytes a character, and no tokenizer makes more tokens than bytes."""
    latin, chinese = (Scale().ask(Ask((Message.of("user", text * 100),))) for text in ("x", "天"))
    assert chinese.bytes - latin.bytes == 200


def test_what_was_billed_of_a_beginning_is_not_bound_by_its_bytes_again() -> None:
    """The second request adds ROME and SUN: what was billed, plus their bytes and the template's."""
    scale, first, second = Scale(), Ask((USER,)), Ask((USER, ROME, SUN))
    meter = Meter(scale)
    unbilled = meter.most(second, SAMPLING, lane="t")[0]
    meter.learn(first, lane="t", read=110, written=5)
    added = scale.messages((ROME, SUN)).bytes
    assert meter.most(second, SAMPLING, lane="t")[0] == 110 + added + 128
    assert meter.most(second, SAMPLING, lane="another") == (unbilled, 10)


def test_a_provider_that_bills_more_than_bytes_is_believed() -> None:
    """It billed 1,000 tokens for an estimate of e: another request of the same size may cost as much."""
    meter = Meter(Scale())
    meter.learn(Ask((Message.of("user", "a"),)), lane="t", read=1000, written=50)
    assert meter.most(Ask((Message.of("user", "b"),)), SAMPLING, lane="u") == (pytest.approx(1000), 50)


def test_a_tokenizer_file_counts(tmp_path: Path) -> None:
    """A tokenizer of words: "a b c" has three tokens, and a message four around it."""
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        scale = Scale(by_tokenizer(path))
        assert scale.ask(Ask((Message.of("user", "a b c"),))).tokens == 7.0
        assert scale.answer(Message.of("assistant", "a b")) == 2.0
    (tmp_path / "broken.json").write_text('{"x": 1}')
    for path in (tmp_path / "broken.json", tmp_path / "missing.json"):
        with pytest.raises(ConfigError, match="tokenizer"):
            by_tokenizer(path)
