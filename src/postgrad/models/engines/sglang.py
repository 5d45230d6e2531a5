"""SGLang's own `/generate`: ids in, ids and log-probabilities out. Source: docs.sglang.io (sampling parameters, LoRA).

Weights are taken while it runs: an adapter (the server started with ``--enable-lora``), or a whole model from disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from postgrad.core.errors import DataError
from postgrad.models.engines.engine import WHOLE, Call, Draw, checked_sample, member, missing
from postgrad.models.sample import Sample


@dataclass(frozen=True)
class SGLang:
    """An `Engine`."""

    takes: ClassVar[frozenset[str]] = frozenset({"adapter", "model"})

    def request(self, prompt: Sequence[int], draw: Draw, *, seed: int, model: str, adapter: str | None) -> Call:
        """Ask for `draw.n` completions; the server has one model, so `model` is not sent."""
        parameters = {
            "n": draw.n,
            "max_new_tokens": draw.max_new_tokens,
            "temperature": draw.temperature,
            "sampling_seed": seed,
            **WHOLE,
            "stop_token_ids": list(draw.stop_ids),
            "skip_special_tokens": False,
        }
        body: dict[str, Any] = {"input_ids": list(prompt), "sampling_params": parameters, "return_logprob": True}
        return "/generate", body | ({"lora_path": adapter} if adapter else {})

    def read(self, answer: Any, prompt: Sequence[int], draw: Draw) -> list[Sample]:
        """One object, or a list of them for more than one completion."""
        given = answer if isinstance(answer, list) else [answer]
        if len(given) != draw.n:
            raise DataError("the sampling server gave another number of completions", got=str(answer)[:200])
        return [self._sample(one, prompt, draw) for one in given]

    def load(self, kind: str, name: str, folder: str) -> Call:
        """Take an adapter under a name of its own, or the whole model in the place of its own."""
        if kind == "model":
            return "/update_weights_from_disk", {"model_path": folder}
        return "/load_lora_adapter", {"lora_name": name, "lora_path": folder}

    def unload(self, name: str) -> Call | None:
        """Forget an adapter."""
        return "/unload_lora_adapter", {"lora_name": name}

    def _sample(self, one: Any, prompt: Sequence[int], draw: Draw) -> Sample:
        read = member(one, "meta_info", "prompt_tokens")
        if isinstance(read, int) and read != len(prompt):
            raise DataError("the sampling server changed the prompt", got=f"{read} ids for {len(prompt)}")
        triples = member(one, "meta_info", "output_token_logprobs")
        if not isinstance(triples, list) or not all(isinstance(t, list) and len(t) >= 2 for t in triples):
            raise missing("output_token_logprobs", "use a version that answers return_logprob")
        ids = [triple[1] for triple in triples]
        said = member(one, "output_ids")
        if isinstance(said, list) and said != ids:
            raise DataError("the sampling server's ids differ between output_ids and output_token_logprobs")
        return checked_sample(ids, [t[0] for t in triples], member(one, "meta_info", "finish_reason", "type"), draw)
