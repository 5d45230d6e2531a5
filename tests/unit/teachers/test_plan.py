"""The plan: tokens, prompt caches, prices, and what has been answered already."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postgrad.core.actor import Answer
from postgrad.core.message import Message
from postgrad.core.trace import Trace
from postgrad.teachers.money.prices import Price
from postgrad.teachers.money.schedule import Item, Schedule, ask_of
from postgrad.teachers.money.tokens import Scale
from postgrad.teachers.plan import Plan
from postgrad.teachers.providers.anthropic_messages import AnthropicMessages
from postgrad.teachers.providers.ollama_native import OllamaNative
from postgrad.teachers.providers.openai_compatible import OpenAICompatible
from postgrad.teachers.replay import Teacher
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, call
from unit.teachers.asking import SAMPLING, openai, teacher

AT_HOME = "http://localhost:1/v1"
ACTION = act(call("get_weather", {"city": "Rome"}, "c0"))


def trace(id: str, steps: int, words: int = 50) -> Trace:
    builder = TraceBuilder(f"{id} " + "word " * words, [WEATHER])
    for number in range(steps):
        builder.step(act(call("get_weather", {"city": "Rome"}, f"c{number}")), [("fine " * words, False)])
    return builder.build(id)


def planned(traces: Sequence[Trace], asked: Teacher) -> dict[str, Any]:
    steps = {one.id: [step.index for step in one.steps] for one in traces}
    return Plan(steps, [asked], SAMPLING).add(traces).told()[asked.name]


def priced(folder: Path, price: Price, provider: Any = None) -> Teacher:
    return Teacher("http", teacher(folder, provider or openai(AT_HOME), price=price), price=price)


def sizes(one: Trace, provider: Any = None, *, shared: Sequence[int | None] = (None, None, None)) -> list[float]:
    """Tokens of each step's request: a token for four bytes of its body, which shares messages with the last one."""
    provider = provider or openai(AT_HOME)
    asks = [(ask_of(one, step), same) for step, same in zip(one.steps, shared, strict=False)]
    bodies = [provider.body(ask, SAMPLING, shared=same) for ask, same in asks]
    return [len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) / 4 for body in bodies]


def test_without_a_cache_every_context_is_paid(tmp_path: Path) -> None:
    one = trace("x", 3)
    told = planned([one], priced(tmp_path, Price(1.0, 2.0)))
    written = 3 * Scale().answer(ACTION)
    assert told["tokens_in"] == round(sum(sizes(one)))
    assert (told["calls"], told["cached"], told["tokens_cached"]) == (3, 0, 0)
    assert told["cost"] == pytest.approx((sum(sizes(one)) + 2 * written) / 1e6, rel=1e-6)
    assert told["most"] > told["cost"]


def test_the_worst_case_knows_of_longer_answers_by_extra(tmp_path: Path) -> None:
    """Three answers of 1000 tokens instead of 64, at 2 US dollars a million."""
    price, one = Price(1.0, 2.0), trace("x", 3)
    plain = planned([one], priced(tmp_path, price))
    longer = planned([one], priced(tmp_path, price, openai(AT_HOME, extra={"max_tokens": 1000})))
    assert longer["most"] - plain["most"] == pytest.approx(3 * (1000 - 64) * 2 / 1e6)


def test_a_steps_context_is_found_in_the_cache_by_the_next(tmp_path: Path) -> None:
    """Contexts of s1 < s2 < s3 tokens: s1 and s2 are read from the cache. The first of another trace finds nothing of
    its own, but the tools, which nobody but a system text follows here: no messages are shared, so nothing is found."""
    one, other = trace("x", 3), trace("y", 1)
    told = planned([one, other], priced(tmp_path, Price(1.0, 0.0, cached_input=0.1, prompt_cache="all")))
    first, second, third = sizes(one)
    (apart,) = sizes(other)
    assert told["tokens_cached"] == pytest.approx(first + second, abs=1)
    expected = (first + second + third + apart - 0.9 * (first + second)) / 1e6
    assert told["cost"] == pytest.approx(expected, rel=1e-6)


def test_openai_keeps_beginnings_of_1024_tokens_in_blocks_of_128(tmp_path: Path) -> None:
    """The first context has fewer and is not found; the second has more and is found as whole blocks."""
    one = trace("x", 3, words=400)
    provider = OpenAICompatible("gpt-x", "https://api.openai.com/v1")
    asked = teacher(tmp_path, provider, price=Price(1.0, 0.0, cached_input=0.1), redact=lambda ask: ask)
    told = planned([one], Teacher("http", asked, price=Price(1.0, 0.0, cached_input=0.1)))
    first, second, _ = sizes(one, provider)
    assert first < 1024 < second
    assert told["tokens_cached"] == second // 128 * 128


def test_writing_into_anthropics_cache_is_paid_where_somebody_will_read_it(tmp_path: Path) -> None:
    """Contexts above 1024 tokens: what is not read is written at 1.25; a trace with one step marks nothing.

    The first request marks tools and its end, the second the end of the first as well; what is found of the first is
    weighed with that third mark, 37 bytes.
    """
    price = Price(1.0, 0.0, cached_input=0.1, cache_write=1.25)
    provider = AnthropicMessages("claude-x", "http://localhost:1")
    one, other = trace("x", 2, words=2000), trace("y", 1, words=2000)
    first, second = sizes(one, provider, shared=(0, 1))
    (apart,) = sizes(other, provider)
    found = first + len(',"cache_control":{"type":"ephemeral"}') / 4
    told = planned([one, other], priced(tmp_path, price, provider))
    assert told["cost"] == pytest.approx((1.25 * first + 0.1 * found + 1.25 * (second - found) + apart) / 1e6, rel=1e-6)


def test_what_is_answered_costs_nothing_and_corrects_the_rest(tmp_path: Path) -> None:
    """The first of two equal steps was billed twice the tokens that were estimated, in and out: so will the second."""
    one, other = trace("x", 1), trace("y", 1)
    asked = priced(tmp_path, Price(1.0, 1.0))
    (read,), written = sizes(one), Scale().answer(ACTION)
    cache = asked.actor.cache  # type: ignore[attr-defined]
    known = Answer(ACTION, "asked-1", prompt_tokens=round(2 * read), completion_tokens=round(2 * written))
    cache.put(cache.key(ask_of(one, one.steps[0]), SAMPLING), known)
    told = planned([one, other], asked)
    assert (told["calls"], told["cached"]) == (1, 1)
    assert told["cost"] == pytest.approx(2 * (read + written) / 1e6, rel=0.02)
    assert told["basis"].startswith("bills of 1 answered")


@pytest.mark.parametrize("cached", [0, 10])
def test_a_provider_whose_bills_name_no_cache_is_not_planned_with_one(tmp_path: Path, cached: int) -> None:
    """Two steps of the first trace are answered; whether the second's bill names cached tokens decides."""
    one, other = trace("x", 2), trace("y", 3)
    asked = priced(tmp_path, Price(1.0, 1.0, cached_input=0.1, prompt_cache="all"))
    cache = asked.actor.cache  # type: ignore[attr-defined]
    for step, hit in zip(one.steps, (0, cached), strict=True):
        known = Answer(ACTION, "asked-1", prompt_tokens=100, completion_tokens=10, cached_tokens=hit)
        cache.put(cache.key(ask_of(one, step), SAMPLING), known)
    assert (planned([one, other], asked)["tokens_cached"] > 0) == bool(cached)


@pytest.mark.parametrize(("ago", "held"), [(10.0, True), (250.0, True), (350.0, False)])
def test_what_an_earlier_run_asked_a_short_while_ago_is_still_in_the_providers_cache(
    tmp_path: Path, ago: float, held: bool
) -> None:
    """Of three steps two were answered and billed as estimated, the second as found up to the first's end, 5 s apart.

    OpenAI's cache keeps 300 seconds: after 250 the third step finds the second's tokens, after 350 nothing.
    """
    price, one = Price(1.0, 1.0, cached_input=0.1), trace("x", 3, words=1200)
    asked, (first, second, third) = priced(tmp_path, price), sizes(one)
    cache, hits = asked.actor.cache, (0, int(first // 128 * 128))  # type: ignore[attr-defined]
    for step, read, hit, age in zip(one.steps, (first, second), hits, (ago + 5, ago), strict=False):
        known = Answer(ACTION, "asked-1", prompt_tokens=round(read), completion_tokens=10, cached_tokens=hit)
        key = cache.key(ask_of(one, step), SAMPLING)
        cache.put(key, known)
        (file,) = cache.folder.glob(f"*/{key}.json")
        os.utime(file, (time.time() - age,) * 2)
    told = planned([one], asked)
    assert first > 1024
    assert told["prompt_cache"] == "openai, as billed"
    assert told["tokens_cached"] == pytest.approx(second // 128 * 128 if held else 0, abs=128)
    assert told["tokens_in"] == pytest.approx(third, rel=0.001)


def test_a_bill_without_a_hit_long_after_the_request_before_says_nothing_of_the_cache(tmp_path: Path) -> None:
    """The second step was asked an hour after the first: that nothing was found is no sign that nothing is kept."""
    price, one = Price(1.0, 1.0, cached_input=0.1), trace("x", 2, words=1200)
    asked = priced(tmp_path, price)
    cache = asked.actor.cache  # type: ignore[attr-defined]
    for step, age in zip(one.steps, (3600, 0), strict=True):
        key = cache.key(ask_of(one, step), SAMPLING)
        cache.put(key, Answer(ACTION, "asked-1", prompt_tokens=3000, completion_tokens=10))
        (file,) = cache.folder.glob(f"*/{key}.json")
        os.utime(file, (time.time() - age,) * 2)
    assert planned([one], asked)["prompt_cache"] == "openai, assumed"


def test_batch_prices_and_free_teachers(tmp_path: Path) -> None:
    one = trace("x", 2)
    told = planned([one], priced(tmp_path, Price(1.0, 1.0, cached_input=0.1, batch=0.5)))
    full = planned([one], priced(tmp_path, Price(1.0, 1.0)))
    assert told["batch_cost"] == pytest.approx(full["cost"] / 2, rel=1e-6)
    free = planned([one], Teacher("free", ScriptedActor("free", lambda ask: Message.of("assistant", "x"))))
    assert (free["calls"], free["cost"], free["most"], free["basis"]) == (2, 0.0, 0.0, "free")


@pytest.mark.parametrize("kind", [OpenAICompatible, AnthropicMessages, OllamaNative])
@pytest.mark.parametrize("hint", [None, "Look at the city."])
@pytest.mark.parametrize("price", [Price(1.0, 2.0), Price(1.0, 2.0, cached_input=0.1)])
def test_the_input_of_a_plan_is_all_bytes_that_will_be_sent(
    tmp_path: Path, kind: Any, hint: str | None, price: Price
) -> None:
    """Twelve steps of three parallel calls: a token for four bytes of the bodies, in which also the marks of prompt
    caches stand, rounded once, for the sum."""
    builder = TraceBuilder("Wie wäre das Wetter?", [WEATHER])
    for step in range(12):
        calls = [call("get_weather", {"city": "Köln"}, f"c{step}-{place}") for place in range(3)]
        builder.step(act(*calls), [("ok", False)] * 3)
    one, provider = builder.build("x"), kind("m", "http://127.0.0.1:1")
    asked = Teacher("http", teacher(tmp_path, provider, price=price), price=price, hint=lambda trace, step: hint)
    schedule = Schedule({"x": range(12)}, in_order=price.rewards_order)
    bodies = [
        provider.body(asked.ask(one, step), SAMPLING, shared=schedule.shared(Item(one, step))) for step in one.steps
    ]
    sent = sum(len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) for body in bodies)
    assert planned([one], asked)["tokens_in"] == pytest.approx(sent / 4, abs=0.5)


@pytest.mark.parametrize("kind", [OpenAICompatible, AnthropicMessages, OllamaNative])
def test_a_trace_of_300_steps_is_planned_at_once(tmp_path: Path, kind: Any) -> None:
    """Two seconds are allowed for the whole command; the plan itself is a small part of it."""
    one, price = trace("x", 300), Price(1.0, 2.0, cached_input=0.1)
    asked = priced(tmp_path, price, kind("m", "http://127.0.0.1:1"))
    started = time.process_time()
    told = planned([one], asked)
    assert told["calls"] == 300
    assert time.process_time() - started < 1.0


def logs(read: float, written: float) -> Any:
    """A log that counts so many tokens of each step."""
    return lambda step: (round(read), round(written))


def test_what_the_traces_logged_corrects_an_estimate_by_characters(tmp_path: Path) -> None:
    """Every request of e tokens was counted as 1.25 e, every action of a as 0.8 a: so will the teacher's be."""
    one = trace("x", 1)
    (read,), written, price = sizes(one), Scale().answer(ACTION), Price(1.0, 1.0)
    asked = priced(tmp_path, price)
    told = Plan({"x": [0]}, [asked], SAMPLING, logged=logs(1.25 * read, 0.8 * written)).add([one]).told()["http"]
    assert told["cost"] == pytest.approx((1.25 * read + 0.8 * written) / 1e6, rel=0.02)
    assert told["basis"].startswith("what 1 of these requests counted")


@pytest.mark.parametrize("factor", [0.1, 30.0])
def test_a_log_that_counts_something_else_is_not_believed(tmp_path: Path, factor: float) -> None:
    """A system prompt that the trace does not hold, or a number from nowhere."""
    one = trace("x", 1)
    asked, (read,), written = priced(tmp_path, Price(1.0, 1.0)), sizes(one), Scale().answer(ACTION)
    told = Plan({"x": [0]}, [asked], SAMPLING, logged=logs(factor * read, factor * written)).add([one]).told()["http"]
    assert told == planned([one], asked)


def test_a_log_of_a_request_that_is_not_known_whole_is_not_believed(tmp_path: Path) -> None:
    one = trace("x", 1)
    asked, (read,) = priced(tmp_path, Price(1.0, 1.0)), sizes(one)
    (step,) = one.steps
    request = msgspec.structs.replace(step.request, fidelity="reconstructed")
    rebuilt = msgspec.structs.replace(one, steps=(msgspec.structs.replace(step, request=request),))
    told = Plan({"x": [0]}, [asked], SAMPLING, logged=logs(1.5 * read, 1.0)).add([rebuilt]).told()["http"]
    assert told == planned([one], asked)


def test_the_teachers_own_tokenizer_is_better_than_another_models_log(tmp_path: Path) -> None:
    """By words: "x", 50 words and the text around a call; the log's counts do not matter."""
    one, price = trace("x", 1), Price(1.0, 1.0)
    scale = Scale(lambda text: float(len(text.split())))
    asked = Teacher("http", teacher(tmp_path, openai(AT_HOME), price=price, scale=scale), price=price)
    with_log = Plan({"x": [0]}, [asked], SAMPLING, logged=logs(100, 20)).add([one]).told()["http"]
    assert with_log == planned([one], asked)
    assert "tokenizer" in with_log["basis"]
