"""The effect gate under a tiny random model: gains are differences of log-probabilities, found here the plain way."""

from __future__ import annotations

import pytest
import torch

from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.models.policy import Policy, load_policy
from postgrad.signals.hints.effect import EffectGate
from unit.signals.traces_by_hand import WEATHER, act, call

ROME, OSLO = (act(call("get_weather", {"city": city})) for city in ("Rome", "Oslo"))
ROW = Record((Message.of("user", "weather?"),), OSLO, (WEATHER,), hint="Say Rome.")


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


@torch.no_grad()
def logprob(policy: Policy, prompt: list[int], action: list[int]) -> float:
    """By the model itself, one sequence, no forest."""
    logits = policy.network(torch.tensor([prompt + action])).logits[0].float()
    rows = torch.log_softmax(logits, dim=-1)[len(prompt) - 1 : -1]
    return float(rows.gather(1, torch.tensor(action)[:, None]).sum())


def by_hand(policy: Policy, action: Message) -> float:
    render = policy.renderer
    tokens = render.action(action)
    plain, hinted = (render.prompt(ROW.messages, ROW.tools, hint=hint) for hint in (None, ROW.hint))
    return (logprob(policy, hinted, tokens) - logprob(policy, plain, tokens)) / len(tokens)


def test_the_gain_is_the_rise_of_the_better_action_per_token(policy: Policy) -> None:
    assert EffectGate(policy).gain(ROW, ROME) == pytest.approx(by_hand(policy, ROME), abs=1e-5)


def test_without_a_better_action_it_is_the_fall_of_the_students_own(policy: Policy) -> None:
    assert EffectGate(policy).gain(ROW, None) == pytest.approx(-by_hand(policy, OSLO), abs=1e-5)


def test_an_empty_hint_has_no_effect_and_gains_above_the_least_pass(policy: Policy) -> None:
    gate = EffectGate(policy)
    gain = gate.gain(ROW, ROME)
    assert gain is not None
    assert EffectGate(policy, least=gain - 1e-6)(ROW, ROME) is None
    assert EffectGate(policy, least=gain)(ROW, ROME) == "no_effect"
    assert gate(ROW, ROME) == (None if gain > 0 else "no_effect")
    assert gate.gains == [gain]
    assert gate.measured == {"better": 1}


def test_what_does_not_fit_was_not_measured_and_does_not_pass(policy: Policy) -> None:
    long = Record((Message.of("user", "word " * policy.context_length),), OSLO, hint="x")
    gate = EffectGate(policy)
    assert gate(long, ROME) == "effect_unmeasured"
    assert (gate.measured, gate.gains) == ({"unmeasured": 1}, [])
