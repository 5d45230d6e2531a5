"""The completions API of OpenAI's form, as far as servers of open models have extended it by token ids.

The prompt goes as ids. Ids come back in one of four places: `token_ids` of the choice (vLLM, with `return_token_ids`),
`tokens` of the choice (llama.cpp, with `return_tokens`), tokens written ``token_id:17`` (vLLM's older
`return_tokens_as_token_ids`), or `id` in `logprobs.content` (llama.cpp). Log-probabilities are those of the model at
temperature 1; a server that reports them after truncation reports the same, because nothing is truncated.

Sources: docs.vllm.ai (OpenAI-compatible server, LoRA adapters at run time), llama.cpp tools/server/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from postgrad.core.errors import ConfigError, DataError
from postgrad.models.engines.engine import WHOLE, Call, Draw, checked_sample, member, missing
from postgrad.models.sample import Sample

_WRITTEN = "token_id:"


@dataclass(frozen=True)
class Completions:
    """Any server of this API that returns ids; it keeps the weights that it has."""

    takes: ClassVar[frozenset[str]] = frozenset()

    def request(self, prompt: Sequence[int], draw: Draw, *, seed: int, model: str, adapter: str | None) -> Call:
        """Ask for `draw.n` completions."""
        return "/v1/completions", {
            "model": adapter or model,
            "prompt": list(prompt),
            "n": draw.n,
            "max_tokens": draw.max_new_tokens,
            "temperature": draw.temperature,
            "seed": seed,
            **WHOLE,
            "logprobs": 1,
            "stop_token_ids": list(draw.stop_ids),
            "add_special_tokens": False,
            "skip_special_tokens": False,
            "return_token_ids": True,
            "return_tokens": True,
            "return_tokens_as_token_ids": True,
        }

    def read(self, answer: Any, prompt: Sequence[int], draw: Draw) -> list[Sample]:
        """Completions in the order of their `index`."""
        choices = member(answer, "choices")
        if not isinstance(choices, list) or len(choices) != draw.n:
            raise DataError("the sampling server gave another number of completions", got=str(answer)[:200])
        ordered = sorted(choices, key=lambda choice: member(choice, "index") or 0)
        for choice in ordered:
            for seen in (member(choice, "prompt_token_ids"), member(answer, "prompt_token_ids")):
                if isinstance(seen, list) and seen != list(prompt):
                    raise DataError("the sampling server changed the prompt", got=f"{len(seen)} ids for {len(prompt)}")
        return [checked_sample(*_tokens(choice), member(choice, "finish_reason"), draw) for choice in ordered]

    def load(self, kind: str, name: str, folder: str) -> Call:
        """No such request is part of the API."""
        raise ConfigError("this server takes no weights", got=kind, do="use kind vllm or sglang, or weights: fixed")

    def unload(self, name: str) -> Call | None:
        """Nothing was loaded."""
        return None


@dataclass(frozen=True)
class Vllm(Completions):
    """vLLM's server, started with ``--enable-lora`` and ``VLLM_ALLOW_RUNTIME_LORA_UPDATING=True`` to take adapters."""

    takes: ClassVar[frozenset[str]] = frozenset({"adapter"})

    def load(self, kind: str, name: str, folder: str) -> Call:
        """Load an adapter under a name of its own."""
        assert kind == "adapter"
        return "/v1/load_lora_adapter", {"lora_name": name, "lora_path": folder}

    def unload(self, name: str) -> Call | None:
        """Forget it."""
        return "/v1/unload_lora_adapter", {"lora_name": name}


def _tokens(choice: Any) -> tuple[list[Any], list[Any]]:
    """Ids and log-probabilities."""
    content = member(choice, "logprobs", "content")
    if isinstance(content, list):
        logprobs = [member(one, "logprob") for one in content]
    else:
        logprobs = member(choice, "logprobs", "token_logprobs")
    if not isinstance(logprobs, list):
        raise missing("log-probabilities", "start it so that `logprobs` of a completion is answered")
    return _ids(choice, content), logprobs


def _ids(choice: Any, content: Any) -> list[Any]:
    for place in ("token_ids", "tokens"):
        ids = member(choice, place)
        if isinstance(ids, list):
            return ids
    written = member(choice, "logprobs", "tokens")
    if isinstance(written, list) and all(isinstance(t, str) and t.startswith(_WRITTEN) for t in written):
        return [int(token.removeprefix(_WRITTEN)) for token in written]
    if isinstance(content, list) and all(isinstance(member(one, "id"), int) for one in content):
        return [one["id"] for one in content]
    raise missing("token ids", "text would have to be tokenised again: use vLLM >= 0.10.2, SGLang or llama.cpp")
