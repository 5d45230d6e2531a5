from __future__ import annotations

import math

import pytest

from postgrad.core.errors import ConfigError
from postgrad.objectives import CHANNELS
from postgrad.train.channels import build_channels, refuse_unclaimed
from postgrad.train.config import TrainConfig
from unit.train.tiny_training import KINDS, mixed_units


def test_every_channel_of_the_table_builds_with_defaults():
    active, claimed = build_channels({name: {} for name in CHANNELS})
    assert [channel.name for channel in active] == list(CHANNELS)
    assert all(channel.weight == 1.0 for channel in active)
    assert len(set(claimed)) == len(CHANNELS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"preferences": {}}, "unknown channel.*'preferences'.*did you mean 'preference'"),
        ({"preference": {"betta": 0.1}}, "unknown key 'channels.preference.betta'; did you mean 'beta'"),
        ({"preference": {"wieght": 0.1}}, "channels.preference.wieght'; did you mean 'weight'"),
        ({"preference": {"beta": -1}}, "'channels.preference.beta'; got -1; expected greater than 0"),
        ({"policy_gradient": {"objective": "grop"}}, "channels.policy_gradient.objective'.*'dr_grpo'.*'grpo'"),
        ({"preference": {"weight": -0.5}}, "channels.preference.weight; got -0.5"),
        ({"preference": {"weight": math.nan}}, "channels.preference.weight; got nan"),
        ({"preference": {"weight": "x"}}, "channels.preference.weight"),
        ({"preference": {"weight": 0}}, "no channel has a weight above 0"),
    ],
)
def test_a_mistake_in_a_recipe_is_named(spec: dict[str, dict[str, object]], message: str):
    with pytest.raises(ConfigError, match=message):
        build_channels(spec)


def test_a_mistake_is_found_when_the_configuration_is_read():
    with pytest.raises(ConfigError, match="betta"):
        TrainConfig.model_validate({"channels": {"preference": {"betta": 0.1}}})


def test_a_channel_of_someone_else_is_named_by_module_and_class():
    name = "postgrad.objectives.preference:Preference"
    (channel,), _ = build_channels({name: {"weight": 2, "beta": 0.3}})
    assert (channel.name, channel.weight, channel.objective.beta) == (name, 2.0, 0.3)


def test_items_without_a_weight_are_refused_and_a_weight_of_0_passes_them_over():
    units = mixed_units(0, each=1, kinds=("cross_entropy", "preference"))
    _, claimed = build_channels({"cross_entropy": {}})
    with pytest.raises(ConfigError, match=r"items for channel 'preference' .* but no weight; set channels\.preference"):
        refuse_unclaimed(units, claimed)
    active, claimed = build_channels({"cross_entropy": {}, "preference": {"weight": 0}})
    refuse_unclaimed(units, claimed)
    assert [channel.name for channel in active] == ["cross_entropy"]


def test_a_channel_reads_its_own_items():
    units = mixed_units(0, each=3)
    active, _ = build_channels({name: {} for name in KINDS})
    for channel in active:
        placed = channel.placed(units)
        assert len(placed) == 3
        assert all(isinstance(p.item, channel.objective.item) for p in placed)
        assert channel.count(units) == channel.objective.count([p.item for p in placed])
