"""Records as units: which tokens are scored, checked by decoding them."""

from __future__ import annotations

import pytest

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, PreferenceItem, Span
from postgrad.core.message import Message, Tool, ToolCall
from postgrad.core.record import Record
from postgrad.methods.layout import Layout
from postgrad.models.render import Renderer
from postgrad.models.tiny import byte_tokenizer

ASK = Message.of("user", "add 1 and 2")
RIGHT = Message("assistant", (ToolCall.from_raw(id="c", name="add", raw='{"a": 1, "b": 2}'),))
WRONG = Message.of("assistant", "three")
TOOL = Tool("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(byte_tokenizer())


def scored(renderer: Renderer, branch: tuple[int, ...], span: Span) -> list[int]:
    return [branch[position] for position in span.positions]


def test_cross_entropy_scores_the_action_and_its_stop_token(renderer: Renderer) -> None:
    (group,) = Layout(renderer, 4096).groups([Record((ASK,), RIGHT, (TOOL,), weight=0.5)], "cross_entropy")
    (unit,) = group
    (item,) = unit.items
    assert isinstance(item, CrossEntropyItem)
    assert item.weight == 0.5
    tokens = scored(renderer, unit.branches[0], item.span)
    assert tokens == renderer.action(RIGHT)
    assert tokens[-1] in renderer.stop_ids
    assert list(unit.branches[0][: item.span.positions[0]]) == renderer.prompt((ASK,), (TOOL,))


def test_a_pair_shares_its_prompt(renderer: Renderer) -> None:
    (group,) = Layout(renderer, 4096).groups([Record((ASK,), RIGHT, rejected=WRONG)], "preference")
    (item,) = group[0].items
    assert isinstance(item, PreferenceItem)
    assert scored(renderer, group[0].branches[0], item.chosen) == renderer.action(RIGHT)
    assert scored(renderer, group[0].branches[1], item.rejected) == renderer.action(WRONG)
    assert item.chosen.positions[0] == item.rejected.positions[0] == len(renderer.prompt((ASK,)))


def test_student_and_teacher_score_the_same_tokens_in_two_contexts(renderer: Renderer) -> None:
    (group,) = Layout(renderer, 4096).groups([Record((ASK,), WRONG, hint="call add")], "divergence")
    (unit,) = group
    (item,) = unit.items
    assert isinstance(item, DivergenceItem)
    student = scored(renderer, unit.branches[0], item.student)
    assert student == scored(renderer, unit.branches[1], item.teacher) == renderer.action(WRONG)
    assert "call add" in renderer.decode(unit.branches[1])
    assert "call add" not in renderer.decode(unit.branches[0])


def test_a_channel_takes_only_its_own_rows(renderer: Renderer) -> None:
    rows = [Record((ASK,), RIGHT), Record((ASK,), RIGHT, rejected=WRONG), Record((ASK,), WRONG, hint="h")]
    for channel in ("cross_entropy", "preference", "divergence"):
        groups = Layout(renderer, 4096).groups(rows, channel)
        assert sum(len(group) for group in groups) == 1


def test_rows_that_are_too_long_or_say_nothing_are_counted(renderer: Renderer) -> None:
    layout = Layout(renderer, max_length=len(renderer.prompt((ASK,))))
    assert layout.groups([Record((ASK,), RIGHT), Record((ASK,), WRONG, rejected=WRONG)], "cross_entropy") == []
    assert layout.groups([Record((ASK,), WRONG, rejected=WRONG)], "preference") == []
    assert layout.dropped == {
        f"longer than {layout.max_length} tokens": 1,
        "chosen and rejected are the same tokens": 1,
    }


def test_rows_with_one_tool_list_are_one_group(renderer: Renderer) -> None:
    rows = [Record((ASK,), RIGHT, (TOOL,)), Record((ASK,), WRONG), Record((ASK,), WRONG, (TOOL,))]
    assert [len(group) for group in Layout(renderer, 4096).groups(rows, "cross_entropy")] == [2, 1]


def test_rows_without_tools_are_grouped_by_their_first_message(renderer: Renderer) -> None:
    rows = [Record((ASK,), RIGHT), Record((Message.of("user", "hi"),), WRONG), Record((ASK,), WRONG)]
    assert [len(group) for group in Layout(renderer, 4096).groups(rows, "cross_entropy")] == [2, 1]


def test_a_row_that_cannot_be_rendered_is_dropped_and_counted(renderer: Renderer) -> None:
    layout = Layout(renderer, 4096)
    assert len(layout.groups([Record((), RIGHT), Record((ASK,), RIGHT)], "cross_entropy")) == 1
    assert layout.dropped == {"the chat template refuses its messages": 1}


def test_rows_that_teach_nothing_are_dropped_and_counted(renderer: Renderer) -> None:
    """A weight of 0, and an action without a word or a call (learnt, it would be silence); a rejected one may be."""
    layout, silent = Layout(renderer, 4096), Message.of("assistant", " \n")
    rows = [Record((ASK,), RIGHT, weight=0.0), Record((ASK,), silent), Record((ASK,), Message("assistant", ()))]
    assert layout.groups([*rows, Record((ASK,), RIGHT)], "cross_entropy") != []
    assert layout.dropped == {"weight 0": 1, "the action is empty": 2}
    assert layout.groups([Record((ASK,), RIGHT, rejected=silent)], "preference") != []


def test_a_row_that_is_there_twice_is_used_twice_and_counted(renderer: Renderer) -> None:
    layout = Layout(renderer, 4096)
    rows = [Record((ASK,), RIGHT), Record((ASK,), RIGHT, weight=2.0), Record((ASK,), WRONG)]
    assert [len(group) for group in layout.groups(rows, "cross_entropy")] == [3]
    assert layout.repeated == 1
