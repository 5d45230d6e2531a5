"""Tiny random models of many families, for tests of what must hold for any of them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedModel

VOCABULARY = 97
LLAMA_LIKE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
}
NO_DROPOUT = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
GPT_LIKE: dict[str, Any] = {"n_embd": 32, "n_head": 4, "n_layer": 3, "n_positions": 128, **NO_DROPOUT}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}

# Windows of 6 positions, far below the length of the tested branches.
TREE: dict[str, dict[str, Any]] = {
    "llama": LLAMA_LIKE,
    "qwen2": LLAMA_LIKE,
    "qwen3": LLAMA_LIKE,
    "qwen3_moe": {**LLAMA_LIKE, **EXPERTS, "num_experts": 4},
    "gemma2": {**LLAMA_LIKE, "sliding_window": 6},
    "gemma3_text": {
        **LLAMA_LIKE,
        "sliding_window": 6,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
    },
    "mistral": {**LLAMA_LIKE, "sliding_window": 6},
    "mixtral": {**LLAMA_LIKE, "num_experts_per_tok": 2, "num_local_experts": 4, "sliding_window": None},
    "phi": {**{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"}, "num_key_value_heads": 4},
    "phimoe": {
        **{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"},
        "num_experts_per_tok": 2,
        "num_local_experts": 4,
        "sliding_window": 6,
    },
    "phi3": {**{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"}, "sliding_window": 6},
    "gpt2": GPT_LIKE,
    "gpt_neox": {k: v for k, v in LLAMA_LIKE.items() if k not in ("head_dim", "num_key_value_heads")},
    "gptj": {**GPT_LIKE, "rotary_dim": 4},
    "olmo": {k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"},
    "olmo2": LLAMA_LIKE,
    # Latent attention; the first layer dense, the others with routed and shared experts.
    "deepseek_v3": {
        **{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"},
        "num_key_value_heads": 4,
        "moe_intermediate_size": 16,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "first_k_dense_replace": 1,
        "kv_lora_rank": 8,
        "q_lora_rank": 12,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
    },
    "cohere": LLAMA_LIKE,
    "granite": {**LLAMA_LIKE, "logits_scaling": 3.0},
    "falcon": {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "alibi": False},
    "opt": {"hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "dropout": 0.0},
    "gpt_oss": {**LLAMA_LIKE, "num_experts_per_tok": 2, "num_local_experts": 4, "sliding_window": 6},
    "llama4_text": {
        **LLAMA_LIKE,
        "intermediate_size_mlp": 32,
        "num_local_experts": 2,
        "attention_chunk_size": 6,
        "layer_types": ["chunked_attention", "chunked_attention", "full_attention", "chunked_attention"],
    },
}
FLAT: dict[str, dict[str, Any]] = {
    "mamba": {"hidden_size": 32, "num_hidden_layers": 3, "state_size": 8},
    "rwkv": {"hidden_size": 32, "attention_hidden_size": 32, "num_hidden_layers": 3, "context_length": 128},
    "bloom": {"hidden_size": 32, "n_head": 4, "n_layer": 3},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 3, "max_seq_len": 128},
    "lfm2": {
        **{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"},
        "layer_types": ["conv", "full_attention", "conv", "full_attention"],
    },
    # Mamba layers with an attention layer and experts in between.
    "jamba": {
        **{k: v for k, v in LLAMA_LIKE.items() if k != "head_dim"},
        "num_experts": 2,
        "num_experts_per_tok": 2,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "attn_layer_period": 4,
        "attn_layer_offset": 2,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
    },
    "gpt_neo": {
        "hidden_size": 32,
        "num_layers": 4,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 2]],
        "window_size": 6,
        "max_position_embeddings": 128,
    },
}


def family(name: str) -> PreTrainedModel:
    """The tiny model of `name`, in evaluation mode, the same at every call."""
    settings = {"vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = CONFIG_MAPPING[name](**settings, **(TREE | FLAT)[name])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model.eval()
