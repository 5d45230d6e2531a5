"""Teacher branches without gradient: the same values, the same gradients, and no graph behind them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from postgrad.core.annotation import CrossEntropyItem, DivergenceItem, Span, Unit
from postgrad.core.forest import Forest, build_forest
from postgrad.models.policy import Policy, load_policy
from postgrad.train.channels import build_channels
from postgrad.train.gradients import Backward
from postgrad.train.hidden import hidden_states, learning_T


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def hinted(prompt: list[int], hint: list[int], action: list[int]) -> Unit:
    student = Span(0, tuple(range(len(prompt), len(prompt) + len(action))))
    teacher = Span(1, tuple(p + len(hint) for p in student.positions))
    return Unit(((*prompt, *action), (*prompt, *hint, *action)), (DivergenceItem(student, teacher),))


def forest() -> Forest:
    """Prompt of 3, actions of 2 and 3; the hint of 4 is shared: 3 + 5 tokens learn, 4 + 5 are read."""
    return build_forest([hinted([5, 6, 7], [9, 9, 9, 9], a) for a in ([20, 21], [30, 31, 32])])


def test_only_the_students_branches_learn() -> None:
    found = forest()
    learns_T = learning_T(found)
    assert (learns_T.sum(), (~learns_T).sum()) == (8, 9)
    trained = build_forest([Unit(found.units[0].branches, (CrossEntropyItem(Span(1, (3,))),))])
    assert learning_T(trained).sum() == 9, "the whole branch that is read, 3 + 4 + 2"


def test_values_are_those_of_one_pass_and_the_teachers_have_no_graph(policy: Policy) -> None:
    found = forest()
    with torch.no_grad():
        whole_TD = policy.hidden_TD(found)
    hidden_TD = hidden_states(policy, found)
    torch.testing.assert_close(hidden_TD.detach(), whole_TD, rtol=1e-4, atol=1e-5)
    last = found.paths[0][1][-1]
    hidden_TD[int(last)].sum().backward()
    assert all(p.grad is None or not p.grad.abs().any() for p in policy.model.parameters())


def test_a_context_that_costs_more_than_it_saves_is_not_computed_twice(policy: Policy, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A prompt of 40 before 3 + 2 read tokens: one pass of all; a prompt of 4: two passes, of 4 + 2 and of 4 + 5."""
    lengths: list[int] = []
    real = Policy.hidden_TD
    monkeypatch.setattr(Policy, "hidden_TD", lambda self, f: lengths.append(len(f)) or real(self, f))
    for size in (40, 4):
        hidden_states(policy, build_forest([hinted(list(range(50, 50 + size)), [9, 9, 9], [20, 21])]))
    assert lengths == [47, 9, 6]


def test_the_divergences_gradient_is_that_of_one_pass(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    found, (channels, _) = forest(), build_channels({"divergence": {"beta": 0.5}})
    counts = {"divergence": 5}

    def gradients() -> tuple[float, np.ndarray]:
        policy.model.zero_grad(set_to_none=True)
        tallies = Backward(policy, channels, counts, autocast=False).run([found])
        flat = torch.cat([p.grad.flatten() for p in policy.model.parameters() if p.grad is not None])
        return tallies["divergence"].loss, flat.numpy()

    ours = gradients()
    monkeypatch.setattr("postgrad.train.gradients.hidden_states", lambda policy, forest: policy.hidden_TD(forest))
    whole = gradients()
    assert ours[0] == pytest.approx(whole[0], rel=1e-5)
    assert np.linalg.norm(ours[1] - whole[1]) <= 1e-4 * np.linalg.norm(whole[1]) > 0
