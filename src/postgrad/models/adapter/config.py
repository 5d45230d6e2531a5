"""`AdapterConfig`: the adapter section of a recipe, and what a Python caller hands to `load_policy`.

It lives here and not with the verbs, so that there is one list of fields. No torch is imported.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import Field, field_validator, model_validator

from postgrad.core.errors import ConfigError
from postgrad.core.strict import Strict
from postgrad.models.adapter.variants import Variant, build_variants

V = TypeVar("V", bound=Variant)


class AdapterConfig(Strict):
    """What is trained: for LoRA, W + (alpha / rank) B A on each target, B zero at the start."""

    variant: tuple[str, ...] = ("lora",)
    """lora, rslora, dora, vera, lora-fa, pissa, loftq, adalora, layerdrop, qlora, full; or several: [rslora, dora]."""
    rank: Annotated[int, Field(ge=1)] = 16
    """Rank of the update; of adalora the mean rank that is left at the end."""
    alpha: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 32.0
    """Numerator of the update's scale."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout before A."""
    targets: str | tuple[str, ...] = "all-linear"
    """"all-linear" (every linear layer but the head), or names of modules."""
    last_layers: int | None = None
    """Adapt only the last so many layers: the others need no backward pass. Null adapts all."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Draws A."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the variants named, by their own names (docs/models.md lists them)."""

    @field_validator("variant", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """One name, "rslora+dora", or a list."""
        names = [value] if isinstance(value, str) else value
        if isinstance(names, (list, tuple)) and not names:
            raise ConfigError("adapter.variant names none", got="[]", do="leave it out, or name one, such as lora")
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            return value
        return tuple(part.strip() for name in names for part in name.split("+"))

    @model_validator(mode="after")
    def _fits(self) -> AdapterConfig:
        """Refuse variants that exclude each other, options that are none, and fields that would be passed over."""
        fields = type(self).model_fields
        for variant in self.variants():
            for name in variant.unused:
                if getattr(self, name) != fields[name].default:
                    raise ConfigError(
                        f"adapter.{name} has no meaning for variant '{variant.name}'",
                        got=getattr(self, name),
                        do="leave it out",
                    )
        return self

    def variants(self) -> tuple[Variant, ...]:
        """The variants with their options, one of them the method.

        Raises:
            ConfigError: an unknown variant or option, a bad value, or two variants that exclude each other.
        """
        return build_variants(self.variant, self.options)

    def variant_of(self, kind: type[V]) -> V | None:
        """The variant of this kind, None where it is not named."""
        return next((variant for variant in self.variants() if isinstance(variant, kind)), None)
