"""The policy's weights of the moment, on disk in the form that servers load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from peft import PeftModel

from postgrad.core.errors import ConfigError
from postgrad.models.adapter.folder import write_adapter

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


def write_weights(policy: Policy, kind: str, folder: Path) -> None:
    """Write the adapter, or the whole model, into `folder`, which exists; an adapter as new as it may be.

    Raises:
        ConfigError: the policy has no adapter to give, or has one where the whole model is to be given.
    """
    adapted = isinstance(policy.model, PeftModel)
    if adapted != (kind == "adapter"):
        raise ConfigError(
            "the sampling server is to get other weights than those that are trained",
            got=f"engine.weights: {kind} with {'an adapter' if adapted else 'no adapter'}",
            do="use weights: adapter with an adapter, weights: model with full fine-tuning",
        )
    if isinstance(policy.model, PeftModel):
        assert policy.start is not None
        write_adapter(policy.model, folder, start=policy.start)
    else:
        policy.network.save_pretrained(folder)


def versions(policy: Policy) -> tuple[int, ...]:
    """Changes whenever a trainable weight is written to, or replaced."""
    weights = (p for p in policy.model.parameters() if p.requires_grad)
    return tuple(part for p in weights for part in (p.data_ptr(), p._version))
