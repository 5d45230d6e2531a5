"""Chat templates for models that come without one.

The marks are chosen by what the tokenizer has as single tokens: ChatML's, else Gemma's, else plain words with the
end-of-text token closing each turn. The system message is a turn of its own in all of them.
"""

from __future__ import annotations

import logging

from transformers import PreTrainedTokenizerBase

log = logging.getLogger(__name__)

_TURNS = (
    "{%% for message in messages %%}{{ '%(start)s' + message['role'] + '\\n' + message['content'] + '%(end)s\\n' }}"
    "{%% endfor %%}{%% if add_generation_prompt %%}{{ '%(start)sassistant\\n' }}{%% endif %%}"
)
CHATML = _TURNS % {"start": "<|im_start|>", "end": "<|im_end|>"}


def default_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """A template whose marks `tokenizer` reads as single tokens, as far as it has any."""
    vocabulary = tokenizer.get_vocab()
    for start, end in (("<|im_start|>", "<|im_end|>"), ("<start_of_turn>", "<end_of_turn>")):
        if start in vocabulary and end in vocabulary:
            break
    else:
        start, end = "### ", str(tokenizer.eos_token or "")
    log.warning("the tokenizer has no chat template; using turns of %r ... %r", start, end)
    return _TURNS % {"start": start, "end": end}
