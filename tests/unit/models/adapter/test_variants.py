"""Every variant: what it starts as, that it learns, that it comes back in another process, that it merges.

With Q the quantised weights, LoftQ starts at Q + s B A and not at W: that difference is what its name promises.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from postgrad.core.errors import DataError, TrainingFault
from postgrad.models.adapter import AdapterConfig
from postgrad.models.adapter.folder import NOTE, QUANTISED
from postgrad.models.policy import Policy, load_policy
from unit.models.adapter import trained
from unit.models.adapter.trained import VARIANTS, fresh, logits, train

every_variant = pytest.mark.parametrize("name", VARIANTS)
ROUNDING = 1e-5
"""Of logits that reach about 8; the residual of PiSSA and a merge round once more."""


@dataclass
class Trained:
    """One trained adapter and what it computed at each stage."""

    folder: Path
    start: Tensor
    reference: Tensor
    trained: Tensor
    merged: Tensor
    reloaded: Tensor


@pytest.fixture(scope="module")
def all_trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Every variant trained and saved once; all are reloaded by one other process."""
    found = {}
    for name in VARIANTS:
        policy, folder = fresh(name), tmp_path_factory.mktemp("adapter") / "saved"
        start = logits(policy)
        train(policy)
        policy.save(folder)
        policy.save_merged(folder.parent / "merged")
        with policy.reference():
            reference = logits(policy)
        merged = logits(load_policy(folder.parent / "merged"))
        found[name] = Trained(folder, start, reference, logits(policy), merged, torch.empty(0))
    folders = [str(one.folder) for one in found.values()]
    told = subprocess.run([sys.executable, trained.__file__, *folders], capture_output=True, check=True).stdout
    for one, values in zip(found.values(), json.loads(told).values(), strict=True):
        one.reloaded = torch.tensor(values)
    return found


@pytest.fixture(scope="module")
def base() -> Tensor:
    return logits(load_policy("tiny-random"))


@every_variant
def test_it_starts_as_the_base(name: str, all_trained: dict[str, Trained], base: Tensor) -> None:
    difference = (all_trained[name].start - base).abs().max()
    if "loftq" in name:
        assert difference > 0.1, "the weights are quantised"
    elif "pissa" in name:
        assert difference <= ROUNDING
    else:
        assert difference == 0


@every_variant
def test_the_reference_stays_what_it_started_as(name: str, all_trained: dict[str, Trained]) -> None:
    """Bit for bit, so that a divergence from the reference is exactly 0 at step 0."""
    assert torch.equal(all_trained[name].reference, all_trained[name].start)


@every_variant
def test_training_changes_it(name: str, all_trained: dict[str, Trained]) -> None:
    assert (all_trained[name].trained - all_trained[name].start).abs().max() > 0.01


@every_variant
def test_another_process_gets_the_same_logits(name: str, all_trained: dict[str, Trained]) -> None:
    one = all_trained[name]
    if "pissa" in name:  # saved as an adapter to the untouched weights
        torch.testing.assert_close(one.reloaded, one.trained, atol=ROUNDING, rtol=0)
    else:
        assert torch.equal(one.reloaded, one.trained)


@every_variant
def test_merged_it_gives_the_same_logits(name: str, all_trained: dict[str, Trained]) -> None:
    one = all_trained[name]
    torch.testing.assert_close(one.merged, one.trained, atol=ROUNDING, rtol=0)


@every_variant
def test_untrained_it_is_not_saved(name: str, tmp_path: Path) -> None:
    policy = fresh(name)
    with policy.reference():
        logits(policy)
    for save in (policy.save, policy.save_merged):
        with pytest.raises(TrainingFault, match="nothing was learned"):
            save(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


@every_variant
def test_a_reference_pass_leaves_what_is_trained_alone(name: str) -> None:
    """PEFT's own switch makes every weight of the adapter trainable again, LoRA-FA's A too."""
    policy = fresh(name)
    before = trainable(policy)
    with policy.reference():
        assert not policy.hidden_TD(trained.FOREST).requires_grad
    assert trainable(policy) == before
    assert any("lora_A" in weight for weight in before) == ("lora-fa" not in name and "vera" not in name)


def trainable(policy: Policy) -> set[str]:
    return {weight for weight, parameter in policy.model.named_parameters() if parameter.requires_grad}


@every_variant
def test_a_loaded_adapter_is_trained_further_from_where_it_was(
    name: str, all_trained: dict[str, Trained], tmp_path: Path
) -> None:
    """Its reference is what it was when loaded; it trains the same weights as before and keeps its configuration."""
    one = all_trained[name]
    policy = load_policy(one.folder)
    loaded = logits(policy)
    with policy.reference():
        assert torch.equal(logits(policy), loaded)
    assert any("lora_A" in weight for weight in trainable(policy)) == ("lora-fa" not in name and "vera" not in name)
    train(policy)
    with policy.reference():
        assert torch.equal(logits(policy), loaded)
    assert not torch.equal(logits(policy), loaded)
    policy.save(tmp_path / "again")
    assert torch.equal(logits(load_policy(tmp_path / "again")), logits(policy))
    note = AdapterConfig.model_validate_json((tmp_path / "again" / NOTE).read_bytes())
    assert note == AdapterConfig(**{"variant": name, "rank": 4} | VARIANTS[name])


def test_any_program_reads_a_pissa_adapter_as_lora(all_trained: dict[str, Trained]) -> None:
    from peft import PeftModel

    from postgrad.models.tiny import tiny_model

    loaded = PeftModel.from_pretrained(tiny_model().eval(), str(all_trained["pissa randomised"].folder))
    ids = torch.tensor([[40, 41, 80, 90, 95]])
    with torch.no_grad():
        found = loaded(input_ids=ids).logits[0]
    torch.testing.assert_close(found, all_trained["pissa randomised"].trained[-5:], atol=ROUNDING, rtol=0)


def test_no_other_program_puts_a_loftq_adapter_on_other_weights(all_trained: dict[str, Trained]) -> None:
    """Its configuration names PEFT's own LoftQ, which cannot be computed here, so loading stops."""
    from peft import PeftModel

    from postgrad.models.tiny import tiny_model

    with pytest.raises(ValueError, match="LoftQ"):
        PeftModel.from_pretrained(tiny_model(), str(all_trained["loftq"].folder))


def test_the_quantised_weights_belong_to_a_loftq_folder(all_trained: dict[str, Trained], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(all_trained["loftq"].folder, tmp_path / "copy"))
    (folder / QUANTISED).unlink()
    with pytest.raises(DataError, match="quantised weights do not load"):
        load_policy(folder)


def test_an_adapter_that_lacks_a_weight_does_not_load(all_trained: dict[str, Trained], tmp_path: Path) -> None:
    """PEFT would warn and leave the weight as it was made."""
    from safetensors.torch import load_file, save_file

    folder = Path(shutil.copytree(all_trained["dora"].folder, tmp_path / "copy"))
    stored = folder / "adapter_model.safetensors"
    weights = load_file(stored)
    left_out = next(name for name in weights if "magnitude" in name)
    save_file(
        {name: value for name, value in weights.items() if name != left_out}, folder / "adapter_model.safetensors"
    )
    with pytest.raises(DataError, match="the file has no weight"):
        load_policy(folder)


def test_a_weight_that_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    policy = fresh("lora")
    train(policy)
    with torch.no_grad():
        next(p for p in policy.model.parameters() if p.requires_grad).view(-1)[0] = float("nan")
    with pytest.raises(TrainingFault, match="not finite"):
        policy.save(tmp_path / "saved")


def test_a_loaded_adapter_can_be_merged_as_it_is(all_trained: dict[str, Trained], tmp_path: Path) -> None:
    load_policy(all_trained["lora"].folder).save_merged(tmp_path / "merged")
    torch.testing.assert_close(logits(load_policy(tmp_path / "merged")), all_trained["lora"].trained, atol=1e-5, rtol=0)


def test_a_loaded_adapter_of_zeros_is_no_result(all_trained: dict[str, Trained], tmp_path: Path) -> None:
    policy = load_policy(all_trained["lora"].folder)
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.zero_()
    with pytest.raises(TrainingFault, match="nothing was learned"):
        policy.save(tmp_path / "saved")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_loftq_reloads_exactly_in_either_precision(dtype: str, tmp_path: Path) -> None:
    config = AdapterConfig(variant="loftq", rank=4)
    policy = load_policy("tiny-random", adapter=config, dtype=dtype)  # type: ignore[arg-type]
    train(policy)
    policy.save(tmp_path / "saved")
    assert torch.equal(logits(load_policy(tmp_path / "saved", dtype=dtype)), logits(policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["pissa+rslora", "loftq", "dora", "vera", "adalora"])
def test_weights_that_lie_crosswise(name: str, tmp_path: Path) -> None:
    """GPT-2 holds its weights as (inputs, outputs)."""
    from postgrad.models.tiny import byte_tokenizer
    from unit.models.families import family

    family("gpt2").save_pretrained(tmp_path / "base")
    byte_tokenizer().save_pretrained(tmp_path / "base")
    policy = fresh_on(tmp_path / "base", name)
    with policy.reference():
        start = logits(policy)
    train(policy)
    assert not torch.equal(logits(policy), start)
    policy.save(tmp_path / "saved")
    policy.save_merged(tmp_path / "merged")
    for folder in ("saved", "merged"):
        torch.testing.assert_close(logits(load_policy(tmp_path / folder)), logits(policy), atol=ROUNDING, rtol=0)


def fresh_on(model: Path, name: str) -> Policy:
    return load_policy(model, adapter=AdapterConfig(variant=name, rank=4))
