"""A sampler whose completions a server draws, with the policy's weights of the moment.

Before it samples, the server is given the weights if they have moved since: the adapter is written to a folder that it
can read and loaded under a new name, and the one before is unloaded; or the whole model. So what comes back was drawn
by the policy that is trained, up to the difference of two engines' arithmetic, which `channels.policy_gradient.
correction` is for.

Prompts are ids and completions are ids with log-probabilities; nothing is tokenised. Sampling is at temperature 1 over
the whole vocabulary, or greedy: any other distribution is not the one whose log-probabilities are trained.

Not covered: grammars, media, weights sent over the network.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from postgrad.core.errors import ConfigError, DataError
from postgrad.models.engines import ENGINES
from postgrad.models.engines.client import Client
from postgrad.models.engines.config import EngineConfig
from postgrad.models.engines.engine import Draw, Engine
from postgrad.models.engines.weights import versions, write_weights
from postgrad.models.sample import Sample

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


class ServedSampler:
    """Draws completions of `policy` from the server that `config` names."""

    def __init__(self, policy: Policy, config: EngineConfig) -> None:
        self._policy, self._config = policy, config
        self._engine = engine_named(config.kind)
        self._client = Client(config.url, key_variable=config.key_variable, timeout=config.timeout, tries=config.tries)
        self._folder = Path(config.folder or tempfile.mkdtemp(prefix="postgrad-weights-"))
        self._adapter: str | None = None
        self._given: tuple[int, ...] | None = None
        self._run, self._times = uuid.uuid4().hex[:8], 0

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        n: int = 1,
        temperature: float,
        max_new_tokens: int,
        seed: int,
    ) -> list[list[Sample]]:
        """`n` completions of every prompt, in the order of the prompts.

        Raises:
            ConfigError: a temperature other than 1 and 0, or a request that the server refuses.
            DataError: an empty prompt, or an answer that cannot be trained on.
            OutsideFailure: the server cannot be reached.
        """
        if temperature not in (0.0, 1.0):
            raise ConfigError("a server samples at the temperature that is trained", got=temperature, expected="1 or 0")
        if any(not prompt for prompt in prompts):
            raise DataError("cannot sample from an empty prompt")
        self.refresh()
        greedy = temperature == 0.0
        draw = Draw(1 if greedy else n, temperature, max_new_tokens, tuple(sorted(self._policy.renderer.stop_ids)))

        def one(place: int) -> list[Sample]:
            asked = self._engine.request(
                prompts[place], draw, seed=seeds[place], model=self._config.model, adapter=self._adapter
            )
            samples = self._engine.read(self._client.post(*asked), prompts[place], draw)
            return samples * n if greedy else samples

        seeds = _seeds(prompts, seed)
        pool = ThreadPoolExecutor(max_workers=min(self._config.concurrency, max(1, len(prompts))))
        try:
            return list(pool.map(one, range(len(prompts))))
        finally:
            pool.shutdown(cancel_futures=True)

    def refresh(self) -> None:
        """Give the server the weights if they have moved since it last got them."""
        kind = self._config.weights
        moved = versions(self._policy)
        if kind == "fixed" or moved == self._given:
            return
        self._times += 1
        name = f"postgrad-{self._run}-{self._times}"
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        write_weights(self._policy, kind, folder)
        self._client.post(*self._engine.load(kind, name, str(folder.resolve())))
        before, self._given = self._adapter, moved
        if kind == "model":
            shutil.rmtree(folder)  # the server has read it
            return
        self._adapter = name
        if before is not None:
            forget = self._engine.unload(before)
            if forget is not None:
                self._client.post(*forget)
            shutil.rmtree(self._folder / before)


def engine_named(kind: str) -> Engine:
    """The engine of that name."""
    from importlib import import_module

    module, _, name = ENGINES[kind].partition(":")
    found: Engine = getattr(import_module(module), name)()
    return found


def _seeds(prompts: Sequence[Sequence[int]], seed: int) -> list[int]:
    """One seed a prompt: of the run's seed, the prompt's tokens, and how often it came before in the call."""
    seen: Counter[tuple[int, ...]] = Counter()
    seeds = []
    for prompt in prompts:
        key = tuple(prompt)
        digest = hashlib.sha256(repr((seed, list(key), seen[key])).encode()).digest()
        seeds.append(int.from_bytes(digest[:4], "big") >> 1)
        seen[key] += 1
    return seeds
