"""``tiny-random``: a random Llama-type model of two layers and a byte tokenizer, built in memory, the same every time.

It is for tests and for trying things out: it knows nothing, but it is a real causal LM with a real fast tokenizer and
a ChatML template, and it runs in milliseconds. Every text is one token per UTF-8 byte, plus the chat marks.
"""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, PreTrainedTokenizerFast

from postgrad.models.templates import CHATML

MARKS = ("<|pad|>", "<|im_start|>", "<|im_end|>")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer: ids 0-2 are the chat marks, then one id per byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate((*MARKS, *alphabet))}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=MARKS[0],
        bos_token=MARKS[1],
        eos_token=MARKS[2],
        chat_template=CHATML,
        clean_up_tokenization_spaces=False,
    )


def tiny_model(*, seed: int = 0) -> PreTrainedModel:
    """About 0.1 million weights drawn from `seed`; the caller's random state is left as it was."""
    config = LlamaConfig(
        vocab_size=len(MARKS) + 256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        # Wide enough that attention and the choice of the next token depend on the context.
        initializer_range=0.1,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    return model
