"""Sampling: batched, each prompt prefilled once whatever the number of samples, finished rows dropped at once.

Every sample draws from its own generator, seeded by (seed, the prompt's tokens, how often that prompt came before in
the call, sample index), so what is sampled for a prompt does not hang on the rest of the batch, and a run that resumes
with other batches goes on the same (up to the last bits of the logits, which can tip a near tie).

Log-probabilities are those of the distribution that was sampled from: tempered and, with a grammar, renormalised over
the allowed tokens; they are the behaviour policy of a policy gradient. Greedy decoding reports them at temperature 1.

Not covered: nucleus and top-k sampling, which policy gradients would have to correct for; speculative decoding.

Shapes: R rows, V vocabulary.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from postgrad.core.errors import DataError
from postgrad.core.pulse import beat
from postgrad.models.decoder import Decoder
from postgrad.models.evaluating import evaluating
from postgrad.models.policy import Policy
from postgrad.models.sample import Sample as Sample

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar, GrammarMatcher

BATCH_TOKENS = 32768
BATCH_ROWS = 128
"""Bounds of one batch: tokens of its prompts, padded, and sequences that are decoded together."""


@dataclass
class _Row:
    """A completion in the making."""

    place: tuple[int, int]
    generator: torch.Generator
    matcher: GrammarMatcher | None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stopped: bool = False


def generate(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    *,
    n: int = 1,
    temperature: float,
    max_new_tokens: int,
    seed: int,
    grammars: Sequence[CompiledGrammar | None] | None = None,
) -> list[list[Sample]]:
    """`n` completions of every prompt, in the order of the prompts.

    Args:
        policy: whose tokens, in evaluation mode for the time of the call.
        prompts: token ids, none empty.
        n: samples a prompt; they share one prefill.
        temperature: 0 is greedy.
        max_new_tokens: longest completion, stop token included.
        seed: of all generators.
        grammars: per prompt a grammar that its completions must follow, or None.

    Raises:
        DataError: a prompt is empty.
    """
    if any(not prompt for prompt in prompts):
        raise DataError("cannot sample from an empty prompt")
    settings = _Settings(policy.renderer.stop_ids, temperature, max_new_tokens)
    repeats = _repeats(prompts)
    told = _Told(len(prompts) * n, max_new_tokens)
    results: list[list[Sample]] = [[] for _ in prompts]
    with evaluating(policy.model):
        for batch in _batches(prompts, n=n, equal=policy.layout != "tree"):
            samples = [(p, i) for p in batch for i in range(n)]
            rows = [
                _Row((p, i), _generator(seed, prompts[p], repeats[p], i), _matcher(grammars and grammars[p], policy))
                for p, i in samples
            ]
            told.reading(sum(len(prompts[p]) for p in batch))
            decoder = Decoder(policy, [prompts[p] for p in batch])
            if n > 1:
                decoder.pick([row for row in range(len(batch)) for _ in range(n)])
            _run(decoder, rows, settings, told)
            for row in rows:
                reason: Literal["stop", "length"] = "stop" if row.stopped else "length"
                results[row.place[0]].append(Sample(tuple(row.tokens), tuple(row.logprobs), reason))
    return results


def stream(
    policy: Policy,
    prompt: Sequence[int],
    *,
    temperature: float,
    max_new_tokens: int,
    seed: int,
    grammar: CompiledGrammar | None = None,
) -> Iterator[int]:
    """Tokens of one completion as they are sampled, the stop token included; equal to `generate` of that one prompt.

    Raises:
        DataError: the prompt is empty.
    """
    if not prompt:
        raise DataError("cannot sample from an empty prompt")
    row = _Row((0, 0), _generator(seed, prompt, 0, 0), _matcher(grammar, policy))
    settings = _Settings(policy.renderer.stop_ids, temperature, max_new_tokens)
    with evaluating(policy.model):
        decoder = Decoder(policy, [prompt])
        while len(row.tokens) < max_new_tokens and not row.stopped:
            if row.tokens:
                decoder.step(row.tokens[-1:])
            _sample(decoder.logits_RV, [row], settings)
            yield row.tokens[-1]


@dataclass(frozen=True)
class _Settings:
    stop_ids: frozenset[int]
    temperature: float
    max_new_tokens: int


@dataclass
class _Told:
    """What a person who waits for `generate` hears: how many of all answers are finished, and at which token it is."""

    answers: int
    longest: int
    finished: int = 0

    def reading(self, tokens: int) -> None:
        beat(self.finished / self.answers, f"{self._so_far()}, reading {tokens:,} tokens of prompts")

    def at(self, token: int, *, alive: int) -> None:
        share = (self.finished + alive * token / self.longest) / self.answers
        beat(share, f"{self._so_far()}, at token {token} of at most {self.longest}")

    def _so_far(self) -> str:
        return f"{self.finished} of {self.answers} answers"


def _run(decoder: Decoder, rows: Sequence[_Row], settings: _Settings, told: _Told) -> None:
    """Decode until every row has stopped or is full."""
    alive = list(rows)
    for count in range(settings.max_new_tokens):
        if count:
            decoder.step([row.tokens[-1] for row in alive])
        _sample(decoder.logits_RV, alive, settings)
        going = [i for i, row in enumerate(alive) if not row.stopped]
        told.finished += len(alive) - len(going)
        told.at(count + 1, alive=len(going))
        if not going:
            return
        if len(going) < len(alive):
            decoder.pick(going)
            alive = [alive[i] for i in going]
    told.finished += len(alive)


def _sample(logits_RV: Tensor, rows: Sequence[_Row], settings: _Settings) -> None:
    """Append one token to every row."""
    logits_RV = _constrained(logits_RV, rows)
    logprobs_RV = torch.log_softmax(logits_RV / (settings.temperature or 1.0), dim=-1)
    tokens_R = _draw(logprobs_RV, rows) if settings.temperature else logprobs_RV.argmax(dim=-1)
    chosen_R = logprobs_RV.gather(1, tokens_R[:, None])[:, 0]
    for row, token, logprob in zip(rows, tokens_R.tolist(), chosen_R.tolist(), strict=True):
        row.tokens.append(token)
        row.logprobs.append(logprob)
        row.stopped = token in settings.stop_ids
        if row.matcher is not None:
            accepted = row.matcher.accept_token(token)
            assert accepted, "the grammar's own mask let through a token that it does not accept"


def _draw(logprobs_RV: Tensor, rows: Sequence[_Row]) -> Tensor:
    """One token per row by inversion, from the row's own generator."""
    uniform_R1 = torch.stack([torch.rand(1, generator=row.generator, dtype=torch.float64) for row in rows])
    cumulative_RV = logprobs_RV.double().exp().cumsum(dim=-1)
    targets_R1 = uniform_R1.to(cumulative_RV.device) * cumulative_RV[:, -1:]
    # right=True finds the first token whose cumulative mass exceeds the target, so one of zero mass is never drawn.
    return torch.searchsorted(cumulative_RV, targets_R1, right=True)[:, 0].clamp(max=logprobs_RV.shape[-1] - 1)


def _constrained(logits_RV: Tensor, rows: Sequence[_Row]) -> Tensor:
    """Logits with what the rows' grammars forbid at minus infinity."""
    bound = [i for i, row in enumerate(rows) if row.matcher is not None]
    if not bound:
        return logits_RV
    import xgrammar

    bitmask = xgrammar.allocate_token_bitmask(len(rows), logits_RV.shape[-1])
    for i in bound:
        matcher = rows[i].matcher
        assert matcher is not None
        matcher.fill_next_token_bitmask(bitmask, i)
    logits_RV = logits_RV.clone()
    xgrammar.apply_token_bitmask_inplace(logits_RV, bitmask.to(logits_RV.device), indices=bound)
    return logits_RV


def _matcher(grammar: CompiledGrammar | None, policy: Policy) -> GrammarMatcher | None:
    if grammar is None:
        return None
    import xgrammar

    return xgrammar.GrammarMatcher(grammar, override_stop_tokens=sorted(policy.renderer.stop_ids))


def _generator(seed: int, prompt: Sequence[int], repeat: int, sample: int) -> torch.Generator:
    digest = hashlib.sha256(repr((seed, list(prompt), repeat, sample)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def _repeats(prompts: Sequence[Sequence[int]]) -> list[int]:
    """For every prompt, how often the same one came before it."""
    seen: Counter[tuple[int, ...]] = Counter()
    counts = []
    for prompt in prompts:
        counts.append(seen[tuple(prompt)])
        seen[tuple(prompt)] += 1
    return counts


def _batches(prompts: Sequence[Sequence[int]], *, n: int, equal: bool) -> Iterator[list[int]]:
    """Prompt indices of one batch after another, by length, so that padding is small; `equal` allows none."""
    batch: list[int] = []
    for index in sorted(range(len(prompts)), key=lambda i: len(prompts[i])):
        length = len(prompts[index])
        full = (len(batch) + 1) * length > BATCH_TOKENS or (len(batch) + 1) * n > BATCH_ROWS
        if batch and (full or (equal and length != len(prompts[batch[0]]))):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
