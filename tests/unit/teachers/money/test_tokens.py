"""Estimates and bounds of tokens."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tokenizers

from postgrad.core.actor import Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.core.message import Block, Media, Message, Text, ToolCall, ToolResult
from postgrad.teachers.money.tokens import Meter, Scale, by_tokenizer
from postgrad.teachers.providers.anthropic_messages import AnthropicMessages
from postgrad.teachers.providers.ollama_native import OllamaNative
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.providers.provider import ModelAt
from unit.signals.traces_by_hand import WEATHER, act, call

USER = Message.of("user", "x" * 400)
ROME = act(call("get_weather", {"city": "Rome"}))
SUN = Message("tool", (ToolResult("c0", "sun " * 50),))
SAMPLING = Sampling(max_new_tokens=10)


KINDS = [OpenAICompatible, AnthropicMessages, OllamaNative]
SAID = ("", " ", "What is the weather? ", "天气怎么样？", 'Wie wäre "das"\n\tin Köln? \\', "\ud800")


def conversation(seed: int) -> Ask:
    """Of any shape: several and late system texts, parallel and unanswered calls, results out of order, of no call, in
    one message or beside words, two assistants in a row, names and arguments that are not fit to send, hints."""
    random = Random(seed)
    messages, calls = [Message.of("system", random.choice(SAID) * 3) for _ in range(random.randrange(3))], 0
    for _ in range(random.randrange(40)):
        role = random.choice(("system", "developer", "user", "assistant", "assistant", "assistant"))
        blocks: list[Block] = [Text(random.choice(SAID) * random.randrange(9)) for _ in range(random.randrange(3))]
        if random.random() < 0.1:
            blocks.append(Media("image/png", "0" * 64))
        results: list[Block] = []
        for _ in range(random.randrange(4) if role == "assistant" else 0):
            raw = random.choice(('{"city": "Köln"}', "{}", "<city>Rome</city>", '{"a":[1,{"b":null}]}', '{"x": NaN}'))
            blocks.append(ToolCall.from_raw(id=f"id-{calls}", name=random.choice(("get_weather", "a.b")), raw=raw))
            results.append(ToolResult(f"id-{calls}", random.choice(SAID) * random.randrange(9)))
            calls += 1
        messages.append(Message(role, tuple(blocks)))
        random.shuffle(results)
        results = results[: random.choice((9, 9, 9, 1))] + [ToolResult("of no call", "x")] * (random.random() < 0.1)
        if random.random() < 0.5:
            messages += [Message("tool", (result,)) for result in results]
        elif results:
            messages.append(Message("user", (*results, Text(random.choice(SAID)))))
    hint = random.choice((None, None, "Look at the 'city' again."))
    return Ask(tuple(messages), random.choice(((), (WEATHER,))), hint=hint)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_weighed_is_the_body_that_is_sent(kind: type[ModelAt], seed: int) -> None:
    """Parts and what is around them add up to the bytes of the body, to the byte.

    But for the digits of Ollama's `num_ctx`: 4096 in a body without messages, and one more, or two, for long ones.
    """
    provider: Any = kind("m", "http://127.0.0.1:1", extra={"top_p": 0.9})
    ask, scale = conversation(seed), Scale(form=provider.form)
    sent = written(provider.body(ask, SAMPLING, shared=None))
    weighed = scale.ask(ask) + scale.around(provider.body(Ask(()), SAMPLING, shared=None))
    assert 4 * weighed.tokens == pytest.approx(sent, abs=2 if kind is OllamaNative else 0)


def written(body: dict[str, Any]) -> int:
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_ten_calls_are_weighed_with_all_their_digits(kind: type[ModelAt]) -> None:
    """Ids that are counted up get longer: `call_9` and `call_10`. Three calls a turn, answered in one message."""
    provider: Any = kind("m", "http://127.0.0.1:1")
    scale, messages = Scale(form=provider.form), [Message.of("user", "go")]
    for turn in range(40):
        ids = [f"c{turn}-{place}" for place in range(3)]
        messages.append(act(*(call("get_weather", {"city": "Rome"}, one) for one in ids)))
        messages.append(Message("tool", tuple(ToolResult(one, "ok") for one in ids)))
    ask = Ask(tuple(messages), (WEATHER,))
    weighed = scale.ask(ask) + scale.around(provider.body(Ask(()), SAMPLING, shared=None))
    sent = written(provider.body(ask, SAMPLING, shared=None))
    assert 4 * weighed.tokens == pytest.approx(sent, abs=2 if kind is OllamaNative else 0)


def test_what_is_not_sent_is_not_counted() -> None:
    """A hint of 40 letters behind two line breaks, which are four bytes in JSON: 11 tokens."""
    assert Scale().ask(Ask(())).tokens == 0
    assert Scale().ask(Ask((USER,), (WEATHER,))).tokens > Scale().ask(Ask((USER,))).tokens + 20
    assert Scale().ask(Ask((USER,), hint="h" * 40)).tokens == Scale().ask(Ask((USER,))).tokens + 11


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
