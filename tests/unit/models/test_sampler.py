"""Sampling: what comes out depends on the prompt and the seed, and its log-probabilities are the scorer's."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor

from postgrad.core.annotation import Unit
from postgrad.core.errors import DataError
from postgrad.core.forest import build_forest
from postgrad.core.message import Message, Tool
from postgrad.core.pulse import listening
from postgrad.models import decoder as decoding
from postgrad.models import sampler
from postgrad.models.decoder import Decoder
from postgrad.models.policy import Policy, make_policy
from postgrad.models.sampler import Sample, generate, stream
from postgrad.models.score import token_logprobs
from postgrad.models.tiny import byte_tokenizer
from unit.models.families import VOCABULARY, family

PROMPTS = [[5, 6, 7], [9] * 40, [8, 200, 31, 7, 7, 7, 7], [5, 6, 7]]


def scores(policy: Policy, prompt: list[int], samples: list[Sample], *, temperature: float = 1.0) -> list[torch.Tensor]:
    forest = build_forest([Unit(tuple((*prompt, *sample.tokens) for sample in samples))])
    hidden_TD = policy.hidden_TD(forest)
    return [
        token_logprobs(policy.head, hidden_TD, forest, path[len(prompt) :], temperature=temperature).detach()
        for path in forest.paths[0]
    ]


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_log_probabilities_are_those_of_the_sampling_distribution(tiny: Policy, temperature: float) -> None:
    results = generate(tiny, PROMPTS[:3], n=3, temperature=temperature, max_new_tokens=12, seed=1)
    for prompt, samples in zip(PROMPTS, results, strict=False):
        for sample, expected in zip(samples, scores(tiny, prompt, samples, temperature=temperature), strict=True):
            torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=1e-4, rtol=1e-4)


def test_a_prompts_samples_do_not_depend_on_the_batch(tiny: Policy) -> None:
    together = generate(tiny, PROMPTS, n=2, temperature=1.0, max_new_tokens=10, seed=4)
    for prompt, samples in zip(PROMPTS[:3], together, strict=False):
        (alone,) = generate(tiny, [prompt], n=2, temperature=1.0, max_new_tokens=10, seed=4)
        assert [s.tokens for s in alone] == [s.tokens for s in samples]
    assert together[0][0].tokens != together[3][0].tokens, "an equal prompt that comes again draws anew"
    assert together[0][0].tokens != together[0][1].tokens


def test_batches_of_any_size_give_the_same(tiny: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = generate(tiny, PROMPTS, n=2, temperature=1.0, max_new_tokens=8, seed=0)
    monkeypatch.setattr(sampler, "BATCH_ROWS", 2)
    split = generate(tiny, PROMPTS, n=2, temperature=1.0, max_new_tokens=8, seed=0)
    assert [[s.tokens for s in samples] for samples in whole] == [[s.tokens for s in samples] for samples in split]


def test_prompts_prefilled_in_portions_give_the_same(tiny: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five prompts of 3 to 40 tokens: prefilled at once, and in portions of at most 48 padded tokens."""
    prompts = [list(range(10, 10 + length)) for length in (3, 11, 12, 30, 40)]

    def decoded() -> list[Tensor]:
        decoder = Decoder(tiny, prompts)
        first = decoder.logits_RV
        decoder.step([5, 6, 7, 8, 9])
        second = decoder.logits_RV
        decoder.pick([3, 0])
        decoder.step([11, 12])
        return [first, second, decoder.logits_RV]

    whole = decoded()
    monkeypatch.setattr(decoding, "PREFILL_TOKENS", 48)
    assert list(decoding._portions([3, 11, 12, 30, 40])) == [(0, 3), (3, 4), (4, 5)]
    for one, other in zip(whole, decoded(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_greedy_takes_the_likeliest_token(tiny: Policy) -> None:
    ((sample,),) = generate(tiny, [PROMPTS[2]], temperature=0.0, max_new_tokens=6, seed=0)
    ids = list(PROMPTS[2])
    for token in sample.tokens:
        with torch.no_grad():
            logits_V = tiny.network(input_ids=torch.tensor([ids])).logits[0, -1]
        assert token == int(logits_V.argmax())
        ids.append(token)


def test_draws_follow_the_distribution(tiny: Policy) -> None:
    """2000 first tokens: each of the likely ones within four standard errors of its probability.

    The standard error of a share of n draws is sqrt(p (1 - p) / n).
    """
    n = 2000
    (samples,) = generate(tiny, [[5, 6, 7]], n=n, temperature=1.0, max_new_tokens=1, seed=11)
    with torch.no_grad():
        p_V = torch.softmax(tiny.network(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1], dim=-1)
    counts = Counter(sample.tokens[0] for sample in samples)
    for token in p_V.topk(10).indices.tolist():
        p = float(p_V[token])
        assert abs(counts[token] / n - p) < 4 * (p * (1 - p) / n) ** 0.5


def test_every_stop_token_ends_a_sample_and_is_kept(tiny: Policy) -> None:
    results = generate(tiny, PROMPTS * 8, n=2, temperature=1.5, max_new_tokens=200, seed=2)
    samples = [sample for group in results for sample in group]
    stopped = [sample for sample in samples if sample.stop_reason == "stop"]
    assert stopped, "at this temperature one of 64 long samples meets a stop token of 259"
    for sample in samples:
        ends = [token in tiny.renderer.stop_ids for token in sample.tokens]
        assert ends[-1] == (sample.stop_reason == "stop")
        assert not any(ends[:-1])
        assert len(sample.tokens) == 200 or ends[-1]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_stream_is_the_same_completion(tiny: Policy, temperature: float) -> None:
    ((sample,),) = generate(tiny, [PROMPTS[1]], temperature=temperature, max_new_tokens=9, seed=3)
    tokens = stream(tiny, PROMPTS[1], temperature=temperature, max_new_tokens=9, seed=3)
    assert tuple(tokens) == sample.tokens


@pytest.mark.parametrize("name", ["gemma3_text", "mistral", "mamba", "rwkv", "lfm2", "gpt2"])
def test_cached_decoding_equals_the_whole_pass(name: str) -> None:
    """Prompts of several lengths, longer than the window; the last one needs an own batch in a recurrent model."""
    policy = make_policy(name, family(name), byte_tokenizer())
    prompts = [[3 + (i * j) % 90 for i in range(length)] for j, length in ((2, 15), (3, 15), (5, 8))]
    results = generate(policy, prompts, n=2, temperature=1.0, max_new_tokens=8, seed=5)
    for prompt, samples in zip(prompts, results, strict=True):
        assert all(token < VOCABULARY for sample in samples for token in sample.tokens)
        for sample, expected in zip(samples, scores(policy, prompt, samples), strict=True):
            torch.testing.assert_close(torch.tensor(sample.logprobs), expected, atol=1e-4, rtol=1e-4)


def test_the_grammar_leaves_only_calls_of_the_tools(tiny: Policy) -> None:
    tool = Tool("f", "", {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}, "required": ["unit"]})
    grammar = tiny.grammar([tool], require_call=True)
    prompts = [tiny.renderer.prompt([Message.of("user", word)]) for word in ("a", "bb", "ccc")]
    results = generate(tiny, prompts, temperature=1.0, max_new_tokens=300, seed=0, grammars=[grammar, None, grammar])
    for (sample,) in (results[0], results[2]):
        message = tiny.renderer.parse(tiny.renderer.decode(sample.tokens))
        assert message.tool_calls
        assert all(
            call.arguments in ({"unit": "C"}, {"unit": "F"}) for call in message.tool_calls if not call.parse_error
        )
        assert max(sample.logprobs) == 0.0, "a token that the grammar forces has probability one"
    assert not tiny.renderer.parse(tiny.renderer.decode(results[1][0].tokens)).tool_calls


def test_an_empty_prompt_is_refused(tiny: Policy) -> None:
    with pytest.raises(DataError, match="empty prompt"):
        generate(tiny, [[]], temperature=0.0, max_new_tokens=1, seed=0)


def test_sampling_leaves_training_mode_as_it_was(adapted: Policy) -> None:
    adapted.model.train()
    generate(adapted, [[5]], temperature=0.0, max_new_tokens=1, seed=0)
    assert adapted.model.training


def test_whoever_waits_hears_how_far_it_is(tiny: Policy) -> None:
    """4 prompts x 2 samples of at most 5 tokens: shares never fall, end at 1, and count 8 answers."""
    heard: list[tuple[float, str]] = []
    with listening(lambda share, words: heard.append((share, words))):
        generate(tiny, PROMPTS, n=2, temperature=1.0, max_new_tokens=5, seed=0)
    shares = [share for share, _ in heard]
    assert heard[0] == (0.0, "0 of 8 answers, reading 53 tokens of prompts")
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert all("of 8 answers" in words for _, words in heard)
