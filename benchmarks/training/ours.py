"""Our arm of the training cases: units through the trainer's own packing and backward pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, PolicyGradientItem, PreferenceItem, Span, Unit
from postgrad.core.forest import build_forest, pack
from postgrad.models.machine import bf16_is_faster
from postgrad.models.policy import Policy
from postgrad.models.sampler import Sample, generate
from postgrad.models.score import token_logprobs
from postgrad.train.channels import build_channels
from postgrad.train.gradients import Backward
from training import bodies
from training.data import Settings, documents, group, pairs

BUDGET = 8192
Outcome = Mapping[str, Any]
Step = Callable[[], Outcome]


def preference(settings: Settings) -> Step:
    """DPO on a trace's pairs; one forest."""

    def unit(pair: Any) -> Unit:
        item = PreferenceItem(span(0, pair.prompt, pair.chosen), span(1, pair.prompt, pair.rejected))
        return Unit(((*pair.prompt, *pair.chosen), (*pair.prompt, *pair.rejected)), (item,))

    return trained(settings, bodies.policy(settings), [unit(pair) for pair in pairs(settings)], "preference", beta=0.1)


def grpo(settings: Settings) -> Step:
    """Dr. GRPO on one group; the sampler was the policy as it is."""
    data, policy = group(settings), bodies.policy(settings)
    plain = [Unit(((*data.prompt, *tokens),)) for tokens in data.completions]
    forest = build_forest(plain)
    units = []
    for unit, (path,), credit in zip(plain, forest.paths, data.advantages, strict=True):
        scored = span(0, data.prompt, unit.branches[0][len(data.prompt) :])
        with torch.no_grad():
            nodes = path[list(scored.positions)]
            behaviour = token_logprobs(policy.head, policy.hidden_TD(forest), forest, nodes).numpy()
        units.append(Unit(unit.branches, (PolicyGradientItem(scored, credit, behaviour, settings["C"]),)))
    return trained(settings, policy, units, "policy_gradient", objective="dr_grpo")


def distil(settings: Settings) -> Step:
    """Full-vocabulary Jensen-Shannon divergence to the policy itself in a context with a hint."""
    data = group(settings)
    units = [
        Unit(
            ((*data.prompt, *tokens), (*data.hinted, *tokens)),
            (DivergenceItem(span(0, data.prompt, tokens), span(1, data.hinted, tokens)),),
        )
        for tokens in data.completions
    ]
    return trained(settings, bodies.policy(settings), units, "divergence", beta=0.5)


def sft(settings: Settings) -> Step:
    """Next-token likelihood of documents of skewed lengths, packed."""
    units = [
        Unit((tuple(tokens),), (CrossEntropyItem(Span(0, tuple(range(1, len(tokens))))),))
        for tokens in documents(settings)
    ]
    return trained(settings, bodies.policy(settings), units, "cross_entropy")


def rollout(settings: Settings) -> Step:
    """G samples of every prompt; the log-probabilities that come with them are checked against a forest's."""
    policy = bodies.policy(settings)
    prompts = [group(settings | {"P": settings["P"] + extra}).prompt for extra in range(settings["prompts"])]

    def step() -> Outcome:
        sampled = generate(
            policy, prompts, n=settings["G"], temperature=1.0, max_new_tokens=settings["C"], seed=settings["seed"]
        )
        return {"tokens": sum(len(s.tokens) for own in sampled for s in own), "check": lambda: apart(sampled)}

    def apart(sampled: Sequence[Sequence[Sample]]) -> float:
        """Largest difference between a sampled token's log-probability and the forest's."""
        branches = [[*p, *s.tokens] for p, own in zip(prompts, sampled, strict=True) for s in own]
        said = np.concatenate([s.logprobs for own in sampled for s in own])
        starts = [len(p) for p in prompts for _ in range(settings["G"])]
        forest = build_forest([Unit((tuple(branch),)) for branch in branches])
        nodes = np.concatenate([path[0][start:] for path, start in zip(forest.paths, starts, strict=True)])
        with torch.no_grad():
            found = token_logprobs(policy.head, policy.hidden_TD(forest), forest, nodes)
        return float(np.abs(found.numpy() - said).max())

    return step


def span(branch: int, prompt: Sequence[int], tokens: Sequence[int]) -> Span:
    """The tokens after the prompt."""
    return Span(branch, tuple(range(len(prompt), len(prompt) + len(tokens))))


def trained(settings: Settings, policy: Policy, units: Sequence[Unit], name: str, **channel: Any) -> Step:
    """A step's loss and gradients by the channel of that name, as the training loop computes them."""
    [built], _ = build_channels({name: channel})
    counts = {name: built.count(units)}

    def step() -> Outcome:
        policy.model.zero_grad(set_to_none=True)
        tallies = Backward(policy, [built], counts, autocast=settings.get("bf16", False)).run(
            pack(units, budget=BUDGET)
        )
        return {"loss": tallies[name].loss / counts[name], "model": policy.model}

    return step


def precision(settings: Settings) -> Step:
    """Whether products in bf16 are faster than in fp32 on this machine."""
    return lambda: {"bf16": int(bf16_is_faster(torch.device("cpu")))}


def products(settings: Settings) -> Step:
    """The rate of fp32 products of the model's shapes, each as often as a layer has it, forward and backward."""

    def step() -> Outcome:
        shapes = [(576, 960), (576, 576), (576, 3072), (1536, 576)]
        inputs = [(torch.randn(768, k), torch.randn(n, k), torch.randn(768, n)) for k, n in shapes]
        began, done = time.process_time(), 0
        while time.process_time() - began < 1.0:
            for left, right, slope in inputs:
                torch.nn.functional.linear(left, right)
                slope @ right  # to the input
                slope.T @ left  # to the weights
                done += 3 * 2 * len(left) * right.numel()
        return {"gflops": done / (time.process_time() - began) / 1e9}

    return step
