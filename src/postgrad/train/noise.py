"""NEFTune (arXiv:2310.05914): uniform noise on the input embeddings while training.

    e_t ← e_t + u_t · alpha / √(L D),   u_t uniform in (−1, 1)^D

L is the mean branch length of the whole step, where the paper takes the padded length of the micro-batch, which
would make the loss depend on how the step is packed. For the same reason the noise of a token is no draw from a
running generator but a hash of seed, batch and the tokens from the root to it: however a step is packed, split over
workers or accumulated, and whether it runs as trees or flat, each token gets the same noise.

Shapes: T tokens of a forest, R rows, L positions, D hidden width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest
from postgrad.train.contracts import TrainablePolicy

Words = NDArray[np.uint64]
GOLDEN = 0x9E3779B97F4A7C15


class EmbeddingNoise:
    """Adds noise to what `model`'s input embedding puts out in training mode, inside `over(forest)` only.

    Raises:
        ConfigError: the model does not say which its input embedding is.
    """

    def __init__(self, model: nn.Module, *, alpha: float, seed: int) -> None:
        self._embedding = _input_embedding(model)
        self._alpha, self._seed = alpha, seed
        self._model = model
        self._forest: Forest | None = None
        self._key, self._length = 0, 1.0
        self._hook = self._embedding.register_forward_hook(self._add)

    def begin(self, batch: int, units: Sequence[Unit]) -> None:
        """The noise from here on is that of `batch`."""
        lengths = [len(branch) for unit in units for branch in unit.branches]
        self._length = float(np.mean(lengths)) if lengths else 1.0
        self._key = int(np.random.SeedSequence([self._seed, batch]).generate_state(1, np.uint64)[0])

    @contextmanager
    def over(self, forest: Forest) -> Iterator[None]:
        """Inside, forward passes are over `forest`."""
        self._forest = forest
        try:
            yield
        finally:
            self._forest = None

    def remove(self) -> None:
        """Leave the model as it was."""
        self._hook.remove()

    def _add(self, _: nn.Module, inputs: tuple[Any, ...], embedded: Tensor) -> Tensor:
        if self._forest is None or not self._model.training:
            return embedded
        paths = _paths(inputs[0].detach().cpu().numpy(), self._forest, key=self._key)
        scale = self._alpha / (self._length * embedded.shape[-1]) ** 0.5
        noise = torch.from_numpy(_uniform(paths, embedded.shape[-1])).reshape(embedded.shape)
        noisy: Tensor = embedded + scale * noise.to(embedded.device, embedded.dtype)
        return noisy


class NoisyPolicy:
    """`policy` with noise on its embeddings, as the loop trains it; its reference has none."""

    def __init__(self, policy: TrainablePolicy, noise: EmbeddingNoise) -> None:
        self._policy, self._noise = policy, noise

    @property
    def name(self) -> str:
        """The policy's."""
        return self._policy.name

    @property
    def model(self) -> nn.Module:
        """The policy's."""
        return self._policy.model

    def hidden_TD(self, forest: Forest) -> Tensor:
        """Final hidden states, noise at the bottom."""
        with self._noise.over(forest):
            return self._policy.hidden_TD(forest)

    def head(self, hidden_ND: Tensor) -> Tensor:
        """The policy's."""
        return self._policy.head(hidden_ND)

    def reference(self) -> AbstractContextManager[Any]:
        """The policy's."""
        return self._policy.reference()


def _input_embedding(model: nn.Module) -> nn.Module:
    get = getattr(model, "get_input_embeddings", None)
    found = get() if get is not None else None
    if not isinstance(found, nn.Module):
        raise ConfigError("loop.embedding_noise needs a model with an input embedding", got=type(model).__name__)
    return found


def _paths(ids: NDArray[np.int64], forest: Forest, *, key: int) -> Words:
    """A hash of the tokens from the root to each token: over parents in a tree, along the row when run flat."""
    whole = ids.reshape(-1)
    if ids.shape[-1] == len(forest) == len(whole) and np.array_equal(whole, forest.tokens_T):
        own = _mix(whole.astype(np.uint64) ^ np.uint64(key))
        hashes = np.zeros(len(forest) + 1, dtype=np.uint64)  # the last place is the root's parent, -1
        for index, parent in enumerate(forest.parents_T):
            hashes[index] = _next(hashes[parent], own[index])
        return hashes[:-1]
    own_RL = _mix(ids.astype(np.uint64) ^ np.uint64(key))
    hashes_RL = np.zeros_like(own_RL)
    before_R = np.zeros(len(own_RL), dtype=np.uint64)
    for column in range(own_RL.shape[1]):
        before_R = hashes_RL[:, column] = _next(before_R, own_RL[:, column])
    return hashes_RL.reshape(-1)


def _next(before: Any, own: Any) -> Any:
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        return before * np.uint64(0xD1342543DE82EF95) + own


def _uniform(keys_N: Words, width: int) -> NDArray[np.float32]:
    """Numbers in (−1, 1), a row for each key: 24 bits of splitmix64."""
    with np.errstate(over="ignore"):
        steps_D = np.arange(1, width + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        bits_ND = _mix(_mix(keys_N)[:, None] + steps_D[None, :]) >> np.uint64(40)
    return ((bits_ND.astype(np.float32) + 0.5) / np.float32(2**23) - 1).astype(np.float32)


def _mix(words: Words) -> Words:
    """The finaliser of splitmix64: every bit of the input moves half of the output's."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Words = words ^ (words >> np.uint64(31))
    return mixed
