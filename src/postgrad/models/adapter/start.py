"""What an adapter was when training began: the measure of "nothing was learned", and the reference of a KL.

With a new LoRA adapter the model at the start is the model with its adapter off. With PiSSA, LoftQ, DoRA or an adapter
that is trained further it is not: then the values are kept, and put back for the time of a reference pass. Either way a
divergence from the reference is exactly 0 at step 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from peft import PeftModel
from torch import Tensor

from postgrad.core.errors import TrainingFault
from postgrad.models.adapter.config import AdapterConfig
from postgrad.models.adapter.variants import AdaLora, Dora, LoftQ, Pissa, Variant

V = TypeVar("V", bound=Variant)


@dataclass(frozen=True)
class Start:
    """An adapter at its start.

    Attributes:
        config: what it was made from; None for one that others have made.
        fresh: it was made here, not loaded.
        digest: of its trainable values.
        values: those values, where the reference needs them, else empty.
    """

    config: AdapterConfig | None
    fresh: bool
    digest: str
    values: dict[str, Tensor]

    @classmethod
    def of(cls, model: PeftModel, config: AdapterConfig | None, *, fresh: bool) -> Start:
        """Take the start of `model` as it is now."""
        neutral = fresh and not (config and any(config.variant_of(kind) for kind in (Dora, LoftQ, Pissa)))
        values = {} if neutral else {name: value.clone() for name, value in _trainable(model).items()}
        return cls(config, fresh, _digest(model), values)

    @contextmanager
    def reference(self, model: PeftModel) -> Iterator[None]:
        """Inside, `model` computes what it did at the start.

        The values are exchanged, not copied over, so a graph that was recorded before can still run backward after.
        """
        if not self.values:
            trained = set(_trainable(model))
            with model.disable_adapter():
                yield
            for name, parameter in model.named_parameters():  # PEFT makes every adapter weight trainable again
                parameter.requires_grad_(name in trained)
            return
        parameters = {name: p for name, p in model.named_parameters() if name in self.values}
        live = {name: p.data for name, p in parameters.items()}
        for name, parameter in parameters.items():
            parameter.data = self.values[name].to(parameter.device)
        try:
            yield
        finally:
            for name, parameter in parameters.items():
                parameter.data = live[name]

    def variant(self, kind: type[V]) -> V | None:
        """The adapter's variant of this kind."""
        return self.config.variant_of(kind) if self.config is not None else None

    def require_learned(self, model: PeftModel, *, scheduled: bool = True) -> None:
        """Stop an adapter that is empty, broken or still as it was made from being saved as a result.

        `scheduled` says whether what the loop has to call for it was handed out.

        Raises:
            TrainingFault: it is, or AdaLoRA was trained as if it were LoRA.
        """
        values = _trainable(model)
        if not values:
            raise TrainingFault("the adapter is empty: nothing would be saved")
        for name, value in values.items():
            if not bool(torch.isfinite(value).all()):
                raise TrainingFault(f"the adapter's weight {name} is not finite: nothing is saved")
        unchanged = self.fresh and _digest(model) == self.digest
        if unchanged or _does_nothing(model):
            raise TrainingFault("the adapter equals its initial values: nothing was learned, so nothing is saved")
        if self.fresh and not scheduled and self.variant(AdaLora) is not None:
            raise TrainingFault("AdaLoRA's ranks were never allocated: give the loop policy.companions(steps=...)")


def _trainable(model: PeftModel) -> dict[str, Tensor]:
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def _digest(model: PeftModel) -> str:
    """SHA-256 over the names and bytes of all trainable values."""
    found = hashlib.sha256()
    for name, value in sorted(_trainable(model).items()):
        found.update(name.encode())
        found.update(value.contiguous().flatten().view(torch.uint8).cpu().numpy().tobytes())
    return found.hexdigest()


def _does_nothing(model: PeftModel) -> bool:
    """Whether everything that carries the update to the model's outputs is zero.

    That is B of LoRA, E of AdaLoRA, b of VeRA. DoRA's magnitudes act without B; of others it cannot be told.
    """
    values = dict(model.named_parameters())
    if any(".lora_magnitude_vector." in name for name in values):
        return False
    for part in (".lora_E.", ".vera_lambda_b.", ".lora_B."):
        carriers = [value for name, value in values.items() if part in name]
        if carriers:
            return not any(bool(value.any()) for value in carriers)
    return False
