"""Normal forms: what counts as the same action."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.message import Message, Reasoning, Text
from postgrad.signals.actions import learnable, normal_form, same_action
from unit.signals.traces_by_hand import act, call

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_key_order_and_spacing_do_not_count(arguments: dict[str, object]) -> None:
    backwards = json.dumps(dict(reversed(arguments.items())), indent=2)
    assert same_action(act(call("f", arguments)), act(call("f", backwards)))


def test_words_around_a_call_do_not_count_and_its_values_do() -> None:
    plain = act(call("f", {"n": 5}))
    assert same_action(act(Text("Let me see."), call("f", '{"n": 5.0}', "other")), plain)
    assert not same_action(act(call("f", {"n": True})), act(call("f", {"n": 1})))
    assert not same_action(act(call("f", {"n": "5"})), plain)
    assert not same_action(act(call("g", {"n": 5})), plain)


def test_text_counts_by_its_words() -> None:
    assert normal_form(Message.of("assistant", " No\n tool  fits. ")) == "No tool fits."


def test_broken_arguments_count_by_their_text() -> None:
    assert same_action(act(call("f", "{oops")), act(call("f", " {oops ")))
    assert not same_action(act(call("f", "{oops")), act(call("f", {})))


def test_reasoning_is_not_learnt() -> None:
    assert learnable(act(Reasoning("hm"), Text("Hi"))).blocks == (Text("Hi"),)
