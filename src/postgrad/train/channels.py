"""From the `channels` section of a recipe to weighted objectives, and from a step's units to their counts.

    channels:
      preference: {weight: 0.5, beta: 0.1}

The name is a channel of `objectives.CHANNELS`, an entry point or `module:Class`; `weight` is the loop's, every other
key is a field of the channel's own class. A weight of 0 switches a channel off: its items are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.objectives import CHANNELS
from postgrad.objectives.channel import Channel, Placed
from postgrad.run.plugins import resolve
from postgrad.train.settings import build_settings, complete

ChannelSpecs = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class WeightedChannel:
    """A channel of this run: its name, its weight above 0 and its objective."""

    name: str
    weight: float
    objective: Channel[Any]

    def count(self, units: Iterable[Unit]) -> int:
        """Share of `units` in this channel's denominator."""
        return self.objective.count([item for unit in units for item in unit.items if self._reads(item)])

    def placed(self, units: Sequence[Unit]) -> list[Placed[Any]]:
        """This channel's items in a forest of `units`."""
        return [Placed(k, item) for k, unit in enumerate(units) for item in unit.items if self._reads(item)]

    def has_items(self, unit: Unit) -> bool:
        """Whether `unit` feeds this channel."""
        return any(self._reads(item) for item in unit.items)

    def _reads(self, item: object) -> bool:
        return isinstance(item, self.objective.item)


def build_channels(specs: ChannelSpecs) -> tuple[tuple[WeightedChannel, ...], tuple[type, ...]]:
    """Channels with a weight above 0, and the item types of all channels named, switched off or not.

    Raises:
        ConfigError: an unknown channel or field, a value out of range, or no weight above 0.
    """
    channels = [_build(name, spec) for name, spec in specs.items()]
    active = tuple(channel for channel in channels if channel.weight > 0)
    if not active:
        known = ", ".join(CHANNELS)
        raise ConfigError("no channel has a weight above 0", got=dict(specs), do=f"give one of {known} a weight")
    return active, tuple(channel.objective.item for channel in channels)


def complete_specs(specs: ChannelSpecs) -> dict[str, dict[str, Any]]:
    """`specs` with the default of every field written out.

    Raises:
        ConfigError: as `build_channels`.
    """
    build_channels(specs)
    channels = [_build(name, spec) for name, spec in specs.items()]
    return {c.name: {"weight": c.weight, **complete(c.objective)} for c in channels}


def refuse_unclaimed(units: Iterable[Unit], claimed: tuple[type, ...]) -> None:
    """Stop when the source annotates tokens for a channel that the recipe does not name.

    Raises:
        ConfigError: items that no channel reads.
    """
    for unit in units:
        for item in unit.items:
            if not isinstance(item, claimed):
                name = next((n for n in CHANNELS if isinstance(item, resolve("channel", n, CHANNELS).item)), "?")
                raise ConfigError(
                    f"items for channel '{name}' ({type(item).__name__}) but no weight",
                    do=f"set channels.{name}.weight; 0 switches it off",
                )


def _build(name: str, spec: Mapping[str, Any]) -> WeightedChannel:
    kind = resolve("channel", name, CHANNELS)
    fields = dict(spec)
    weight = fields.pop("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
        raise ConfigError(f"channels.{name}.weight", got=weight, expected="a number of 0 or more")
    objective = build_settings(kind, fields, path=f"channels.{name}", also=("weight",))
    return WeightedChannel(name, float(weight), objective)
