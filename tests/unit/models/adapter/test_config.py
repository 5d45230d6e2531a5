"""Which variants go together, which options they have, and that nothing given is passed over."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from postgrad.core.errors import ConfigError, MissingDependency
from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.variants import VARIANTS, LoftQ, Lora, RsLora, Variant
from postgrad.models.policy import load_policy
from postgrad.models.tiny import byte_tokenizer, tiny_model


@pytest.mark.parametrize("written", ["rslora+dora", ("rslora", "dora"), ["rslora", "dora"], ["rslora + dora"]], ids=str)
def test_several_variants_may_be_written_in_several_ways(written: object) -> None:
    config = AdapterConfig(variant=written)
    assert [variant.name for variant in config.variants()] == ["lora", "rslora", "dora"]
    assert AdapterConfig.model_validate_json(config.model_dump_json()) == config


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("vera+dora", "dora is a form of lora"),
        ("vera+lora", "both set the method"),
        ("pissa+loftq", "both set the start"),
        ("adalora+rslora", "rslora is a form of lora"),
        ("adalora+loftq", "loftq is a form of lora"),
        ("full+lora-fa", "lora-fa is a form of lora"),
        ("full+qlora", "cannot be trained"),
        ("loftq+qlora", "quantises the weights itself"),
        ("pissa+qlora", "quantised anew"),
        ("dora+dora", "twice"),
        ("dra", "unknown"),
        ("no.such.module:Thing", "no"),
        ("json:dumps", "subclass"),
    ],
)
def test_variants_that_exclude_each_other_are_refused(names: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        AdapterConfig(variant=names)


def test_every_variant_stands_alone() -> None:
    for name in VARIANTS:
        assert name in {variant.name for variant in AdapterConfig(variant=name).variants()}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"variant": "lora", "options": {"bits": 4}}, "no such option"),
        ({"variant": "loftq", "options": {"bit": 4}}, "expected bits, iterations, block"),
        ({"variant": "loftq", "options": {"bits": 1}}, "greater than or equal to 2"),
        ({"variant": "loftq", "options": {"bits": "four"}}, "integer"),
        ({"variant": "layerdrop", "options": {"rate": 1.0}}, "less than 1"),
        ({"variant": "vera", "alpha": 8.0}, "adapter.alpha has no meaning for variant 'vera'"),
        ({"variant": "full", "rank": 8}, "adapter.rank has no meaning for variant 'full'"),
        ({"variant": "full", "last_layers": 2}, "adapter.last_layers has no meaning"),
    ],
    ids=str,
)
def test_what_would_be_passed_over_is_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        AdapterConfig(**given)


@pytest.mark.parametrize(
    "given", [{"rank": 0}, {"alpha": 0.0}, {"alpha": math.inf}, {"dropout": 1.0}, {"seed": -1}, {"ranks": 4}], ids=str
)
def test_values_out_of_range_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        AdapterConfig(**given)


def test_options_reach_their_variant() -> None:
    config = AdapterConfig(variant="loftq+rslora", options={"bits": 3, "block": 32})
    assert config.variants() == (Lora(), LoftQ(bits=3, block=32), RsLora())


@dataclass(frozen=True)
class Halved(Variant):
    """A variant of someone else's: B is drawn anew, so half of LoRA's promise is gone."""

    name = "halved"
    role = "start"

    def lora_fields(self) -> dict[str, object]:
        return {"init_lora_weights": False}


def test_a_variant_may_come_from_elsewhere() -> None:
    config = AdapterConfig(variant=f"{__name__}:Halved", rank=2)
    assert config.variant_of(Halved) == Halved()
    model = load_policy("tiny-random", adapter=config).model
    assert all(bool(weight.any()) for name, weight in model.named_parameters() if "lora_B" in name)


@pytest.mark.parametrize("targets", ["lm_head", "embed_tokens", ("q_proj", "lm_head")])
def test_a_weight_that_two_modules_share_gets_no_adapter(targets: str | tuple[str, ...]) -> None:
    """The tiny model's head is its embeddings: merging into the one would change the other."""
    with pytest.raises(ConfigError, match="shares its weight"):
        load_policy("tiny-random", adapter=AdapterConfig(targets=targets))


def test_qlora_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tiny_model().save_pretrained(str(tmp_path))
    byte_tokenizer().save_pretrained(str(tmp_path))
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "bitsandbytes" else found(name))
    with pytest.raises(MissingDependency, match=r"pip install 'postgrad\[qlora\]'"):
        load_policy(str(tmp_path), adapter=AdapterConfig(variant="qlora"))


def test_a_list_of_no_variants_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"adapter.variant names none; got '\[\]'"):
        AdapterConfig(variant=())
