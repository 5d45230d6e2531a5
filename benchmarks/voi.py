"""What value of information finds for its money: preference pairs per US dollar, against replaying everything.

The traces are a demo's own (attempts of the student, lessons, everyday requests, a coding session). The teachers are
simulated, so that it is known for every step what they would say, without paying for it: each gives the environment's
right answer with a stated probability, else the student's own action or a right answer to another task; at a step of no
task it says something of its own. Pairs are made by the majority rule. Then each strategy may spend a share of what all
steps cost, and the pairs among the steps that it chose are counted:

    voi             as `postgrad replay --steps voi` chooses
    voi, no sites   the same without error sites: what is left is novelty, position, cost, and the student's uncertainty
    random          the mean over many orders; by itself it finds as many per US dollar as replaying everything

and, at its own price, `sites`: every step at an error site. `gain` is pairs per US dollar over that of replaying
everything. Prices are nominal: they fix what input and output weigh against each other, and cancel out in the gain.

Run: python benchmarks/voi.py runs/demo/06-ingest/store [--student smollm2-135m] [--json]
With --student its uncertainty is measured first (four samples a step: half an hour on two cores) and kept in --doubts,
so that a run that was stopped goes on. `doubts` compares its uncertainty at steps with and without a pair.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table

from postgrad.core.actor import Answer, Sampling
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.core.trace import Step, Trace
from postgrad.envs.environment import load_environment, training_tasks
from postgrad.signals.rows.preferences import build_pairs
from postgrad.teachers.money.prices import Price
from postgrad.teachers.money.schedule import ask_of
from postgrad.teachers.money.voi import Prospect, choose
from postgrad.teachers.replay import ReplayedStep, Teacher, TeacherAnswer
from postgrad.teachers.scripted import ScriptedActor
from postgrad.traces.storage.store import Store
from postgrad.verbs.selection import Prospects, VoiConfig
from postgrad.verbs.student import Student

SHARES = (0.1, 0.2, 0.3, 0.5)
ORDERS = 500
NOMINAL = Price(1.0, 4.0)
Place = tuple[str, int]


@dataclass(frozen=True)
class Simulated:
    """Teachers that are right with a probability, and wrong in different ways."""

    accuracy: float = 0.85
    teachers: int = 3
    seed: int = 0

    def answers(self, trace: Trace, step: Step, right: Message | None, others: Sequence[Message]) -> dict[str, Message]:
        """What each of them says; the same for the same step, whoever asks."""
        said = {}
        for number in range(self.teachers):
            draw = random.Random(f"{self.seed} {trace.id} {step.index} {number}")
            if right is None:
                said[f"teacher-{number}"] = Message.of("assistant", f"my own words, {number}")
            elif draw.random() < self.accuracy:
                said[f"teacher-{number}"] = right
            else:
                said[f"teacher-{number}"] = step.action if draw.random() < 0.5 else draw.choice(others)
        return said

    def replay(self, store: Store, tasks: Sequence[Task]) -> list[ReplayedStep]:
        """Every step that can be replayed, with everyone's answer."""
        references = {task.id: task.reference for task in tasks if task.reference is not None}
        others = list(references.values())
        steps = []
        for trace in store.traces():
            for step in trace.steps if not trace.for_evaluation else ():
                if step.can_be_learnt:
                    said = self.answers(trace, step, references.get(trace.task_id or ""), others)
                    answers = {name: TeacherAnswer(Answer(action, name), "simulated") for name, action in said.items()}
                    steps.append(ReplayedStep(trace.id, step.index, ask_of(trace, step), step.action, answers))
        return steps


def pairs_in(replayed: Sequence[ReplayedStep]) -> set[Place]:
    """The steps that give a preference pair."""
    made = zip(replayed, build_pairs(replayed), strict=True)
    return {(step.trace, step.step) for step, one in made if one.record is not None}


def by_chance(prospects: Sequence[Prospect], money: float, found: Callable[[Sequence[Prospect]], int]) -> float:
    """Pairs found by random orders, on average."""
    total = 0
    for seed in range(ORDERS):
        order = list(prospects)
        random.Random(seed).shuffle(order)
        left, chosen = money, []
        for one in order:
            if one.cost <= left:
                left -= one.cost
                chosen.append(one)
        total += found(chosen)
    return total / ORDERS


def without_errors(one: Prospect) -> frozenset[str]:
    """Its features, as if nobody knew of error sites."""
    return frozenset(feature for feature in one.features if not feature.startswith("error "))


def measure(store: Store, tasks: Sequence[Task], student: Student | None) -> dict[str, Any]:
    """Every strategy at every share."""
    teachers = Simulated()
    pairs = pairs_in(teachers.replay(store, tasks))
    payer = Teacher("payer", ScriptedActor("payer", {}), price=NOMINAL)
    prospects = list(Prospects([payer], Sampling(max_new_tokens=64), student).of(store))
    total = sum(one.cost for one in prospects)
    if not pairs:
        raise SystemExit("these steps give no preference pair: nothing to find")

    def found(chosen: Sequence[Prospect]) -> int:
        return len(pairs & {(one.trace, one.step) for one in chosen})

    def row(name: str, cost: float, count: float) -> dict[str, Any]:
        share, of_pairs = cost / total, count / len(pairs)
        return {"strategy": name, "cost": share, "pairs": of_pairs, "gain": of_pairs / share if share else 0.0}

    blind = [replace(one, error=0.0, features=without_errors(one)) for one in prospects]
    sites = [one for one in prospects if one.error >= 0.5]
    rows = [row("all", total, len(pairs)), row("sites", sum(one.cost for one in sites), found(sites))]
    for share in SHARES:
        for name, pool in (("voi", prospects), ("voi, no sites", blind)):
            chosen = choose(pool, share * total)
            rows.append(row(name, sum(one.cost for one in chosen), found(chosen)))
        rows.append(row("random", share * total, by_chance(prospects, share * total, found)))
    told = {"steps": len(prospects), "pairs": len(pairs), "teachers": asdict(teachers)}
    return {**told, "doubts": doubts_of(prospects, pairs), "rows": rows}


def doubts_of(prospects: Sequence[Prospect], pairs: set[Place]) -> dict[str, float | None]:
    """The student's mean uncertainty at steps that give a pair and at the others, and how well it tells them apart.

    `auc` is the probability that it is higher at a step with a pair than at one without; equal ones count half.
    """
    inside = [one.uncertainty for one in prospects if (one.trace, one.step) in pairs]
    outside = [one.uncertainty for one in prospects if (one.trace, one.step) not in pairs]
    if not any(inside + outside) or not inside or not outside:
        return {"pairs": None, "others": None, "auc": None}
    won = sum((a > b) + (a == b) / 2 for a in inside for b in outside)
    return {"pairs": fmean(inside), "others": fmean(outside), "auc": won / len(inside) / len(outside)}


def table(result: dict[str, Any]) -> Table:
    """The rows for a person."""
    title = f"{result['pairs']} preference pairs in {result['steps']} steps; student: {result['student']}"
    shown = Table(title=title, title_justify="left")
    for column in ("strategy", "share of the cost", "share of the pairs", "gain per US dollar"):
        shown.add_column(column, justify="left" if column == "strategy" else "right")
    for one in result["rows"]:
        shown.add_row(one["strategy"], f"{one['cost']:.0%}", f"{one['pairs']:.0%}", f"{one['gain']:.2f}")
    return shown


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--student", default="", help="local model whose uncertainty counts")
    parser.add_argument("--doubts", type=Path, default=Path("runs/voi-doubts"), help="where it is kept")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, no table")
    options = parser.parse_args()
    tasks = training_tasks(load_environment("function_calling"), "train", None, 0)
    student = Student(VoiConfig(student=options.student), options.doubts) if options.student else None
    result = {"student": options.student or None, **measure(Store(options.store), tasks, student)}
    if options.json:
        print(json.dumps(result))
    else:
        Console(width=100).print(table(result))


if __name__ == "__main__":
    main()
