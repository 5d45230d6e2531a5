"""Normal forms: what counts as the same action."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from postgrad.core.message import Message, Reasoning, Text, Tool
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


def test_what_the_schema_says_anyway_need_not_be_said() -> None:
    nested = {"type": "object", "properties": {"deep": {"type": "integer", "default": 3}}}
    parameters = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "default": 5},
            "flag": {"type": "boolean", "default": False},
            "where": {**nested, "default": {}},
            "list": {"type": "array", "items": nested},
        },
    }
    tool = Tool("f", "", parameters)
    plain = act(call("f", {}))
    for said in (
        {"n": 5},
        {"n": 5.0},
        {"flag": False},
        {"where": {}},
        {"where": {"deep": 3}},
        {"where": {"deep": 3.0}},
    ):
        assert same_action(act(call("f", said)), plain, [tool]), said
    for said in ({"n": 6}, {"flag": 0}, {"n": None}, {"where": {"deep": 4}}, {"other": 5}, {"list": []}):
        assert not same_action(act(call("f", said)), plain, [tool]), said
    assert same_action(act(call("f", {"list": [{"deep": 3}, {}]})), act(call("f", {"list": [{}, {"deep": 3}]})), [tool])
    assert not same_action(act(call("f", {"n": 5})), plain)  # without the schema nothing is known


def test_a_shell_line_counts_by_its_words_and_remarks_on_it_do_not() -> None:
    line = act(call("Bash", {"command": "ls  'a'", "description": "List it"}))
    assert same_action(line, act(call("Bash", {"command": "ls a"})))
    assert same_action(line, act(call("Bash", {"command": 'ls "a" ', "description": "Look"})))
    assert not same_action(line, act(call("Bash", {"command": "ls b"})))
    assert not same_action(line, act(call("Bash", {"command": "ls a", "timeout": 5})))
    argv = act(call("shell", {"command": ["bash", "-lc", "ls  a"]}))
    assert same_action(argv, act(call("shell", {"command": ["bash", "-lc", "ls 'a'"]})))
    assert not same_action(act(call("note", {"description": "a"})), act(call("note", {"description": "b"})))


def test_the_order_of_calls_counts_where_one_may_change_what_another_finds() -> None:
    rome, oslo = call("get_weather", {"city": "Rome"}, "1"), call("get_weather", {"city": "Oslo"}, "2")
    assert same_action(act(rome, oslo), act(oslo, rome))
    assert not same_action(act(rome, oslo), act(rome, rome))
    write, run = call("Write", {"file_path": "a", "content": "x"}, "1"), call("Bash", {"command": "cat a"}, "2")
    assert not same_action(act(write, run), act(run, write))


def test_reasoning_is_not_learnt() -> None:
    assert learnable(act(Reasoning("hm"), Text("Hi"))).blocks == (Text("Hi"),)
