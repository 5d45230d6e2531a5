"""One forest scored: what the loop hands to channels, computed once and only when asked for.

The reference pass (adapter off, no gradient) runs at most once a forest, and not at all when no channel asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from postgrad.core.forest import Forest
from postgrad.models.evaluating import evaluating
from postgrad.models.score import token_logprobs
from postgrad.objectives.channel import IntsN, Scored
from postgrad.train.contracts import TrainablePolicy
from postgrad.train.teachers import Teachers


def scored_forest(
    policy: TrainablePolicy, forest: Forest, hidden_TD: Tensor, *, teachers: Teachers | None = None
) -> Scored:
    """`forest` with its hidden states under `policy`, and the reference and the run's teachers at hand."""
    scorer = _Scorer(policy, forest, hidden_TD)
    teaching = None if teachers is None else teachers.teaching(forest)
    return Scored(forest, hidden_TD, policy.head, scorer.logprobs, scorer.reference_logprobs, teaching)


@dataclass(frozen=True)
class _Scorer:
    policy: TrainablePolicy
    forest: Forest
    hidden_TD: Tensor

    def logprobs(self, nodes_N: IntsN) -> Tensor:
        return self._logprobs(self.hidden_TD, nodes_N)

    def reference_logprobs(self, nodes_N: IntsN) -> Tensor:
        with torch.no_grad(), evaluating(self.policy.model), self.policy.reference():
            return self._logprobs(self._reference_TD, nodes_N)

    @cached_property
    def _reference_TD(self) -> Tensor:
        return self.policy.hidden_TD(self.forest)

    def _logprobs(self, hidden_TD: Tensor, nodes_N: IntsN) -> Tensor:
        """Branches may share nodes (equal prefixes of two actions, equal completions): each is scored once."""
        if not len(nodes_N):
            return hidden_TD.new_zeros(0, dtype=torch.float32)
        once, inverse_N = np.unique(nodes_N, return_inverse=True)
        logprobs = token_logprobs(self.policy.head, hidden_TD, self.forest, once)
        return logprobs[torch.from_numpy(inverse_N).to(logprobs.device)]
