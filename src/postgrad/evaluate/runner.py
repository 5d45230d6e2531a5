"""`evaluate`: an actor's answers to tasks, graded into one `Score` that says how it was measured.

Four outcomes are kept apart: `scored`; `truncated` (cut off at the token limit, graded as it stands); `too_long` (the
prompt does not fit the model's context) and `infra_error` (actor or grader could not be reached). The last two have
no score and never enter a mean. Infrastructure errors are not stored, so running again asks them again.

Batches are cut from the whole list of tasks, over benchmarks that are measured together, whatever is stored already,
and a batch with a gap is asked whole: an evaluation that was killed and resumed gives what an unbroken one gives.
Not covered: several samples per task; tasks that need more than one answer (see `envs.rollouts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from postgrad.core.actor import Actor, Answer, Ask, Sampling
from postgrad.core.canonical import content_id
from postgrad.core.errors import DataError, OutsideFailure
from postgrad.core.message import Message
from postgrad.core.report import Item, Outcome, Score
from postgrad.core.task import Grade, Task
from postgrad.evaluate.pairing import measured
from postgrad.evaluate.statistics import mean_stderr
from postgrad.evaluate.store import Evaluated, ItemStore
from postgrad.run.progress import track

OUTCOMES: dict[str, Outcome] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "too_long": "too_long",
    "error": "infra_error",
    "refused": "infra_error",
}
"""Stop reason of an answer (up to a colon) -> outcome; any other reason is `scored`."""


class NotMeasurable(DataError):
    """A benchmark that this model cannot be measured on."""


class Grader(Protocol):
    """What the runner needs of an environment."""

    def grade(self, task: Task, message: Message) -> Grade:
        """Score in [0, 1].

        Raises:
            OutsideFailure: the grader itself cannot work (a dead sandbox).
        """
        ...


@dataclass(frozen=True)
class Conditions:
    """What is measured and how: recorded in the score's settings and in the store's keys.

    Args:
        weights: content hash of what answers; needed with a `store`, whose lines must not be shared by models.
        grader: version of the grader.
        subset: how the tasks were chosen, in words.
        batch: tasks asked at once.
        retries: further attempts after an actor could not be reached.
        store: JSONL file of evaluated items.
    """

    weights: str = ""
    grader: str = ""
    subset: str = "all"
    batch: int = 16
    retries: int = 2
    store: Path | None = None

    def __post_init__(self) -> None:
        assert self.weights or self.store is None, "a store needs the weights' hash: its lines belong to one model"
        assert self.batch >= 1


@dataclass(frozen=True)
class Part:
    """One benchmark's tasks. Parts that are measured together share batch, retries and store."""

    benchmark: str
    environment: Grader
    tasks: Sequence[Task]
    conditions: Conditions = Conditions()


class Measurement(NamedTuple):
    """A score and the graded answers that it sums up, in the order of the tasks."""

    score: Score
    answers: tuple[Evaluated, ...]


class _Placed(NamedTuple):
    part: Part
    task: Task


def evaluate(
    actor: Actor,
    environment: Grader,
    tasks: Sequence[Task],
    *,
    sampling: Sampling,
    benchmark: str,
    conditions: Conditions = Conditions(),
) -> Score:
    """Ask `actor` every task of one benchmark once and grade the answers; see `measure`, which gives the answers too.

    Raises:
        NotMeasurable: no prompt fits the model; and what `measure` raises.
    """
    (result,) = measure(actor, [Part(benchmark, environment, tasks, conditions)], sampling=sampling)
    if isinstance(result, NotMeasurable):
        raise result
    return result.score


def measure(actor: Actor, parts: Sequence[Part], *, sampling: Sampling) -> list[Measurement | NotMeasurable]:
    """Ask `actor` every task of all `parts` once and grade the answers; a result for each part, in order.

    Batches are filled from all parts together: on small machines a batch costs by its longest answer, not by its rows.

    Raises:
        DataError: a part has no tasks, or two tasks with one id.
        OutsideFailure: the actor cannot be reached; what was measured is stored, the same call goes on.
    """
    for part in parts:
        _check(part.tasks, part.benchmark)
    shared = parts[0].conditions
    assert all((p.conditions.batch, p.conditions.store) == (shared.batch, shared.store) for p in parts)
    store = ItemStore(shared.store)
    done: dict[tuple[str, str], Evaluated] = {}
    placed = [_Placed(part, task) for part in parts for task in part.tasks]
    placed.sort(key=lambda one: _length(one.task), reverse=True)  # a batch of like lengths pads least
    batches = [placed[i : i + shared.batch] for i in range(0, len(placed), shared.batch)]
    for number, batch in enumerate(track(batches, f"evaluate {', '.join(p.benchmark for p in parts)}", size=len)):
        drawn = msgspec.structs.replace(sampling, seed=sampling.seed + number)
        keys = [_key(one, drawn) for one in batch]
        stored = [store.get(key) for key in keys]
        if not all(stored):
            fresh = _ask(actor, batch, drawn, shared.retries)
            named = [msgspec.structs.replace(one, key=key) for one, key in zip(fresh, keys, strict=True)]
            store.add(one for one in named if one.item.outcome != "infra_error")
            stored = [store.get(key) or one for key, one in zip(keys, named, strict=True)]
        done.update({(p.part.benchmark, p.task.id): one for p, one in zip(batch, stored, strict=True) if one})
    return [_result(actor, part, [done[part.benchmark, task.id] for task in part.tasks], sampling) for part in parts]


def _result(actor: Actor, part: Part, answers: Sequence[Evaluated], sampling: Sampling) -> Measurement | NotMeasurable:
    settings = _settings(actor, part.tasks, sampling, part.conditions)
    try:
        return Measurement(_score(part.benchmark, tuple(one.item for one in answers), settings), tuple(answers))
    except NotMeasurable as nothing:
        return nothing


def prompts_hash(tasks: Sequence[Task]) -> str:
    """Give the content id of all prompts and their tools, in order."""
    return content_id([msgspec.to_builtins((task.id, task.messages, task.tools)) for task in tasks])


def as_text(message: Message) -> str:
    """Show an answer as reports do: its text, then its calls as name(arguments)."""
    calls = [f"{call.name}({call.arguments_raw})" for call in message.tool_calls]
    return "\n".join(part for part in (message.text.strip(), *calls) if part)


def _check(tasks: Sequence[Task], benchmark: str) -> None:
    if not tasks:
        raise DataError(f"{benchmark}: there are no tasks to evaluate")
    ids = [task.id for task in tasks]
    if len(set(ids)) < len(ids):
        doubled = next(one for one in ids if ids.count(one) > 1)
        raise DataError(f"{benchmark}: two tasks have one id", got=doubled)


def _length(task: Task) -> int:
    return sum(len(message.text) for message in task.messages) + sum(len(str(tool.parameters)) for tool in task.tools)


def _key(one: _Placed, sampling: Sampling) -> str:
    how = one.part.conditions
    what = [msgspec.to_builtins(sampling), msgspec.to_builtins(one.task)]
    return content_id([how.weights, how.grader, one.part.benchmark, *what], length=32)


def _ask(actor: Actor, batch: Sequence[_Placed], sampling: Sampling, retries: int) -> list[Evaluated]:
    asks = [Ask(one.task.messages, one.task.tools, one.task.id) for one in batch]
    answers = _answers(actor, asks, sampling, retries)
    return [_grade(one.part.environment, one.task, answer) for one, answer in zip(batch, answers, strict=True)]


def _answers(actor: Actor, asks: list[Ask], sampling: Sampling, retries: int) -> list[Answer | OutsideFailure]:
    """Ask together; when that keeps failing, ask one by one, so that one bad ask costs one item.

    Raises:
        OutsideFailure: several asks, and not one was answered: the actor is gone.
    """
    failure = OutsideFailure(f"{actor.name} gave no answer")
    for _ in range(1 + retries):
        try:
            return list(actor.answer(asks, sampling))
        except OutsideFailure as error:
            failure = error
    alone: list[Answer | OutsideFailure] = []
    for ask in asks if len(asks) > 1 else ():
        try:
            alone.extend(actor.answer([ask], sampling))
        except OutsideFailure as error:
            alone.append(error)
    if alone and all(isinstance(one, OutsideFailure) for one in alone):
        raise failure
    return alone or [failure]


def _grade(environment: Grader, task: Task, answer: Answer | OutsideFailure) -> Evaluated:
    """One item. A failure of the actor or of the grader is an outcome here, never a score."""
    if isinstance(answer, OutsideFailure):
        return Evaluated("", Item(task.id, task.group, 0.0, "infra_error", str(answer)))
    outcome = OUTCOMES.get(answer.stop_reason.partition(":")[0], "scored")
    message, text = answer.message, as_text(answer.message) if answer.message else ""
    if outcome in ("too_long", "infra_error"):
        item = Item(task.id, task.group, 0.0, outcome, f"stop reason: {answer.stop_reason}", text)
    elif message is None:
        item = Item(task.id, task.group, 0.0, outcome, "no_answer")
    else:
        try:
            grade = environment.grade(task, message)
        except OutsideFailure as failure:
            return Evaluated("", Item(task.id, task.group, 0.0, "infra_error", f"grader: {failure}", text), message)
        why = ": ".join(part for part in (grade.error, grade.detail) if part) or None
        item = Item(task.id, task.group, grade.score, outcome, why, text)
    return Evaluated("", item, message, answer.stop_reason)


def _settings(actor: Actor, tasks: Sequence[Task], sampling: Sampling, conditions: Conditions) -> dict[str, str]:
    return {
        "mode": "constrained" if sampling.constrained else "free",
        "temperature": f"{sampling.temperature:g}",
        "max_new_tokens": str(sampling.max_new_tokens),
        "seed": str(sampling.seed),
        "grader": conditions.grader,
        "subset": conditions.subset,
        "prompts": prompts_hash(tasks),
        "actor": actor.name,
        "weights": conditions.weights,
        "batch": str(conditions.batch),
    }


def _score(benchmark: str, items: tuple[Item, ...], settings: dict[str, str]) -> Score:
    counted = [item for item in items if measured(item)]
    if not counted:
        first = items[0]
        if any(item.outcome == "infra_error" for item in items):
            raise OutsideFailure(f"{benchmark}: no item could be measured: {first.error}")
        raise NotMeasurable(f"{benchmark}: no prompt fits the model's context", do="use a model with a longer context")
    mean, stderr = mean_stderr([item.score for item in counted], [item.group for item in counted])
    return Score(benchmark, mean, stderr, len(counted), items, settings)
