"""The text of every token of a vocabulary, as it stands behind another one. No torch.

That is how an API names tokens, and how tokens of two tokenizers are compared: ids are each model's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

BROKEN = "\ufffd"
"""Stands in the text of a token that is a part of a character."""
_known: WeakKeyDictionary[PreTrainedTokenizerBase, list[str]] = WeakKeyDictionary()


def token_texts(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """Text by id; found once a tokenizer."""
    if tokenizer not in _known:
        anchor = tokenizer.encode("a", add_special_tokens=False)[-1]
        texts = _decoded(tokenizer, [[anchor]] + [[anchor, token] for token in range(len(tokenizer))])
        _known[tokenizer] = [text[len(texts[0]) :] for text in texts[1:]]
    return _known[tokenizer]


def _decoded(tokenizer: PreTrainedTokenizerBase, rows: list[list[int]]) -> list[str]:
    found = tokenizer.batch_decode(rows, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return [str(text) for text in found]
