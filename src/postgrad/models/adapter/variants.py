"""The variants of adapters: a frozen class each, its fields being its options, and one table of them.

A variant plays one role, and an adapter has at most one of each role:

    method  what is trained: lora (if none is named), vera, adalora, full
    start   what A and B begin as: pissa, loftq
    scale   rslora           alpha / sqrt(rank) for alpha / rank
    form    dora             magnitude and direction apart
    frozen  lora-fa          A stays as it was drawn
    depth   layerdrop        whole layers are left out at random while training
    base    qlora            the frozen weights are held in 4 bits

Everything but `depth` and `base` changes something of LoRA, so it needs that method. No torch is imported: what a
variant does lies in `attach` and in the modules named there.

To add one: a class here or anywhere (`module:Class` as its name), `role` and, where it only sets fields of PEFT's
LoraConfig, `lora_fields`.
"""

from __future__ import annotations

import dataclasses
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from postgrad.core.errors import ConfigError
from postgrad.core.strict import built

Role = Literal["method", "start", "scale", "form", "frozen", "depth", "base"]
Share = Annotated[float, Field(ge=0, lt=1)]


@dataclass(frozen=True)
class Variant:
    """Base of all. `unused` are fields of the configuration that mean nothing here, `excludes` variants and why."""

    name: ClassVar[str]
    role: ClassVar[Role]
    unused: ClassVar[tuple[str, ...]] = ()
    excludes: ClassVar[tuple[tuple[str, str], ...]] = ()

    def lora_fields(self) -> dict[str, Any]:
        """What it sets in PEFT's `LoraConfig`."""
        return {}


@dataclass(frozen=True)
class Lora(Variant):
    """W + (alpha / rank) B A (arXiv:2106.09685)."""

    name = "lora"
    role = "method"


@dataclass(frozen=True)
class Vera(Variant):
    """W + diag(b) B diag(d) A with random, frozen, shared A and B; only the vectors are trained (arXiv:2310.11454)."""

    name = "vera"
    role = "method"
    unused = ("alpha",)

    d_initial: Annotated[float, Field(gt=0)] = 0.1


@dataclass(frozen=True)
class AdaLora(Variant):
    """W + (alpha / r) P diag(E) Q; the least important singular values are set to 0 on the way (arXiv:2303.10512).

    The rank falls from `initial_rank` (0: one and a half times `rank`) to the mean of `rank` in between the first
    `warmup` and the last `final` part of the steps, every `interval` steps. `orthogonal` weighs the pull of P and Q to
    orthogonality, |P'P - I| + |QQ' - I| averaged over the matrices.
    """

    name = "adalora"
    role = "method"

    initial_rank: Annotated[int, Field(ge=0)] = 0
    warmup: Share = 0.1
    final: Share = 0.3
    interval: Annotated[int, Field(ge=1)] = 1
    beta1: Annotated[float, Field(gt=0, lt=1)] = 0.85
    beta2: Annotated[float, Field(gt=0, lt=1)] = 0.85
    orthogonal: Annotated[float, Field(ge=0)] = 0.5


@dataclass(frozen=True)
class Full(Variant):
    """All weights are trained and there is no adapter."""

    name = "full"
    role = "method"
    unused = ("rank", "alpha", "dropout", "targets", "last_layers", "seed")
    excludes = (("qlora", "weights held in 4 bits cannot be trained"),)


@dataclass(frozen=True)
class RsLora(Variant):
    """Scale alpha / sqrt(rank), so that high ranks learn (arXiv:2312.03732)."""

    name = "rslora"
    role = "scale"

    def lora_fields(self) -> dict[str, Any]:
        """Its one flag."""
        return {"use_rslora": True}


@dataclass(frozen=True)
class Dora(Variant):
    """m (W + s B A) / |W + s B A| by row, the magnitude m trained apart (arXiv:2402.09353)."""

    name = "dora"
    role = "form"

    def lora_fields(self) -> dict[str, Any]:
        """Its one flag."""
        return {"use_dora": True}


@dataclass(frozen=True)
class LoraFA(Variant):
    """Only B is trained, so no layer keeps its input for A's gradient (arXiv:2308.03303)."""

    name = "lora-fa"
    role = "frozen"


@dataclass(frozen=True)
class Pissa(Variant):
    """A and B begin as the largest singular triplets of W, which leave W (arXiv:2404.02948).

    `iterations` of a randomised decomposition; 0 computes the exact one.
    """

    name = "pissa"
    role = "start"
    excludes = (("qlora", "its residual would have to be quantised anew"),)

    iterations: Annotated[int, Field(ge=0)] = 0

    def lora_fields(self) -> dict[str, Any]:
        """PEFT's initialisation by name."""
        return {"init_lora_weights": f"pissa_niter_{self.iterations}" if self.iterations else "pissa"}


@dataclass(frozen=True)
class LoftQ(Variant):
    """W becomes Q in `bits` bits, and A and B begin as the best low rank of what that lost (arXiv:2310.08659).

    `iterations` alternate between quantising and decomposing; a `block` of weights shares a scale.
    """

    name = "loftq"
    role = "start"
    excludes = (("qlora", "it quantises the weights itself"),)

    bits: Annotated[int, Field(ge=2, le=8)] = 4
    iterations: Annotated[int, Field(ge=1)] = 5
    block: Annotated[int, Field(ge=1)] = 64


@dataclass(frozen=True)
class LayerDrop(Variant):
    """While training, each layer is passed over with probability `rate`, drawn anew in every pass (arXiv:1909.11556).

    One layer at least that is trained is always computed. Evaluation and sampling use all layers.
    """

    name = "layerdrop"
    role = "depth"

    rate: Annotated[float, Field(gt=0, lt=1)] = 0.2


@dataclass(frozen=True)
class QLora(Variant):
    """The frozen weights are held in 4-bit normal floats by bitsandbytes (arXiv:2305.14314)."""

    name = "qlora"
    role = "base"

    double_quantised: bool = True


VARIANTS: dict[str, type[Variant]] = {
    kind.name: kind for kind in (Lora, RsLora, Dora, Vera, LoraFA, Pissa, LoftQ, AdaLora, LayerDrop, QLora, Full)
}
FREE_ROLES = {"method", "depth", "base"}
"""Roles that go with any method."""


def build_variants(names: Sequence[str], options: Mapping[str, Any]) -> tuple[Variant, ...]:
    """The variants of `names`, each with its share of `options`; lora is added where no method is named.

    Raises:
        ConfigError: an unknown name or option, a bad value, or names that exclude each other.
    """
    kinds = [_kind(name) for name in names]
    if not any(kind.role == "method" for kind in kinds):
        kinds.insert(0, Lora)
    _refuse_conflicts(kinds)
    known = {field.name: kind for kind in kinds for field in dataclasses.fields(kind)}
    for option in options:
        if option not in known:
            said = ", ".join(known) or "no options"
            raise ConfigError(f"adapter.options.{option}: no such option of '{'+'.join(names)}'", expected=said)
    return tuple(_built(kind, {k: v for k, v in options.items() if known[k] is kind}) for kind in kinds)


def _kind(name: str) -> type[Variant]:
    if name in VARIANTS:
        return VARIANTS[name]
    if ":" not in name:
        expected = f"{', '.join(VARIANTS)}, or module:Class"
        raise ConfigError("adapter.variant: unknown", got=name, expected=expected)
    try:
        kind = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"adapter.variant: {error}", got=name) from None
    if not (isinstance(kind, type) and issubclass(kind, Variant)):
        raise ConfigError("adapter.variant", got=name, expected="a subclass of Variant")
    return kind


def _refuse_conflicts(kinds: Sequence[type[Variant]]) -> None:
    by_role: dict[str, type[Variant]] = {}
    for place, kind in enumerate(kinds):
        if kind in kinds[:place]:
            raise ConfigError(f"adapter.variant names '{kind.name}' twice")
        other = by_role.setdefault(kind.role, kind)
        if other is not kind:
            raise _conflict(other, kind, f"both set the {kind.role}")
    method = by_role["method"]
    for kind in kinds:
        if method is not Lora and kind.role not in FREE_ROLES:
            raise _conflict(method, kind, f"{kind.name} is a form of lora")
        for name, why in kind.excludes:
            if any(other.name == name for other in kinds):
                raise _conflict(kind, VARIANTS[name], why)


def _conflict(one: type[Variant], other: type[Variant], why: str) -> ConfigError:
    told = f"adapter.variant: '{one.name}' and '{other.name}' exclude each other: {why}"
    return ConfigError(told, do="name one of them")


def _built(kind: type[Variant], options: Mapping[str, Any]) -> Variant:
    try:
        variant: Variant = built(kind, options)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        expected = problem["msg"].removeprefix("Input should be ")
        path = ".".join(str(part) for part in ("adapter", "options", *problem["loc"]))
        raise ConfigError(path, got=problem["input"], expected=expected) from None
    return variant
