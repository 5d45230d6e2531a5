"""From a recipe's list of teachers to actors: who they are, what they are told, where their answers are kept.

A teacher is an endpoint (kinds openai, anthropic, ollama), a local model, the gold answers of an environment, a tape of
recorded answers, or any `module:Class` whose `from_config(TeacherConfig)` gives an actor. What a teacher is told beyond
the student's context is its `hint`; "gold" tells it the answer, and its kind says so in every report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.errors import ConfigError
from postgrad.core.task import Task
from postgrad.core.trace import Step, Trace
from postgrad.run.plugins import resolve
from postgrad.run.progress import note
from postgrad.teachers import KINDS
from postgrad.teachers.cache import AnswerCache, CachedActor
from postgrad.teachers.gateway import Endpoint, Gateway, Limits
from postgrad.teachers.journal import Journal
from postgrad.teachers.money.budget import Budget
from postgrad.teachers.money.prices import FREE, Batch, Price, read_prices
from postgrad.teachers.money.tokens import Scale, by_tokenizer
from postgrad.teachers.network import NetworkTeacher, Redact
from postgrad.teachers.providers.provider import Provider
from postgrad.teachers.replay import TOLD_A_HINT, Hinter, Teacher, no_hint
from postgrad.verbs.teacher_config import BatchPrice, Failover, PriceConfig, TeacherConfig

if TYPE_CHECKING:
    from postgrad.models.policy import Policy

CALLS = "calls.jsonl"
NETWORK = ("anthropic", "ollama", "openai")
METERED = ("anthropic", "openai")
_CACHE_WRITE = 1.25  # Anthropic's surcharge, as a multiple of the input price


@dataclass(frozen=True)
class Setting:
    """What all teachers of a replay have in common.

    Attributes:
        cache: folder of answers.
        gateway: through which network teachers are asked.
        redact: applied to whatever leaves the machine.
        template: trace and step -> template hint.
        prices: price file, None for the shipped one.
        concurrency: calls at once to one provider, unless a teacher says otherwise.
        local_only: refuse network teachers.
        keys: whether endpoints' keys have to be there; a plan asks nobody.
    """

    cache: Path
    gateway: Gateway
    redact: Redact
    template: Hinter
    prices: Path | None = None
    concurrency: int = 8
    local_only: bool = False
    keys: bool = True


def make_teachers(configs: Sequence[TeacherConfig], setting: Setting) -> list[Teacher]:
    """Build the teachers of a recipe, in its order.

    Raises:
        ConfigError: no teachers, a name used twice, a teacher that lacks what its kind needs, a metered one without a
            known price, or a network teacher where only local ones are wanted.
    """
    names = [config.name for config in configs]
    if not configs:
        raise ConfigError("no teachers", expected="a list under `teachers`", do="give at least one name and kind")
    if len(set(names)) < len(names):
        raise ConfigError("two teachers have one name", got=", ".join(names), do="give each its own")
    for config in configs:
        if setting.local_only and config.kind in NETWORK:
            raise ConfigError(
                f"teacher {config.name} is asked over a network, and only local ones are wanted",
                got=f"kind {config.kind}",
                expected="local, gold or cassette",
                do="take the teacher or --local-only out",
            )
    if setting.prices is not None:
        read_prices(setting.prices)  # a file that was named is there, also where nobody needs it
    policies: dict[str, Policy] = {}
    return [_Maker(config, setting, policies).make() for config in configs]


def gateway_of(out: Path, cache: Path, *, budget: float | None, concurrency: int, release: bool = False) -> Gateway:
    """The gateway of a run folder: its budget holds over all runs in `out`, and what a killed one left open is settled.

    Args:
        out: the run folder; its journal is calls.jsonl.
        cache: folder of answers, which say what became of calls that were under way.
        budget: US dollars, None without a limit.
        concurrency: calls at once.
        release: count nothing for calls that broke off.
    """
    journal = Journal(out / CALLS)
    journal.reconcile(AnswerCache(cache, None).cost)
    if release and (amount := journal.release()):
        note(f"released: up to {amount:.6f} US dollars of calls that broke off count as not billed")
    money = Budget(budget, paid=journal.paid, uncertain=journal.uncertain)
    return Gateway(budget=money, journal=journal, concurrency=concurrency)


class LocalModel:
    """A local model as an `Actor` that is loaded when it is first asked; `policies` are those loaded so far."""

    kind = "local model"

    def __init__(self, name: str, model: str, policies: dict[str, Policy]) -> None:
        self.name, self.model, self._policies = name, model, policies

    def answer(self, asks: Sequence[Ask], sampling: Sampling) -> list[Answer]:
        """One answer per ask, in order."""
        from postgrad.models.policy import load_policy

        if self.model not in self._policies:
            self._policies[self.model] = load_policy(self.model)
        actor: Actor = resolve("teacher", "local", KINDS)(self._policies[self.model], self.name)
        return actor.answer(asks, sampling)


@dataclass
class _Maker:
    """Builds one teacher; the environment's tasks are read at most once."""

    config: TeacherConfig
    setting: Setting
    policies: dict[str, Policy]
    _tasks: dict[str, Task] = field(default_factory=dict)

    def make(self) -> Teacher:
        price = self._price()
        makers: Mapping[str, Callable[[], Actor]] = {
            "gold": self._gold,
            "local": self._local,
            "cassette": self._cassette,
            **dict.fromkeys(NETWORK, lambda: self._network(price)),
        }
        actor = makers.get(self.config.kind, self._custom)()
        hint = self._hinter()
        return Teacher(self.config.name, actor, self.config.constrained, hint, note=self._note(), price=price)

    def _gold(self) -> Actor:
        actor: Actor = resolve("teacher", "gold", KINDS)(self._by_id().values())
        return actor

    def _local(self) -> Actor:
        self._need("model")
        from postgrad.models.resolve import resolve_model
        from postgrad.run.inputs import input_hash

        source = resolve_model(self.config.model)
        weights = input_hash(source) if isinstance(source, Path) else source
        actor = LocalModel(self.config.name, self.config.model, self.policies)
        return CachedActor(actor, self.setting.cache, identity=weights)

    def _cassette(self) -> Actor:
        if self.config.tape is None:
            raise self._wrong("needs tape", expected="tape: FILE of recorded answers")
        actor: Actor = resolve("teacher", "cassette", KINDS)(self.config.name, self.config.tape)
        return actor

    def _custom(self) -> Actor:
        try:
            Class = resolve("teacher", self.config.kind, KINDS)
        except ConfigError as error:
            raise ConfigError(f"teacher {self.config.name}: {error}") from None
        if not hasattr(Class, "from_config"):
            raise self._wrong("cannot be made from a recipe", expected="a class with `from_config`")
        if self.setting.local_only and not getattr(Class, "local", False):
            raise self._wrong("does not say that it asks nobody over a network", expected="`local = True` in the class")
        return CachedActor(Class.from_config(self.config), self.setting.cache, identity=self.config.resolved())

    def _network(self, price: Price) -> Actor:
        self._need("model")
        if self.config.constrained:
            raise self._wrong("cannot decode under a grammar", expected="constrained: false; it is for local models")
        at = self.config.endpoint
        if self.config.kind == "openai" and not at.base_url:
            raise self._wrong("needs base_url", expected="http(s)://HOST/v1")
        first = Failover(base_url=at.base_url, api_key_env=at.api_key_env)
        # Where it is served does not decide an answer, so that a server may move between two runs.
        identity = [self.config.kind, self.config.name, self.config.model, at.extra]
        return NetworkTeacher(
            self.config.name,
            [self._endpoint(one, price) for one in (first, *at.failover)],
            cache=AnswerCache(self.setting.cache, identity),
            gateway=self.setting.gateway,
            redact=self.setting.redact,
            scale=Scale(by_tokenizer(at.tokenizer)) if at.tokenizer else None,
        )

    def _endpoint(self, one: Failover, price: Price) -> Endpoint:
        at, kind = self.config.endpoint, one.kind or self.config.kind
        options = {"base_url": one.base_url} if one.base_url else {}
        try:
            provider: Provider = resolve("teacher", kind, KINDS)(
                one.model or self.config.model,
                **options,
                key_variable=one.api_key_env if self.setting.keys else None,
                extra=at.extra,
                stream=at.stream,
            )
        except ConfigError as error:
            raise ConfigError(f"teacher {self.config.name}: {error}") from None
        limits = Limits(at.concurrency or self.setting.concurrency, at.timeout, at.max_retries)
        return Endpoint(provider, _price_of(one.price, kind) if one.price else price, limits, at.accept)

    def _price(self) -> Price:
        """The recipe's price, else the table's; an unknown one is an error, for money would be spent unseen."""
        kind = self.config.kind
        if self.config.price is not None:
            return _price_of(self.config.price, kind)
        if kind not in METERED:
            return FREE
        table = read_prices(self.setting.prices)
        listed = table.of(self.config.model)
        if listed is None:
            raise ConfigError(
                f"teacher {self.config.name} has no known price",
                got=f"model {self.config.model}",
                expected="price: {input: USD, output: USD} per million tokens, or calls.prices with a row for it",
                do="for a server of your own write `price: {input: 0, output: 0}`, or take kind ollama or local",
            )
        source = self.setting.prices or "postgrad's own table"
        note(f"teacher {self.config.name}: the price of {self.config.model} is of {table.as_of}, by {source}")
        return listed

    def _note(self) -> str:
        """What sets it apart from the bare actor, for reports."""
        told = {"none": "", "template": TOLD_A_HINT, "gold": "told the gold answer"}[self.config.hint]
        return ", ".join(part for part in (told, "constrained" if self.config.constrained else "") if part)

    def _hinter(self) -> Hinter:
        if self.config.hint == "template":
            return self.setting.template
        return self._gold_hinter() if self.config.hint == "gold" else no_hint

    def _gold_hinter(self) -> Hinter:
        from postgrad.signals.hints.hint import gold_hint

        tasks = self._by_id()

        def hint(trace: Trace, step: Step) -> str | None:
            task = tasks.get(trace.task_id or "")
            return gold_hint(task.reference) if task is not None and task.reference is not None else None

        return hint

    def _by_id(self) -> dict[str, Task]:
        from postgrad.envs.environment import load_environment, training_tasks
        from postgrad.evaluate.benchmarks import Benchmark

        self._need("environment")
        if not self._tasks:
            named = Benchmark.parse(self.config.environment)
            tasks = training_tasks(load_environment(named.environment), named.split, named.n, self.config.seed)
            self._tasks = {task.id: task for task in tasks}
        return self._tasks

    def _need(self, field: str) -> None:
        if not getattr(self.config, field):
            raise self._wrong(f"needs {field}", expected=f"{field}: NAME")

    def _wrong(self, what: str, *, expected: str) -> ConfigError:
        return ConfigError(f"teacher {self.config.name} of kind {self.config.kind} {what}", expected=expected)


def _price_of(given: PriceConfig, kind: str) -> Price:
    batch = Batch(given.batch.input, given.batch.output) if isinstance(given.batch, BatchPrice) else given.batch
    write = given.cache_write
    if write is None and kind == "anthropic" and given.cached_input is not None:
        write = _CACHE_WRITE * given.input
    return Price(given.input, given.output, given.cached_input, write, batch, given.prompt_cache)
