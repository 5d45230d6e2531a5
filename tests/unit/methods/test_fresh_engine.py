"""Fresh rollouts drawn by a server: the ids in the loss are the server's, and truncated sampling is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from postgrad.core.errors import ConfigError
from postgrad.envs import load_environment, training_tasks
from postgrad.methods.credit import Credit
from postgrad.methods.fresh import Rollouts, Sampler, credited_units
from postgrad.models.engines.config import EngineConfig
from postgrad.models.policy import load_policy
from unit.models.engines.scripted_server import serving


def test_the_ids_in_the_loss_are_those_that_the_server_sampled() -> None:
    """Ids 200 and 195 are no valid UTF-8 and would not survive a trip through text."""
    ids, logprobs = [200, 195, 40, 2], [-0.5, -1.5, -2.5, -0.25]

    def answer(_: str, body: dict[str, Any]) -> tuple[int, Any]:
        one = {"token_ids": ids, "logprobs": {"token_logprobs": logprobs}, "finish_reason": "stop"}
        return 200, {"choices": [one | {"index": place} for place in range(body["n"])]}

    policy, environment = load_policy("tiny-random"), load_environment("function_calling")
    tasks = training_tasks(environment, "train", 2)
    with serving(answer) as server:
        engine = EngineConfig(url=server.url, model="m", weights="fixed")
        rollouts = Rollouts(group_size=2, max_new_tokens=8, engine=engine, credit=Credit(idle="score"))
        groups = Sampler(policy, environment, rollouts).groups(tasks, seed=0)
    units = credited_units(groups, [[1.0, -1.0]] * 2, rollouts)
    assert len(units) == 4
    for unit, task in zip(units, [tasks[0], tasks[0], tasks[1], tasks[1]], strict=True):
        prompt = policy.renderer.prompt(task.messages, task.tools)
        (item,) = unit.items
        assert unit.branches == ((*prompt, *ids),)
        assert item.span.positions == tuple(range(len(prompt), len(prompt) + 4))  # type: ignore[union-attr]
        assert np.allclose(item.behaviour_T, logprobs)  # type: ignore[union-attr]


@pytest.mark.parametrize("setting", [{"top_p": 0.9}, {"top_k": 20}, {"min_p": 0.05}, {"temperature": 0.7}])
def test_truncated_and_tempered_sampling_is_refused(setting: dict[str, float]) -> None:
    (name,) = setting
    with pytest.raises(ConfigError, match=rf"rollouts\.{name}: .*temperature 1 over the whole vocabulary"):
        Rollouts.model_validate(setting)
