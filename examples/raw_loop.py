"""Preference training from the parts alone: no loop, no recipe, no run folder.

Run: python examples/raw_loop.py [MODEL]        (default: tiny-random, a few seconds)
The first loss is ln 2 = 0.6931, because the policy still is its own reference; then it falls.
"""

from __future__ import annotations

import sys

import torch

from postgrad.core.annotation import PreferenceItem, Unit
from postgrad.core.forest import pack
from postgrad.envs.environment import load_environment
from postgrad.methods.layout import action_span
from postgrad.models.adapter import AdapterConfig
from postgrad.models.policy import load_policy
from postgrad.objectives.channel import Placed
from postgrad.objectives.preference import Preference
from postgrad.train.scoring import scored_forest

policy = load_policy(sys.argv[1] if len(sys.argv) > 1 else "tiny-random", adapter=AdapterConfig(rank=8))
tasks = [task for task in load_environment("function_calling").tasks("train", 4) if task.reference]

units = []  # one pair a task: its own call is chosen, the next task's call is rejected; both share the prompt
for task, other in zip(tasks, [*tasks[1:], tasks[0]], strict=True):
    prompt = policy.renderer.prompt(task.messages, task.tools)
    chosen, rejected = policy.renderer.action(task.reference), policy.renderer.action(other.reference)
    item = PreferenceItem(action_span(0, prompt, chosen), action_span(1, prompt, rejected))
    units.append(Unit(((*prompt, *chosen), (*prompt, *rejected)), (item,)))

forests = pack(units, budget=2048)
print(f"{sum(unit.tokens for unit in units)} tokens branch by branch, {sum(map(len, forests))} in the forests")

channel = Preference(beta=0.1)
optimizer = torch.optim.AdamW([p for p in policy.model.parameters() if p.requires_grad], lr=3e-3)
for step in range(5):
    losses = []
    for forest in forests:
        scored = scored_forest(policy, forest, policy.hidden_TD(forest))
        loss, _ = channel.loss(scored, [Placed(k, unit.items[0]) for k, unit in enumerate(forest.units)])
        (loss / len(units)).backward()
        losses.append(loss.item() / len(units))
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {sum(losses):.4f}")
