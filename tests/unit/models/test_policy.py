"""A policy saved is the policy loaded; the reference is the policy as it was; a no-op is not saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.utils.logging import enable_progress_bar

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError, DataError, TrainingFault
from postgrad.core.forest import build_forest
from postgrad.core.message import Message
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy, make_policy
from postgrad.models.tiny import byte_tokenizer, tiny_model
from unit.models.families import family

FOREST = build_forest([Unit(((5, 6, 7, 8, 9), (5, 6, 7, 10, 11, 12))), Unit(((40, 41),))])


def logits(policy: Policy) -> Tensor:
    with torch.no_grad():
        return policy.head(policy.hidden_TD(FOREST))


def test_an_adapter_reloads_to_the_same_bits(adapted: Policy, tmp_path: Path) -> None:
    adapted.save(tmp_path / "a")
    loaded = load_policy(tmp_path / "a")
    assert torch.equal(logits(loaded), logits(adapted))
    assert not torch.equal(logits(loaded), logits(load_policy("tiny-random")))
    assert any(weight.requires_grad for weight in loaded.model.parameters())
    onto = load_policy("tiny-random", adapter=tmp_path / "a")
    assert torch.equal(logits(onto), logits(adapted))


def test_the_merged_model_gives_the_same_logits(adapted: Policy, tmp_path: Path) -> None:
    before = logits(adapted)
    adapted.save_merged(tmp_path / "m")
    loaded = load_policy(str(tmp_path / "m"))
    torch.testing.assert_close(logits(loaded), before, atol=1e-4, rtol=1e-4)
    assert torch.equal(logits(adapted), before), "the policy itself is not merged"
    assert not list((tmp_path / "m").glob("adapter*"))


def test_the_template_travels_with_the_weights(adapted: Policy, tmp_path: Path) -> None:
    adapted.tokenizer.chat_template = "[" + str(adapted.tokenizer.chat_template)
    messages = [Message.of("user", "U")]
    for save, folder in ((adapted.save, tmp_path / "a"), (adapted.save_merged, tmp_path / "m")):
        save(folder)
        loaded = load_policy(folder)
        assert loaded.tokenizer.chat_template == adapted.tokenizer.chat_template
        assert loaded.renderer.prompt(messages)[0] == adapted.tokenizer.encode("[")[0]
        assert loaded.renderer.stop_ids == adapted.renderer.stop_ids


def test_a_new_adapter_on_a_saved_one_starts_from_it(adapted: Policy, tmp_path: Path) -> None:
    adapted.save(tmp_path / "first")
    second = load_policy(tmp_path / "first", adapter=AdapterConfig(rank=2))
    torch.testing.assert_close(logits(second), logits(adapted), atol=1e-5, rtol=1e-5)
    with second.reference():
        torch.testing.assert_close(logits(second), logits(adapted), atol=1e-5, rtol=1e-5)
    for name, weight in second.model.named_parameters():
        if "lora_B" in name:
            weight.data.fill_(0.02)
    second.save(tmp_path / "second")
    assert torch.equal(logits(load_policy(tmp_path / "second")), logits(second))


def test_the_reference_is_the_model_without_its_adapter(adapted: Policy) -> None:
    own, plain = logits(adapted), logits(load_policy("tiny-random"))
    with adapted.reference():
        assert torch.equal(logits(adapted), plain)
        assert not adapted.hidden_TD(FOREST).requires_grad
    assert torch.equal(logits(adapted), own)
    assert adapted.hidden_TD(FOREST).requires_grad


def test_gradients_of_a_pass_survive_a_reference_in_between(adapted: Policy) -> None:
    """What a preference step does: policy forward, reference forward, then backward."""

    def gradients(*, with_reference: bool) -> list[Tensor]:
        adapted.model.zero_grad(set_to_none=True)
        loss = adapted.head(adapted.hidden_TD(FOREST)).logsumexp(dim=-1).sum()
        if with_reference:
            with adapted.reference():
                adapted.hidden_TD(FOREST)
        loss.backward()  # type: ignore[no-untyped-call]
        return [weight.grad.clone() for weight in adapted.model.parameters() if weight.grad is not None]

    plain, between = gradients(with_reference=False), gradients(with_reference=True)
    assert plain
    assert all(torch.equal(a, b) for a, b in zip(plain, between, strict=True))


def test_full_fine_tuning_needs_a_frozen_reference() -> None:
    policy = make_policy("tiny", tiny_model(), byte_tokenizer())
    with pytest.raises(TrainingFault, match="freeze_reference"), policy.reference():
        pass
    before = logits(policy)
    policy.freeze_reference()
    with torch.no_grad():
        next(iter(policy.model.parameters())).add_(0.1)
    assert not torch.equal(logits(policy), before)
    with policy.reference():
        assert torch.equal(logits(policy), before)


@pytest.mark.parametrize("name", ["qwen3", "gpt2", "phimoe", "mamba"])
def test_other_families_take_adapters_and_come_back(name: str, tmp_path: Path) -> None:
    base = make_policy(name, family(name), byte_tokenizer())
    base.save(tmp_path / "base")
    policy = load_policy(tmp_path / "base", adapter=AdapterConfig(rank=2))
    assert policy.layout == base.layout
    for key, weight in policy.model.named_parameters():
        if "lora_B" in key:
            weight.data.fill_(0.03)
    policy.save(tmp_path / "adapter")
    policy.save_merged(tmp_path / "merged")
    assert torch.equal(logits(load_policy(tmp_path / "adapter")), logits(policy))
    torch.testing.assert_close(logits(load_policy(tmp_path / "merged")), logits(policy), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "opt", "xglm", "seed_oss"])
def test_a_models_own_dropout_is_off_and_an_adapters_is_not(name: str, tmp_path: Path) -> None:
    """Their configurations have 0.1; with it the first DPO loss is not ln 2, and packing changes what is drawn."""
    small = {"hidden_size": 32, "d_model": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_layers": 2}
    heads = {"num_attention_heads": 4, "attention_heads": 4, "num_key_value_heads": 4, "head_dim": 8}
    config = CONFIG_MAPPING[name](vocab_size=97, pad_token_id=0, bos_token_id=1, eos_token_id=2, **small, **heads)
    assert any(value == 0.1 for key, value in config.to_dict().items() if "drop" in key)
    make_policy(name, AutoModelForCausalLM.from_config(config), byte_tokenizer()).save(tmp_path / name)
    for dropout in (0.0, 0.5):
        policy = load_policy(tmp_path / name, adapter=AdapterConfig(rank=2, dropout=dropout))
        for key, weight in policy.model.named_parameters():
            if "lora_B" in key:
                weight.data.fill_(0.03)
        evaluated = logits(policy)
        policy.model.train()
        assert torch.equal(logits(policy), evaluated) == (dropout == 0)
    assert policy.network.config.to_dict().items() >= {k: v for k, v in config.to_dict().items() if "drop" in k}.items()


def test_neither_embeddings_nor_head_are_adapted(adapted: Policy) -> None:
    trained = [name for name, weight in adapted.model.named_parameters() if weight.requires_grad]
    assert trained
    assert not [name for name in trained if "embed" in name or "lm_head" in name]


def test_an_adapter_is_drawn_from_its_seed() -> None:
    def drawn(seed: int) -> dict[str, Tensor]:
        model = load_policy("tiny-random", adapter=AdapterConfig(rank=2, seed=seed)).model
        return {name: weight for name, weight in model.named_parameters() if "lora_A" in name}

    first, again, other = drawn(1), drawn(1), drawn(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_an_adapter_that_learned_nothing_is_not_saved(tmp_path: Path) -> None:
    policy = load_policy("tiny-random", adapter=AdapterConfig(rank=2))
    with pytest.raises(TrainingFault, match="nothing was learned"):
        policy.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_merge_that_changes_the_model_is_refused(tmp_path: Path) -> None:
    """Mamba reads the weights of dt_proj past the adapter: live, the adapter does nothing; merged, it would."""
    make_policy("mamba", family("mamba"), byte_tokenizer()).save(tmp_path / "base")
    policy = load_policy(tmp_path / "base", adapter=AdapterConfig(rank=2, targets=("dt_proj",)))
    for key, weight in policy.model.named_parameters():
        if "lora_B" in key:
            weight.data.fill_(0.5)
    with pytest.raises(TrainingFault, match="differs from the adapted one"):
        policy.save_merged(tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_loading_and_saving_draw_no_bars_of_their_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """transformers draws one for every file of weights, on a terminal or not, amid the lines of a run."""
    enable_progress_bar()
    load_policy("tiny-random").save(tmp_path / "model")
    load_policy(tmp_path / "model")
    assert "%" not in capfd.readouterr().err


def test_a_save_over_an_artifact_replaces_it_whole(adapted: Policy, tmp_path: Path) -> None:
    adapted.save_merged(tmp_path / "x")
    adapted.save(tmp_path / "x")
    assert torch.equal(logits(load_policy(tmp_path / "x")), logits(adapted))
    assert not (tmp_path / "x" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dtype": "float16"}, ConfigError, "unknown dtype"),
        ({"adapter": AdapterConfig(targets=("no_such_layer",))}, ConfigError, "no_such_layer"),
        ({"adapter": Path("/nowhere")}, DataError, "adapter does not load"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load_policy("tiny-random", **options)  # type: ignore[arg-type]


def test_a_folder_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="does not load"):
        load_policy(tmp_path)


def test_bf16_weights_pass_the_self_check_and_give_fp32_logits() -> None:
    policy = load_policy("tiny-random", dtype="bfloat16")
    assert policy.layout == "tree", policy.layout_reason
    assert logits(policy).dtype == torch.float32
    exact = logits(load_policy("tiny-random"))
    assert (logits(policy) - exact).abs().max() < 0.05 * exact.abs().max()


def test_both_layouts_give_hidden_states_in_forest_order(tiny: Policy) -> None:
    flat = make_policy("tiny", tiny_model(), byte_tokenizer())
    flat._layout = type(flat._layout)("flat", "plain", "forced by the test")
    np.testing.assert_allclose(logits(tiny).numpy(), logits(flat).numpy(), atol=1e-4)
