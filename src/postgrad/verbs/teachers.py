"""From a recipe's list of teachers to actors: who they are, what they are told, where their answers are kept.

A teacher is a local model, the gold answers of an environment, an OpenAI-compatible endpoint, or any `module:Class`
whose `from_config(TeacherConfig)` gives an actor. What a teacher is told beyond the student's context is its `hint`;
"gold" tells it the answer, and its kind says so in every report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from postgrad.core.actor import Actor
from postgrad.core.errors import ConfigError
from postgrad.core.task import Task
from postgrad.core.trace import Step, Trace
from postgrad.run.config import Config
from postgrad.run.plugins import resolve
from postgrad.teachers import KINDS
from postgrad.teachers.cache import CachedActor
from postgrad.teachers.replay import Hinter, Teacher, no_hint

if TYPE_CHECKING:
    from postgrad.models.policy import Policy
    from postgrad.teachers.openai_compatible import Redact
    from postgrad.teachers.prices import Price


class Endpoint(Config):
    """Where an HTTP teacher is, and how hard it is worked."""

    base_url: str = ""
    """address of the API, usually ending in /v1"""
    key_variable: str | None = None
    """environment variable that holds the key"""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """calls at once"""
    timeout: Annotated[float, Field(gt=0)] = 120.0
    """seconds per try"""
    max_retries: Annotated[int, Field(ge=0)] = 5
    """tries after the first; a 429 waits as long as the endpoint says"""
    prices: Path | None = None
    """price file that replaces the shipped one"""
    extra: dict[str, Any] = Field(default_factory=dict)
    """further request parameters; null takes one of ours out"""


class TeacherConfig(Config):
    """One teacher."""

    name: str
    """short unique name"""
    kind: str
    """local, gold, openai, or module:Class"""
    model: str = ""
    """model of a local or HTTP teacher"""
    environment: str = ""
    """environment/split[:n], the tasks that gold answers and gold hints come from"""
    seed: int = 0
    """draws the n tasks of that environment"""
    constrained: bool = False
    """answer under the grammar of the offered tools (local models)"""
    hint: Literal["none", "template", "gold"] = "none"
    """what it is told: nothing, how not to repeat the student's mistake, or the answer"""
    endpoint: Endpoint = Endpoint()
    """for kind openai"""


def make_teachers(configs: Sequence[TeacherConfig], *, cache: Path, redact: Redact, template: Hinter) -> list[Teacher]:
    """Build the teachers of a recipe, each with its answers kept under `cache`.

    Args:
        configs: in the order of the recipe.
        cache: folder of answers.
        redact: applied to whatever leaves the machine.
        template: trace and step -> template hint.

    Raises:
        ConfigError: no teachers, a name used twice, or a teacher that lacks what its kind needs.
    """
    names = [config.name for config in configs]
    if not configs:
        raise ConfigError("no teachers", expected="a list under `teachers`", do="give at least one name and kind")
    if len(set(names)) < len(names):
        raise ConfigError("two teachers have one name", got=", ".join(names), do="give each its own")
    shared = _Shared(cache, redact, template)
    return [_Maker(config, shared).make() for config in configs]


@dataclass(frozen=True)
class _Shared:
    """What all teachers of a recipe have in common; a model that several of them use is loaded once."""

    cache: Path
    redact: Redact
    template: Hinter
    policies: dict[str, Policy] = field(default_factory=dict)

    def policy(self, model: str) -> Policy:
        from postgrad.models.policy import load_policy

        if model not in self.policies:
            self.policies[model] = load_policy(model)
        return self.policies[model]


class _Maker:
    """Builds one teacher; the environment's tasks are read at most once."""

    def __init__(self, config: TeacherConfig, shared: _Shared) -> None:
        self.config, self.shared = config, shared
        self._tasks: dict[str, Task] | None = None

    def make(self) -> Teacher:
        price = self._price() if self.config.kind == "openai" else None
        actor, identity = self._actor(price)
        return Teacher(
            self.config.name,
            CachedActor(actor, self.shared.cache, identity=identity) if identity is not None else actor,
            constrained=self.config.constrained,
            hint=self._hinter(),
            note=self._note(),
            metered=self.config.kind == "openai",
            price=price,
        )

    def _actor(self, price: Price | None) -> tuple[Actor, object]:
        """The actor, and what decides its answers beyond its name; None for answers that cost nothing to make again."""
        makers: Mapping[str, Callable[[], tuple[Actor, object]]] = {"gold": self._gold, "local": self._local}
        if self.config.kind in makers:
            return makers[self.config.kind]()
        if self.config.kind == "openai":
            return self._http(price)
        Class = resolve("teacher", self.config.kind, KINDS)
        if not hasattr(Class, "from_config"):
            raise self._wrong("cannot be made from a recipe", expected="a class with `from_config`")
        return Class.from_config(self.config), self.config.resolved()

    def _gold(self) -> tuple[Actor, object]:
        actor: Actor = resolve("teacher", "gold", KINDS)(self._by_id().values())
        return actor, None

    def _local(self) -> tuple[Actor, object]:
        self._need("model")
        from postgrad.models.resolve import resolve_model
        from postgrad.run.inputs import input_hash

        source = resolve_model(self.config.model)
        weights = input_hash(source) if isinstance(source, Path) else source
        Class = resolve("teacher", "local", KINDS)
        policy = self.shared.policy(self.config.model)
        return Class(policy, self.config.name), weights

    def _http(self, price: Price | None) -> tuple[Actor, object]:
        from postgrad.teachers.openai_compatible import Limits

        self._need("model")
        if not self.config.endpoint.base_url:
            raise self._wrong("needs endpoint.base_url", expected="http(s)://HOST/v1")
        if self.config.constrained:
            raise self._wrong("constrained decoding is for local models", expected="constrained: false")
        at = self.config.endpoint
        Class = resolve("teacher", "openai", KINDS)
        actor: Actor = Class(
            self.config.name,
            self.config.model,
            at.base_url,
            key_variable=at.key_variable,
            redact=self.shared.redact,
            price=price,
            limits=Limits(at.concurrency, at.timeout, at.max_retries),
            extra=at.extra,
        )
        return actor, [self.config.model, at.base_url, at.extra]

    def _price(self) -> Price | None:
        from postgrad.teachers.prices import read_prices

        return read_prices(self.config.endpoint.prices).models.get(self.config.model)

    def _note(self) -> str:
        """What sets it apart from the bare actor, for reports."""
        told = {"none": "", "template": "told a hint", "gold": "told the gold answer"}[self.config.hint]
        return ", ".join(part for part in (told, "constrained" if self.config.constrained else "") if part)

    def _hinter(self) -> Hinter:
        if self.config.hint == "template":
            return self.shared.template
        return self._gold_hinter() if self.config.hint == "gold" else no_hint

    def _gold_hinter(self) -> Hinter:
        from postgrad.signals.hints import gold_hint

        tasks = self._by_id()

        def hint(trace: Trace, step: Step) -> str | None:
            task = tasks.get(trace.task_id or "")
            return gold_hint(task.reference) if task is not None and task.reference is not None else None

        return hint

    def _by_id(self) -> dict[str, Task]:
        from postgrad.envs.environment import load_environment, training_tasks
        from postgrad.evaluate.benchmarks import Benchmark

        self._need("environment")
        if self._tasks is None:
            named = Benchmark.parse(self.config.environment)
            tasks = training_tasks(load_environment(named.environment), named.split, named.n, self.config.seed)
            self._tasks = {task.id: task for task in tasks}
        return self._tasks

    def _need(self, field: str) -> None:
        if not getattr(self.config, field):
            raise self._wrong(f"needs {field}", expected=f"{field}: NAME")

    def _wrong(self, what: str, *, expected: str) -> ConfigError:
        return ConfigError(f"teacher {self.config.name} of kind {self.config.kind} {what}", expected=expected)
