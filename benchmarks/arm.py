"""One arm of the comparison, alone in its process, so that CPU time and peak memory are its own.

The work of every arm: the DPO loss, and the gradient of every adapter weight, of one synthetic trace. A trace has K
steps; a step is an observation and two actions, chosen and rejected, and the trace goes on after the rejected one.

    forest    postgrad: the whole trace as one forest, policy and reference
    trl       TRL's DPOTrainer.compute_loss, one pair a micro-batch (chosen and rejected padded together)
    branches  the same pairs with transformers alone, logits at the scored positions only

The tokens are random: compute does not depend on them, and equal tokens by chance would help the forest.

Run: python benchmarks/arm.py ARM MODEL STEPS OUT.npz
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import Policy, load_policy

OBSERVATION, ACTION = 64, 32
BETA = 0.1


@dataclass(frozen=True)
class Pair:
    """A step as two branches: the context, and the two actions."""

    prompt: list[int]
    chosen: list[int]
    rejected: list[int]


def trace(steps: int, vocabulary: int) -> list[Pair]:
    """The pairs of a trace of `steps` steps."""
    draw = np.random.default_rng(0)
    pairs, context = [], list[int]()
    for _ in range(steps):
        observation, chosen, rejected = (
            draw.integers(10, vocabulary, size).tolist() for size in (OBSERVATION, ACTION, ACTION)
        )
        context = context + observation
        pairs.append(Pair(context, chosen, rejected))
        context = context + rejected
    return pairs


def policy_with_a_used_adapter(model: str) -> Policy:
    """LoRA with both halves non-zero, so that policy and reference differ and every adapter weight has a gradient."""
    policy = load_policy(model, adapter=AdapterConfig(rank=16))
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in policy.model.named_parameters():
            if "lora_B" in name:
                weight.copy_(torch.randn(weight.shape, generator=draw) * 0.01)
    policy.model.eval()
    return policy


def forest_loss(policy: Policy, pairs: list[Pair]) -> Callable[[], float]:
    """Our own: one forest."""
    from postgrad.core.annotation import PreferenceItem, Span, Unit
    from postgrad.core.forest import build_forest
    from postgrad.objectives.channel import Placed
    from postgrad.objectives.preference import Preference
    from postgrad.train.scoring import scored_forest

    def unit(pair: Pair) -> Unit:
        spans = [
            Span(place, tuple(range(len(pair.prompt), len(pair.prompt) + len(action))))
            for place, action in enumerate((pair.chosen, pair.rejected))
        ]
        branches = ((*pair.prompt, *pair.chosen), (*pair.prompt, *pair.rejected))
        return Unit(branches, (PreferenceItem(*spans),))

    forest = build_forest([unit(pair) for pair in pairs])
    channel = Preference(beta=BETA)

    def run() -> float:
        scored = scored_forest(policy, forest, policy.hidden_TD(forest))
        loss, _ = channel.loss(scored, [Placed(place, u.items[0]) for place, u in enumerate(forest.units)])
        (loss / len(pairs)).backward()
        return loss.item() / len(pairs)

    return run


def trl_loss(policy: Policy, pairs: list[Pair]) -> Callable[[], float]:
    """TRL's own loss on TRL's own batches."""
    import tempfile

    from datasets import Dataset
    from trl import DPOConfig, DPOTrainer
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    arguments = DPOConfig(
        output_dir=tempfile.mkdtemp(),
        beta=BETA,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_dropout=True,
        report_to=[],
        max_length=None,
    )
    # The trainer wants texts; the comparison wants tokens, so the texts are never used.
    texts = Dataset.from_list([{"prompt": "a", "chosen": "b", "rejected": "c"}])
    adapter = policy.model.peft_config["default"]
    weights = {name: weight.detach().clone() for name, weight in policy.model.named_parameters()}
    trainer = DPOTrainer(
        model=policy.model.unload(),
        args=arguments,
        train_dataset=texts,
        processing_class=policy.tokenizer,
        peft_config=adapter,
    )
    policy.model = trainer.model
    with torch.no_grad():
        for name, weight in policy.model.named_parameters():
            weight.copy_(weights[name])
    policy.model.eval()
    collate = DataCollatorForPreference(pad_token_id=0)
    batches = [collate([{"prompt_ids": p.prompt, "chosen_ids": p.chosen, "rejected_ids": p.rejected}]) for p in pairs]

    def run() -> float:
        total = 0.0
        for batch in batches:
            loss = trainer.compute_loss(policy.model, batch) / len(pairs)
            loss.backward()
            total += loss.item()
        return total

    return run


def branches_loss(policy: Policy, pairs: list[Pair]) -> Callable[[], float]:
    """Transformers alone."""

    def sums_B(pair: Pair) -> torch.Tensor:
        ids_BT = torch.tensor([[*pair.prompt, *pair.chosen], [*pair.prompt, *pair.rejected]])
        start = len(pair.prompt)
        logits_BSV = policy.model(input_ids=ids_BT, use_cache=False, logits_to_keep=ids_BT.shape[1] - start + 1).logits
        logprobs_BSV = logits_BSV[:, :-1].float().log_softmax(dim=-1)
        return logprobs_BSV.gather(2, ids_BT[:, start:, None])[:, :, 0].sum(dim=1)

    def run() -> float:
        total = 0.0
        for pair in pairs:
            with torch.no_grad(), policy.model.disable_adapter():
                reference_B = sums_B(pair)
            ratios_B = sums_B(pair) - reference_B
            loss = -torch.nn.functional.logsigmoid(BETA * (ratios_B[0] - ratios_B[1])) / len(pairs)
            loss.backward()
            total += loss.item()
        return total

    return run


def start_peak() -> float:
    """Forget the peak of loading, where the system can (Linux); the memory in use now, in MB."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


def peak_mb() -> float:
    """Largest resident memory since `start_peak`, in MB."""
    with suppress(OSError):
        [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


ARMS = {"forest": forest_loss, "trl": trl_loss, "branches": branches_loss}


def main(arm: str, model: str, steps: str, out: str) -> None:
    """Warm up on a trace of one step, measure the real one, write the numbers down."""
    policy = policy_with_a_used_adapter(model)
    vocabulary = policy.network.config.vocab_size
    pairs = trace(int(steps), vocabulary)
    ARMS[arm](policy, trace(1, vocabulary)[:1])()
    run = ARMS[arm](policy, pairs)
    policy.model.zero_grad(set_to_none=True)
    before = start_peak()
    began, wall = time.process_time(), time.perf_counter()
    loss = run()
    cpu, wall = time.process_time() - began, time.perf_counter() - wall
    gradients = {
        f"gradient/{name}": weight.grad.numpy()
        for name, weight in policy.model.named_parameters()
        if weight.grad is not None
    }
    np.savez(
        out,
        loss=loss,
        cpu_seconds=cpu,
        wall_seconds=wall,
        peak_mb=peak_mb(),
        before_mb=before,
        **gradients,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
