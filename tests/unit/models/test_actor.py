"""A policy as an actor: answers in order, counts right, abstains when an ask does not fit."""

from __future__ import annotations

from postgrad.core.actor import Actor, Ask, Sampling
from postgrad.core.message import Message, Tool
from postgrad.models.actor import PolicyActor
from postgrad.models.policy import Policy

TOOL = Tool("f", "", {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}, "required": ["unit"]})


def ask(text: str, *tools: Tool, hint: str | None = None) -> Ask:
    return Ask((Message.of("user", text),), tools, hint=hint)


def test_answers_come_in_order_and_alone_or_together_alike(tiny: Policy) -> None:
    actor: Actor = PolicyActor(tiny, "tiny")
    asks = [ask("a long question " * 5), ask("b"), ask("c", TOOL), ask("b", hint="a hint")]
    sampling = Sampling(temperature=1.0, max_new_tokens=12, seed=3)
    together = actor.answer(asks, sampling)
    for one, answer in zip(asks, together, strict=True):
        (alone,) = actor.answer([one], sampling)
        assert alone.message == answer.message
        assert answer.prompt_tokens == len(tiny.renderer.prompt(one.messages, one.tools, hint=one.hint))
        assert answer.completion_tokens == 12 or answer.stop_reason == "stop"
    assert together[1].message != together[3].message


def test_what_does_not_fit_is_an_abstention(tiny: Policy) -> None:
    long, short = PolicyActor(tiny, "tiny").answer(
        [ask("x" * tiny.context_length), ask("x")], Sampling(max_new_tokens=2)
    )
    assert (long.message, long.stop_reason) == (None, "too_long")
    assert short.message is not None


def test_constrained_sampling_binds_only_asks_with_tools(tiny: Policy) -> None:
    sampling = Sampling(temperature=1.0, max_new_tokens=60, seed=1, constrained=True)
    bound, free = PolicyActor(tiny, "tiny").answer([ask("a", TOOL), ask("a")], sampling)
    assert bound.message is not None
    assert free.message is not None
    assert bound.message.tool_calls or "<" not in bound.message.text


def test_no_asks_no_answers(tiny: Policy) -> None:
    assert PolicyActor(tiny, "tiny").answer([], Sampling()) == []
