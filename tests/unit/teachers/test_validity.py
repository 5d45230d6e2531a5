"""What makes an action fit to be learnt."""

from __future__ import annotations

import pytest

from postgrad.core.message import Message, Text, Tool
from postgrad.teachers.validity import invalid_reason
from unit.signals.traces_by_hand import WEATHER, act, call


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (Message.of("assistant", "Sunny."), None),
        (act(), "empty"),
        (act(Text("\n\n")), "empty"),
        (act(call("get_weather", {"city": "Rome", "unit": "celsius"})), None),
        (act(call("get_weather", "{")), "malformed_json"),
        (act(call("get_weather", "[1]")), "malformed_json"),
        (act(call("get_wether", {"city": "Rome"})), "unknown_tool"),
        (act(call("get_weather", {})), "against_schema"),
        (act(call("get_weather", {"city": "Rome", "days": "2"})), "against_schema"),
        (act(call("get_weather", {"city": "Rome"}), call("get_weather", {"city": 1})), "against_schema"),
    ],
)
def test_reasons(action: Message, reason: str | None) -> None:
    assert invalid_reason(action, [WEATHER]) == reason


def test_without_known_tools_only_the_json_is_judged() -> None:
    assert invalid_reason(act(call("anything", {"x": 1})), []) is None
    assert invalid_reason(act(call("anything", "{")), []) == "malformed_json"


@pytest.mark.parametrize(
    "schema", [{"type": "dict"}, {"properties": 3}, {"properties": {"city": {"$ref": "#/$defs/none"}}}]
)
def test_a_schema_that_cannot_be_used_is_told_apart(schema: dict[str, object]) -> None:
    assert invalid_reason(act(call("f", {"city": "Rome"})), [Tool("f", "", schema)]) == "unusable_schema"
