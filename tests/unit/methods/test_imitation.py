from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postgrad.core.annotation import Unit
from postgrad.core.errors import DataError, TrainingFault
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.methods.imitation import Imitation
from postgrad.methods.layout import Layout
from postgrad.methods.pairs import DPO, KTO
from postgrad.methods.pieces import pieces
from postgrad.methods.supervised import SDPO, SFT
from postgrad.models.policy import Policy, load_policy
from postgrad.models.render import Rendered, Renderer
from postgrad.signals.rows.records import write_records

ASK, ANSWER = Message.of("user", "How much is two and two?"), Message.of("assistant", "It is four.")
AGAIN, FINAL = Message.of("user", "And three?"), Message.of("assistant", "Then it is six.")
TALK = Record((ASK, ANSWER, AGAIN), FINAL, weight=2.0)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def units(policy: Policy, *, length: int = 1000, scored: str = "action", too_long: str = "drop") -> list[Unit]:
    return [u for group in rows(policy, length, scored, too_long)[0] for u in group]


def rows(policy: Policy, length: int, scored: str, too_long: str) -> tuple[list[list[Unit]], Imitation]:
    imitation = Imitation(Layout(policy.renderer, length), scored, too_long)
    return imitation.groups([TALK]), imitation


def scored_texts(policy: Policy, unit: Unit) -> str:
    (item,) = unit.items
    return str(policy.tokenizer.decode([unit.branches[0][p] for p in item.span.positions]))


def test_the_last_answer_alone_with_its_stop_token(policy: Policy) -> None:
    (unit,) = units(policy)
    (item,) = unit.items
    action = policy.renderer.action(FINAL)
    assert list(unit.branches[0][-len(action) :]) == action
    assert item.span.positions == tuple(range(len(unit.branches[0]) - len(action), len(unit.branches[0])))
    assert unit.branches[0][item.span.positions[-1]] in policy.renderer.stop_ids
    assert item.weight == 2.0


def test_every_answer_of_the_conversation_and_nothing_else(policy: Policy) -> None:
    """Two answers, each with its stop token; prompts and what the template writes between are not scored."""
    (unit,) = units(policy, scored="assistant")
    (item,) = unit.items
    tokens = [unit.branches[0][p] for p in item.span.positions]
    assert tokens == policy.renderer.action(ANSWER) + policy.renderer.action(FINAL)
    (last,) = units(policy)
    assert unit.branches == last.branches


@pytest.mark.parametrize("scored", ["action", "assistant"])
def test_a_long_row_that_is_split_scores_every_token_once(policy: Policy, scored: str) -> None:
    (whole,) = units(policy, scored=scored)
    parts = units(policy, scored=scored, too_long="split", length=16)
    assert len(parts) > 1
    assert all(len(part.branches[0]) <= 16 for part in parts)
    assert all(part.items[0].weight == 2.0 for part in parts)
    assert "".join(scored_texts(policy, part) for part in parts) == scored_texts(policy, whole)
    _, imitation = rows(policy, 16, scored, "split")
    assert imitation.rows == {"split": 1, "pieces of split rows": len(parts)}


def test_a_long_row_is_dropped_with_a_count(policy: Policy) -> None:
    groups, imitation = rows(policy, 16, "action", "drop")
    assert groups == []
    assert imitation.rows == {"dropped: longer than 16 tokens": 1}


def test_pieces_by_hand() -> None:
    """10 tokens, at most 4, 1 repeated: 0–4, 3–7, 6–10; the fresh ones are 0–3, 4–6, 7–9."""
    assert list(pieces(10, longest=4, overlap=1)) == [(0, 4, 0), (3, 7, 4), (6, 10, 7)]
    assert list(pieces(4, longest=4, overlap=3)) == [(0, 4, 0)]
    assert list(pieces(6, longest=4, overlap=3)) == [(0, 4, 0), (1, 5, 4), (2, 6, 5)]


class Silent(Renderer):
    """A renderer that gives no answer a span, as a template without generation marks would."""

    def spans(self, messages, tools=()) -> Rendered:
        rendered = super().spans(messages, tools)
        return Rendered(rendered.tokens, rendered.spans, tuple(None for _ in rendered.actions))


class Endless(Renderer):
    """A renderer that leaves the stop token out."""

    def action(self, message: Message) -> list[int]:
        return super().action(message)[:-1]


def test_a_row_in_which_nothing_is_scored_is_an_error(policy: Policy) -> None:
    silent = Imitation(Layout(Silent(policy.tokenizer), 1000), "assistant", "drop")
    with pytest.raises(TrainingFault, match="no token of a row would be imitated"):
        silent.groups([TALK])


def test_an_answer_that_would_never_stop_is_an_error(policy: Policy) -> None:
    endless = Imitation(Layout(Endless(policy.tokenizer), 1000), "action", "drop")
    with pytest.raises(TrainingFault, match="no stop token"):
        endless.groups([TALK])


def test_the_source_tells_what_became_of_the_rows(policy: Policy, tmp_path: Path) -> None:
    other = Record((ASK,), ANSWER)
    write_records(tmp_path / "r.jsonl", [TALK, other, Record((ASK,), ANSWER, rejected=FINAL)])
    length = len(policy.renderer.prompt((ASK,))) + len(policy.renderer.action(ANSWER))
    source = SFT(records=tmp_path / "r.jsonl", max_length=length).source(policy, seed=0)
    assert source.rows == {
        "used": 1,
        f"dropped: longer than {length} tokens": 1,
        "passed over: a pair or a hinted row": 1,
    }
    with pytest.raises(DataError, match="longer than 5 tokens"):
        SFT(records=tmp_path / "r.jsonl", max_length=5).source(policy, seed=0)


@pytest.mark.parametrize(("field", "value"), [("batch_size", 1), ("max_length", 18)])
def test_every_number_changes_what_is_trained_on(policy: Policy, tmp_path: Path, field: str, value: int) -> None:
    numbers = {name for name, f in SFT.model_fields.items() if f.annotation in (int, float)}
    assert numbers == {"batch_size", "max_length"}
    write_records(tmp_path / "r.jsonl", [TALK, Record((ASK,), ANSWER)])
    base = {"records": tmp_path / "r.jsonl", "too_long": "split", "batch_size": 2, "max_length": 20}
    before, after = (SFT.model_validate(f).source(policy, seed=0).units(0) for f in (base, base | {field: value}))
    assert before != after


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (SDPO, {"used": 1, "passed over: without a hint": 2, "dropped: longer than {} tokens": 1}),
        (DPO, {"used": 1, "passed over: without a rejected action": 3}),
        (KTO, {"used": 2, "passed over: hinted rows": 2}),
    ],
)
def test_methods_of_one_kind_of_row_tell_how_many_are_of_another(
    policy: Policy, tmp_path: Path, method: type[Any], told: dict[str, int]
) -> None:
    """Two rows with a hint, of which one is too long, a plain one and a pair."""
    hinted = [Record((ASK,), ANSWER, hint=words) for words in ("Look.", "Look again. " * 40)]
    write_records(tmp_path / "r.jsonl", [*hinted, Record((ASK,), ANSWER), Record((ASK,), ANSWER, rejected=FINAL)])
    longest = len(policy.renderer.prompt((ASK,), hint="Look.")) + len(policy.renderer.action(FINAL)) + 64
    source = method(records=tmp_path / "r.jsonl", max_length=longest).source(policy, seed=0)
    assert source.rows == {what.format(longest): count for what, count in told.items()}
