"""`PolicyActor`: a policy as an `Actor`, so that it stands wherever a teacher or a gold script does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.models.policy import Policy
from postgrad.models.sampler import Sample, generate
from postgrad.models.top_tokens import top_tokens

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar


@dataclass(frozen=True)
class PolicyActor:
    """Answers with `policy`. An ask that does not fit in its context is an abstention with stop reason "too_long"."""

    policy: Policy
    name: str
    kind: str = "local model"

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order; the whole list is one call of the sampler.

        With `sampling.constrained` the grammar of an ask's tools is enforced; an ask without tools is free.

        Raises:
            DataError: the chat template refuses a conversation, or a tool makes no grammar.
        """
        started = time.perf_counter()
        prompts = [self.policy.renderer.prompt(ask.messages, ask.tools, hint=ask.hint) for ask in asks]
        room = self.policy.context_length - sampling.max_new_tokens
        fitting = [i for i, prompt in enumerate(prompts) if len(prompt) <= room]
        samples = generate(
            self.policy,
            [prompts[i] for i in fitting],
            temperature=sampling.temperature,
            max_new_tokens=sampling.max_new_tokens,
            seed=sampling.seed,
            grammars=[self._grammar(asks[i]) for i in fitting] if sampling.constrained else None,
        )
        seconds = (time.perf_counter() - started) / max(1, len(asks))
        by_ask = {i: one for i, (one,) in zip(fitting, samples, strict=True)}
        top = sampling.top_logprobs
        return [self._answer(asks[i], prompt, by_ask.get(i), seconds, top) for i, prompt in enumerate(prompts)]

    def _answer(
        self, ask: Ask, prompt: Sequence[int], sample: Sample | None, seconds: float, top_logprobs: int
    ) -> Answer:
        if sample is None:
            return Answer(None, self.name, "too_long", len(prompt), 0, seconds, 0.0)
        renderer = self.policy.renderer
        message = renderer.parse(renderer.decode(sample.tokens), tools=ask.tools)
        answer = Answer(message, self.name, sample.stop_reason, len(prompt), len(sample.tokens), seconds, 0.0)
        if top_logprobs == 0:
            return answer
        return msgspec.structs.replace(
            answer, tokens=top_tokens(self.policy, prompt, sample.tokens, count=top_logprobs)
        )

    def _grammar(self, ask: Ask) -> CompiledGrammar | None:
        return self.policy.grammar(ask.tools) if ask.tools else None
