"""Attempts of several turns: the ids in the loss are the ids sampled, whatever lies between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from postgrad.core.errors import ConfigError
from postgrad.core.message import Message, Tool, ToolCall, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.methods.fresh import Rollouts, Sampler, credited_units, hinted_units
from postgrad.methods.turns import after_action, whole
from postgrad.models.engines.config import EngineConfig
from postgrad.models.policy import Policy, load_policy
from unit.models.engines.scripted_server import serving

TOOL = Tool("add", "Adds.", {"type": "object", "properties": {}})
TASK = Task("t", (Message.of("user", "one and one"),), (TOOL,))


@dataclass
class Refusing:
    """Refuses the first `refusals` calls of an attempt by their words."""

    refusals: int = 1
    seen: list[Message] = field(default_factory=list)
    name: str = "refusing"

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        self.seen.append(message)
        refused = len(self.seen) <= self.refusals
        return tuple(ToolResult(call.id, "no such argument", is_error=refused) for call in message.tool_calls)

    def grade(self, task: Task, message: Message) -> Grade:
        return Grade(float(len(self.seen) > self.refusals))


def call(policy: Policy, name: str) -> list[int]:
    return policy.renderer.action(Message("assistant", (ToolCall("c", name, "{}", {}),)))


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def run(policy: Policy, said: list[list[int]], environment: Any, **settings: Any) -> tuple[Any, Rollouts, list[Any]]:
    """One task, one completion, drawn by a server that says `said` turn by turn."""
    script = iter(said)

    def answer(_: str, body: dict[str, Any]) -> tuple[int, Any]:
        ids = next(script)
        logprobs = [-0.5 - place / 8 for place in range(len(ids))]
        one = {"index": 0, "token_ids": ids, "logprobs": {"token_logprobs": logprobs}}
        stop = "stop" if ids[-1] in policy.renderer.stop_ids else "length"
        return 200, {"choices": [one | {"finish_reason": stop}]}

    with serving(answer) as server:
        engine = EngineConfig(url=server.url, model="m", weights="fixed")
        shared = {"group_size": 1, "advantage": "reinforce++", "max_new_tokens": 200, "credit": {"idle": "score"}}
        rollouts = Rollouts.model_validate({**shared, "engine": engine, **settings})
        ((completion,),) = Sampler(policy, environment, rollouts).groups([TASK], seed=0)
    return completion, rollouts, [body["prompt"] for _, body in server.asked]


def test_an_attempt_is_one_branch_of_the_sampled_ids_and_what_came_between(policy: Policy) -> None:
    """Bytes 200 and 195 in the call's name are no UTF-8: read back from text they would be other ids."""
    odd = call(policy, "aXb")
    place = next(i for i in range(len(odd)) if policy.renderer.decode(odd[i : i + 1]) == "X")
    first, second = [*odd[:place], 200, 195, *odd[place + 1 :]], call(policy, "add")
    completion, rollouts, prompts = run(policy, [first, second], Refusing(), max_turns=3)
    assert prompts[0] == list(completion.prompt) == policy.renderer.prompt(TASK.messages, TASK.tools)
    assert prompts[1][: len(prompts[0]) + len(first)] == [*prompts[0], *first]
    assert completion.sample.tokens == (*first, *second)
    ((unit,),) = ([u] for u in credited_units([[completion]], [[2.0]], rollouts))
    assert unit.branches == ((*prompts[1], *second),), "the branch is the last prompt and its answer"
    (item,) = unit.items
    scored = [unit.branches[0][p] for p in item.span.positions]
    assert scored == [*first, *second]
    assert np.allclose(item.behaviour_T[: len(first)], [-0.5 - p / 8 for p in range(len(first))])
    assert len(item.behaviour_T) == len(scored)
    assert (item.advantage, item.max_length) == (2.0, 600)
    assert completion.grade.score == 1.0


def test_what_comes_between_is_what_the_template_writes(policy: Policy) -> None:
    """For an action as the renderer writes it, the second prompt is that of the whole conversation."""
    first = call(policy, "add")
    completion, _, prompts = run(policy, [first, call(policy, "add")], Refusing(), max_turns=2)
    environment = Refusing()
    action = policy.renderer.parse(policy.renderer.decode(first))
    results = [Message("tool", (result,)) for result in environment.respond(TASK, action)]
    assert prompts[1] == policy.renderer.prompt([*TASK.messages, action, *results], TASK.tools)
    ((count, written),) = completion.observed
    assert (count, len(prompts[1])) == (len(first), len(prompts[0]) + len(first) + len(written))
    assert after_action([*TASK.messages, action, *results], TASK, policy.renderer) == written


@pytest.mark.parametrize(("turns", "asked"), [(1, 1), (2, 2), (5, 4)])
def test_it_goes_on_while_calls_are_refused_and_there_are_turns(policy: Policy, turns: int, asked: int) -> None:
    """Three refusals: the fourth call is taken. A last refusal that nobody answers is not in the branch."""
    completion, rollouts, prompts = run(policy, [call(policy, "add")] * 5, Refusing(refusals=3), max_turns=turns)
    assert len(prompts) == asked
    assert len(completion.observed) == asked - 1
    (unit,) = credited_units([[completion]], [[1.0]], rollouts)
    assert len(unit.branches[0]) == len(prompts[-1]) + len(call(policy, "add"))


def test_an_answer_that_was_cut_off_ends_the_attempt(policy: Policy) -> None:
    completion, _, prompts = run(policy, [call(policy, "add")[:-1]], Refusing(), max_turns=3)
    assert (len(prompts), completion.sample.stop_reason, completion.observed) == (1, "length", ())


def test_the_whole_by_hand() -> None:
    """Prompt 1 2; sampled 3 4, then 9 9 written, then sampled 5: places 2, 3 and 6."""
    assert whole([1, 2], [3, 4, 5], [(2, (9, 9))]) == ((1, 2, 3, 4, 9, 9, 5), (2, 3, 6))
    assert whole([1], [3], [(1, (9,))]) == ((1, 3, 9), (1,))


def test_what_several_turns_do_not_go_with_is_refused(policy: Policy) -> None:
    with pytest.raises(ConfigError, match=r"credit\.overlong_cache with rollouts\.max_turns above 1"):
        Rollouts.model_validate({"max_turns": 2, "credit": {"overlong_cache": 4}})
    completion, _, _ = run(policy, [call(policy, "add")] * 2, Refusing(), max_turns=2)
    with pytest.raises(ConfigError, match="several turns"):
        hinted_units([completion], policy.renderer, Refusing())  # type: ignore[arg-type]
