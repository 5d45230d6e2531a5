"""Pairs with a reference computed beforehand, and pairs taken apart for KTO."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from postgrad.core.annotation import JudgedItem, PreferenceItem, Unit
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.forest import build_forest
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.methods import pairs
from postgrad.methods.pairs import DPO, KTO, Judged, log_ratios, mismatched
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy
from postgrad.objectives.channel import Placed
from postgrad.objectives.preference import Preference
from postgrad.signals.rows.records import write_records
from postgrad.train.scoring import scored_forest

GOOD, BAD = Message.of("assistant", "b"), Message.of("assistant", "aa")
ROWS = [
    Record((Message.of("user", "one"),), GOOD, rejected=BAD, weight=0.5),
    Record((Message.of("user", "two"),), BAD),
    Record((Message.of("user", "three"),), GOOD, hint="never mind"),
]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random", adapter=AdapterConfig(rank=2))


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write_records(tmp_path / "records.jsonl", ROWS)
    return tmp_path / "records.jsonl"


def first_loss(policy: Policy, units: list[Unit], channel: Preference) -> float:
    forest = build_forest(units)
    scored = scored_forest(policy, forest, policy.hidden_TD(forest))
    placed = [Placed(k, item) for k, unit in enumerate(units) for item in unit.items]
    return float(channel.loss(scored, placed)[0])


def test_a_precomputed_reference_of_a_pair_longer_than_a_pass(
    policy: Policy, records: Path, monkeypatch: pytest.MonkeyPatch
):
    """A pass of 8 tokens for pairs of some 20: packing rebuilds such a pair, and its numbers stay the same ones."""
    whole, short = DPO(records=records, batch_size=1, reference="precomputed"), []
    for budget in (pairs.BUDGET, 8):
        monkeypatch.setattr(pairs, "BUDGET", budget)
        (unit,) = whole.source(policy, seed=0).units(0)
        (item,) = unit.items
        assert isinstance(item, PreferenceItem)
        assert item.reference is not None
        short.append(item.reference)
    for known, cut in zip(*short, strict=True):
        assert cut == pytest.approx(known, abs=1e-5)


def test_a_precomputed_reference_is_that_of_the_policy_at_the_start(policy: Policy, records: Path):
    """ln 2 times the weight, as with a live one; and the arrays are the reference's log-probabilities."""
    live = list(DPO(records=records, batch_size=1).source(policy, seed=0).units(0))
    known = list(DPO(records=records, batch_size=1, reference="precomputed").source(policy, seed=0).units(0))
    assert live[0].branches == known[0].branches
    for units in (live, known):
        assert first_loss(policy, units, Preference()) == pytest.approx(0.5 * 0.6931472, rel=1e-5)
    (item,) = known[0].items
    assert isinstance(item, PreferenceItem)
    assert item.reference is not None
    forest = build_forest(known)
    with policy.reference():
        scored = scored_forest(policy, forest, policy.hidden_TD(forest))
        expected = scored.logprobs(scored.nodes(0, item.rejected))
    torch.testing.assert_close(torch.from_numpy(item.reference[1]), expected, rtol=1e-5, atol=1e-5)


def test_kto_takes_pairs_apart(policy: Policy, records: Path):
    """A pair gives a good and a bad completion, a row without a rejected action a good one, a hinted row none."""
    units = KTO(records=records, batch_size=3).source(policy, seed=0).units(0)
    items = [item for unit in units for item in unit.items if isinstance(item, JudgedItem)]
    said = {
        (bool(item.good), policy.renderer.decode([unit.branches[0][p] for p in (*item.good, *item.bad)[0].positions]))
        for unit, item in zip(units, items, strict=True)
    }
    assert said == {(True, "b"), (True, "aa"), (False, "aa")}
    assert sorted(weight for item in items for weight in item.weights or ()) == [0.5, 0.5, 1.0]
    assert first_loss(policy, list(units), Preference(objective="kto")) == pytest.approx(0.5 * 2.0, rel=1e-5)


def test_a_mismatched_completion_answers_another_prompt():
    """Prompts 1, 1, 2 with completions 7, 8, 9: both rows of prompt 1 get 9, the row of prompt 2 gets 7."""
    rows = [Judged((0, 1), (7,), True, 1.0), Judged((0, 1), (8,), False, 1.0), Judged((0, 2), (9,), False, 1.0)]
    assert mismatched(rows) == [((0, 1), (9,)), ((0, 1), (9,)), ((0, 2), (7,))]
    assert mismatched(rows[:2]) == []


def test_the_reference_point_is_that_of_the_whole_step(policy: Policy, records: Path):
    """All items of a step carry the same log-ratios, which are those of one mismatched completion a row.

    0 each where the policy is its reference; after a change those of the forest scored as any other.
    """
    source = KTO(records=records, batch_size=5).source(policy, seed=0)
    (measured,) = {item.measured for unit in source.units(0) for item in unit.items if isinstance(item, JudgedItem)}
    assert len(measured) == 5
    assert all(total == 0 and tokens >= 1 for total, tokens in measured)
    weights = [p for name, p in policy.model.named_parameters() if "lora_B" in name]
    pairs = [((1, 2, 3), (4, 5)), ((6,), (7,))]
    with torch.no_grad():
        for weight in weights:
            weight.add_(0.3)
    try:
        found = log_ratios(policy, pairs)
        for (prompt, tokens), (total, count) in zip(pairs, found, strict=True):
            forest = build_forest([Unit(((*prompt, *tokens),))])
            scored = scored_forest(policy, forest, policy.hidden_TD(forest))
            nodes = forest.paths[0][0][-len(tokens) :]
            gap = (scored.logprobs(nodes) - scored.reference_logprobs(nodes)).sum()
            assert total == pytest.approx(float(gap.detach()), abs=1e-5)
            assert count == len(tokens)
            assert abs(total) > 1e-3
    finally:
        with torch.no_grad():
            for weight in weights:
                weight.zero_()


def test_methods_and_objectives_that_do_not_go_together_are_refused(records: Path):
    with pytest.raises(ConfigError, match=r"method\.name: kto"):
        DPO(records=records).check({"preference": {"objective": "kto"}})
    with pytest.raises(ConfigError, match="objective: kto"):
        KTO(records=records).check({"preference": {}})
    with pytest.raises(ConfigError, match="no reference"):
        DPO(records=records, reference="precomputed").check({"preference": {"objective": "orpo"}})


def test_a_file_without_completions_says_so(policy: Policy, tmp_path: Path):
    write_records(tmp_path / "r.jsonl", ROWS[2:])
    with pytest.raises(DataError, match="no row of"):
        KTO(records=tmp_path / "r.jsonl").source(policy, seed=0)
