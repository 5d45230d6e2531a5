"""The student of `steps: voi`: a local model whose own actions are sampled, to see how unsure it is at a step.

Sampling takes seconds a step, so what was found is kept on disk under the content of the request, the model's weights
and the way of sampling: the replay that follows its plan samples nothing, and neither does one that was killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from postgrad.core.actor import Ask, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.files import write_json
from postgrad.run.inputs import input_hash
from postgrad.teachers.cache import AskDigest
from postgrad.teachers.money.voi import Doubt

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.verbs.selection import VoiConfig

_TOGETHER = 8  # steps that are sampled before what was found is kept


class Student:
    """Samples a local model, `config.samples` actions a step.

    Args:
        config: the model, and how it is sampled.
        kept: folder of what was found; None keeps nothing.

    Raises:
        ConfigError: there is no such model.
    """

    def __init__(self, config: VoiConfig, kept: Path | None = None) -> None:
        from postgrad.models.resolve import resolve_model

        source = resolve_model(config.student)
        weights = input_hash(source) if isinstance(source, Path) else source
        self._config, self._kept = config, kept
        self._who = content_id([weights, config.samples])
        self._sampling = Sampling(config.temperature, config.max_new_tokens)
        self._digest = AskDigest()
        self._policy: Policy | None = None

    def doubts(self, asks: Sequence[Ask]) -> list[Doubt]:
        """How unsure it is at each; not at all about a context that it cannot hold."""
        found = {place: kept for place, ask in enumerate(asks) if (kept := self._known(ask)) is not None}
        missing = [place for place in range(len(asks)) if place not in found]
        for start in range(0, len(missing), _TOGETHER):
            places = missing[start : start + _TOGETHER]
            drawn = self._sampled([asks[place] for place in places])
            for place, doubt in zip(places, drawn, strict=True):
                self._keep(asks[place], doubt)
                found[place] = doubt
        return [found[place] for place in range(len(asks))]

    def _sampled(self, asks: Sequence[Ask]) -> list[Doubt]:
        from postgrad.models.policy import load_policy
        from postgrad.models.sampler import generate
        from postgrad.signals.actions import normal_form

        policy = self._policy = self._policy or load_policy(self._config.student)
        renderer, sampling = policy.renderer, self._sampling
        prompts = [renderer.prompt(ask.messages, ask.tools) for ask in asks]
        room = policy.context_length - sampling.max_new_tokens
        fitting = [place for place, prompt in enumerate(prompts) if len(prompt) <= room]
        drawn = generate(
            policy,
            [prompts[place] for place in fitting],
            n=self._config.samples,
            temperature=sampling.temperature,
            max_new_tokens=sampling.max_new_tokens,
            seed=sampling.seed,
        )
        doubts = [Doubt()] * len(asks)
        for place, samples in zip(fitting, drawn, strict=True):
            said = [renderer.parse(renderer.decode(sample.tokens), tools=asks[place].tools) for sample in samples]
            surprisals = [-float(sum(sample.logprobs)) / max(1, len(sample.logprobs)) for sample in samples]
            doubts[place] = Doubt.of([normal_form(one, asks[place].tools) for one in said], surprisals)
        return doubts

    def _known(self, ask: Ask) -> Doubt | None:
        """What is kept; a broken file counts as nothing."""
        try:
            return None if self._kept is None else msgspec.convert(self._read(ask), Doubt)
        except (FileNotFoundError, ValueError):  # msgspec's errors are ValueErrors
            return None

    def _read(self, ask: Ask) -> Mapping[str, float]:
        read: Mapping[str, float] = json.loads(self._path(ask).read_bytes())
        return read

    def _keep(self, ask: Ask, doubt: Doubt) -> None:
        if self._kept is not None:
            write_json(self._path(ask), msgspec.to_builtins(doubt))

    def _path(self, ask: Ask) -> Path:
        assert self._kept is not None, "asked only where something is kept"
        key = content_id([self._who, self._digest(ask, self._sampling)], length=40)
        return self._kept / key[:2] / f"{key}.json"
