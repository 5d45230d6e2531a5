"""TRL's arm of the training cases: its own trainers, and their `compute_loss` on batches made by their own collators.

`checkpointing` is TRL's default, off when tuned. bf16, also its default, is on only where products in it are faster
than in fp32 (`ours.precision`): on a CPU without them it would cost TRL a factor that says nothing about its code.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from peft import LoraConfig
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from postgrad.models.tiny import byte_tokenizer
from training import bodies
from training.data import Settings, documents, group, pairs
from training.ours import Step

COMMON = {"use_cpu": True, "report_to": [], "bf16": False, "save_strategy": "no", "disable_tqdm": True}


def preference(settings: Settings) -> Step:
    """`DPOTrainer`, one pair a micro-batch (chosen and rejected padded together)."""
    from trl import DPOConfig, DPOTrainer
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    texts = [{"prompt": "a", "chosen": "b", "rejected": "c"}]  # the trainer wants texts; these are never used
    trainer = made(DPOTrainer, DPOConfig, settings, texts, beta=0.1, max_length=None)
    collate, found = DataCollatorForPreference(pad_token_id=0), pairs(settings)
    batches = [collate([{"prompt_ids": p.prompt, "chosen_ids": p.chosen, "rejected_ids": p.rejected}]) for p in found]
    return stepping(trainer, settings, lambda: (trainer.compute_loss(trainer.model, b) / len(found) for b in batches))


def grpo(settings: Settings) -> Step:
    """`GRPOTrainer` with loss dr_grpo, the group in one micro-batch."""
    from trl import GRPOConfig, GRPOTrainer

    trainer = made(
        GRPOTrainer,
        GRPOConfig,
        settings,
        [{"prompt": "a"}],
        reward_funcs=no_reward,
        loss_type="dr_grpo",
        max_completion_length=settings["C"],
        num_generations=settings["G"],
        per_device_train_batch_size=settings["G"],
        beta=0.0,
    )
    trainer.current_gradient_accumulation_steps = 1
    data = group(settings)
    batch = {
        "prompt_ids": torch.tensor([data.prompt] * settings["G"]),
        "completion_ids": torch.tensor(data.completions),
        "advantages": torch.tensor(data.advantages),
        "num_items_in_batch": torch.tensor(settings["G"] * settings["C"]),
    }
    batch |= {f"{part}_mask": torch.ones_like(batch[f"{part}_ids"]) for part in ("prompt", "completion")}
    return stepping(trainer, settings, lambda: iter([trainer.compute_loss(trainer.model, batch)]))


def distil(settings: Settings) -> Step:
    """`SDPOTrainer`, full_logits, the policy itself as teacher, the group in one micro-batch."""
    from trl.experimental.sdpo import SDPOConfig, SDPOTrainer

    trainer = made(
        SDPOTrainer,
        SDPOConfig,
        settings,
        [{"prompt": "a", "privileged_context": "b"}],
        reward_funcs=no_reward,
        distillation_mode="full_logits",
        distillation_alpha=0.5,
        distillation_weight=1.0,
        distillation_is_clip=None,
        distillation_topk=None,
        teacher_model_kind="live",
        num_generations=settings["G"],
        per_device_train_batch_size=settings["G"],
        temperature=1.0,
    )
    trainer.current_gradient_accumulation_steps = 1
    data = group(settings)
    prompt, completion = torch.tensor([data.prompt] * settings["G"]), torch.tensor(data.completions)
    teacher = torch.cat([torch.tensor([data.hinted] * settings["G"]), completion], dim=1)
    batch = {
        "prompt_ids": prompt,
        "prompt_mask": torch.ones_like(prompt),
        "completion_ids": completion,
        "completion_mask": torch.ones_like(completion),
        "teacher_input_ids": teacher,
        "teacher_attention_mask": torch.ones_like(teacher),
    }
    return stepping(trainer, settings, lambda: iter([trainer.compute_loss(trainer.model, batch)]))


def sft(settings: Settings) -> Step:
    """`SFTTrainer` with packing bfd: rows of `row` tokens, `rows` of them a micro-batch."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer
    from trl.data_utils import pack_dataset

    trainer = made(SFTTrainer, SFTConfig, settings, [{"text": "a b"}], max_length=settings["longest"])
    trainer.padding_free = True
    packed = pack_dataset(
        Dataset.from_list([{"input_ids": tokens} for tokens in documents(settings)]),
        settings["longest"],
        "bfd",
        {"num_proc": 1},
    )
    collate = type(trainer.data_collator)(pad_token_id=0, padding_free=True)
    rows = [packed[place] for place in range(len(packed))]
    batches = [collate(rows[first : first + settings["rows"]]) for first in range(0, len(rows), settings["rows"])]
    total = sum(len(tokens) - 1 for tokens in documents(settings))

    def losses() -> Iterator[Tensor]:
        return (trainer.compute_loss(trainer.model, dict(b), num_items_in_batch=total) for b in batches)

    return stepping(trainer, settings, losses)


def rollout(settings: Settings) -> Step:
    """The `generate` of transformers on the batch with every prompt repeated."""
    model = bodies.model(settings)
    prompts = [group(settings | {"P": settings["P"] + extra}).prompt for extra in range(settings["prompts"])]
    rows = [torch.tensor(prompt[::-1]) for prompt in prompts for _ in range(settings["G"])]
    ids = pad_sequence(rows, batch_first=True, padding_value=0).flip(1)
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True).flip(1)

    def step() -> dict[str, Any]:
        torch.manual_seed(settings["seed"])
        made = model.generate(
            input_ids=ids, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=settings["C"], pad_token_id=0
        )
        return {"tokens": int((made[:, ids.shape[1] :] != 0).sum())}

    return step


def no_reward(**_: Any) -> list[float]:
    """The trainers want one; batches here have their advantages."""
    return [0.0]


def made(kind: Any, config: Any, settings: Settings, rows: list[dict[str, str]], **options: Any) -> Any:
    """A trainer on the case's model."""
    from datasets import Dataset

    outside = {"reward_funcs": options.pop("reward_funcs")} if "reward_funcs" in options else {}
    arguments = config(
        output_dir=tempfile.mkdtemp(), gradient_checkpointing=bool(settings.get("checkpointing")), **COMMON, **options
    )
    adapter = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", bias="none", task_type="CAUSAL_LM")
    model = bodies.model(settings)
    trainer = kind(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=byte_tokenizer(),
        peft_config=adapter if settings.get("lora") else None,
        **outside,
    )
    bodies.use_adapter(trainer.model)
    if settings.get("checkpointing"):
        trainer.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    trainer.model.train()  # checkpointing works only so; there is no dropout
    return trainer


def stepping(trainer: Any, settings: Settings, losses: Callable[[], Iterator[Tensor]]) -> Step:
    """Forward and backward; each micro-batch's backward pass comes before the next one's forward pass."""

    def step() -> dict[str, Any]:
        trainer.model.zero_grad(set_to_none=True)
        total = 0.0
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.get("bf16", False)):
            for loss in losses():
                torch.autograd.backward([loss])
                total += float(loss)
        return {"loss": total, "model": trainer.model}

    return step
