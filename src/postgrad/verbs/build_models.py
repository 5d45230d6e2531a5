"""The models that `build` asks: judges of pairs, the judge of texts, the writer of hints. All of them are teachers.

They go through the same gateway as a replay's teachers: redaction, budget, prices, a cache in the run folder (so that a
second build pays for nothing), calls.jsonl, sent.json.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.errors import ConfigError, OutsideFailure
from postgrad.core.files import write_json
from postgrad.run.nearest import nearest
from postgrad.run.plugins import resolve
from postgrad.signals.hints.writer import HintWriter
from postgrad.signals.rows.pair_judge import PairJudge, family_of
from postgrad.signals.text_judges import TEXT_JUDGES, ActorJudge, SameText
from postgrad.teachers.boundary import AskRedactor
from postgrad.teachers.money.budget import BudgetReached
from postgrad.teachers.providers.failures import UNREACHED
from postgrad.teachers.relay import Relay
from postgrad.teachers.replay import Teacher, no_hint
from postgrad.teachers.report import what_was_sent
from postgrad.traces.redaction.redactor import Redactor
from postgrad.verbs.build_config import BuildConfig
from postgrad.verbs.replay import SENT
from postgrad.verbs.teacher_config import TeacherConfig
from postgrad.verbs.teachers import Setting, gateway_of, make_teachers


@dataclass(frozen=True)
class Within(Relay):
    """An actor whose budget is not a way to end, as in a replay, but a limit that the user set too low."""

    actor: Actor

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order.

        Raises:
            ConfigError: the budget does not suffice.
            OutsideFailure: the actor cannot be reached.
        """
        try:
            answers = self.actor.answer(asks, sampling)
        except BudgetReached:
            what = f"the budget does not suffice for what {self.name} is to be asked"
            raise ConfigError(what, do="give a higher models.budget; what was answered is kept") from None
        failed = [answer for answer in answers if answer.error in UNREACHED]
        if failed:  # whoever could not be asked has no opinion, which rows must not be made of
            told = f"{self.name} could not be reached for {len(failed)} of {len(answers)} questions"
            raise OutsideFailure(f"{told} ({failed[0].stop_reason}); answers are kept, run the same command again")
        return answers


class Models:
    """The models of one build, made when first needed."""

    def __init__(self, config: BuildConfig, out: Path) -> None:
        self._config, self._out = config, out
        self._setting: Setting | None = None
        self._asked: dict[str, Teacher] = {}

    def judges(self) -> list[PairJudge]:
        """The judges of pairs.

        Raises:
            ConfigError: a judge cannot be made, or `families` names another one.
        """
        families = self._config.models.families
        unknown = next((name for name in families if name not in self._config.models.judges), None)
        if unknown is not None:
            told = f"models.families has '{unknown}', which is none of the judges"
            raise ConfigError(told, do=nearest(unknown, self._config.models.judges))
        configs = [self._named(name) for name in self._config.models.judges]
        named = [families.get(one.name) or family_of(one.model or one.kind) for one in configs]
        return [PairJudge(self._actor(one), family) for one, family in zip(configs, named, strict=True)]

    def same_text(self) -> SameText:
        """The judge of texts.

        Raises:
            ConfigError: it is not known, or the model is missing.
        """
        if self._config.same_text != "model":
            found: SameText = resolve("text_judge", self._config.same_text, TEXT_JUDGES)
            return found
        if not self._config.models.text:
            raise ConfigError("same_text: model needs models.text", expected="the name of one of models.teachers")
        return ActorJudge(self._actor(self._named(self._config.models.text)))

    def writer(self) -> HintWriter | None:
        """The writer of hints, None where none is configured.

        Raises:
            ConfigError: its layer is asked for without it, or the other way round.
        """
        asked, name = "writer" in self._config.hints.layers, self._config.models.writer
        if asked != bool(name):
            expected = "the layer `writer` in hints.layers, and models.writer with its model's name"
            raise ConfigError("half of a hint writer", got=name or "the layer", expected=expected, do="give both")
        return HintWriter(self._actor(self._named(name))) if asked else None

    def cost(self) -> float:
        """US dollars paid in this run."""
        if self._setting is None:
            return 0.0
        return sum(line.cost for line in self._setting.gateway.journal.this_run())

    def record_sent(self) -> Path | None:
        """Write down what went where, as a replay does; None where no model was needed."""
        if self._setting is None:
            return None
        path = self._out / SENT
        write_json(path, what_was_sent(self._asked.values(), self._setting.gateway.journal))
        return path

    def _named(self, name: str) -> TeacherConfig:
        known = {config.name: config for config in self._config.models.teachers}
        if name not in known:
            expected = ", ".join(known) or "a name in models.teachers, which is empty"
            raise ConfigError("no model of this name", got=name, expected=expected)
        return known[name]

    def _actor(self, config: TeacherConfig) -> Actor:
        if self._setting is None:
            self._setting = self._made()
        (teacher,) = make_teachers([config], self._setting)
        self._asked[teacher.name] = teacher
        return Within(teacher.actor)

    def _made(self) -> Setting:
        models = self._config.models
        cache = self._out / "cache"
        return Setting(
            cache,
            gateway_of(self._out, cache, budget=models.budget, concurrency=models.concurrency),
            AskRedactor(Redactor()),
            no_hint,
            prices=models.prices,
            concurrency=models.concurrency,
            local_only=models.local_only,
        )
