"""The `sync` section of a recipe: which way of keeping replicas together, and its own fields. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from postgrad.core.errors import ConfigError
from postgrad.run.plugins import resolve
from postgrad.train.settings import build_settings, complete
from postgrad.train.sync import SYNCS

if TYPE_CHECKING:
    from torch import nn

    from postgrad.train.contracts import Sync


class SyncSettings(Protocol):
    """What every entry of `SYNCS` is: fields for the recipe, and these."""

    @property
    def replica(self) -> int:
        """Number of this replica, from 0."""
        ...

    @property
    def replicas(self) -> int:
        """How many there are."""
        ...

    def build(self, parameters: Mapping[str, nn.Parameter], *, steps: int, rank: int) -> Sync:
        """The sync over the weights of a run of `steps`, for worker `rank` of this replica."""
        ...


def sync_settings(section: Mapping[str, Any]) -> SyncSettings:
    """The settings that a `sync` section gives.

    Raises:
        ConfigError: an unknown name, an unknown field, or values that do not fit each other.
    """
    fields = dict(section)
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise ConfigError("the sync has no name", got=dict(section), expected=f"sync.name, one of {', '.join(SYNCS)}")
    settings: SyncSettings = build_settings(resolve("sync", name, SYNCS), fields, path="sync", also=("name",))
    return settings


def complete_sync(section: Mapping[str, Any]) -> dict[str, Any]:
    """`section` with the default of every field written out.

    Raises:
        ConfigError: as `sync_settings`.
    """
    return {"name": section.get("name"), **complete(sync_settings(section))}


def seed_of_replica(seed: int, section: Mapping[str, Any]) -> int:
    """The seed that this replica's part of a run is drawn by: replicas must not train on the same batches."""
    return (seed + sync_settings(section).replica * 0x9E3779B1) % 2**32
