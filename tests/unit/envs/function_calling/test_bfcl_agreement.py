"""Our grader against BFCL's own checker, on every simple_python item: possible answers and mutated calls.

The checker imports the software of every vendor through one module of model configurations, so that module is
replaced by an empty table before the import. Function names keep their dots in both.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Message, ToolCall
from postgrad.core.task import Task
from postgrad.envs.bfcl import Bfcl
from postgrad.envs.function_calling import grade

Call = tuple[str, dict[str, Any]]
Oracle = Callable[[Task, Call], bool]


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return Bfcl().tasks("simple_python")


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    """Whether `bfcl_eval` accepts a call to the item's function."""

    class Keep:
        underscore_to_dot = False

    class Models(dict[str, type]):
        def __missing__(self, key: str) -> type:
            return Keep

    stub = types.ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = Models()  # type: ignore[attr-defined]
    sys.modules[stub.__name__] = stub
    import bfcl_eval
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    path = Path(bfcl_eval.__path__[0]) / "data" / "BFCL_v4_simple_python.json"
    functions = {f"bfcl/{row['id']}": row["function"] for row in map(json.loads, path.read_text().splitlines())}

    def accepts(task: Task, call: Call) -> bool:
        answers = [dict(answer) for answer in task.expected]
        result = ast_checker(functions[task.id], [{call[0]: call[1]}], answers, Language.PYTHON, "simple_python", "any")
        return bool(result["valid"])

    yield accepts
    del sys.modules[stub.__name__]


def ours(task: Task, call: Call) -> bool:
    written = ToolCall.from_raw(id="call_0", name=call[0], raw=json.dumps(call[1]))
    return grade(task, Message("assistant", (written,))).score == 1.0


def first_answer(task: Task) -> Call:
    """The first possible answer, as BFCL writes it: arguments that may be left out are left out."""
    ((name, acceptable),) = task.expected[0].items()
    return name, {key: plain(values[0]) for key, values in acceptable.items() if values and values[0] != ""}


def plain(value: Any) -> Any:
    """An acceptable value as an argument: objects list acceptable values per key."""
    if isinstance(value, dict):
        options = {key: inner[0] if isinstance(inner, list) and inner else inner for key, inner in value.items()}
        return {key: inner for key, inner in options.items() if inner != ""}
    return [plain(item) for item in value] if isinstance(value, list) else value


def other_values(value: Any) -> Iterator[Any]:
    """Values near `value`: right ones in other clothes, wrong ones, wrong types."""
    yield None
    if isinstance(value, bool):
        yield from (not value, int(value), str(value))
    elif isinstance(value, (int, float)):
        yield from (value + 1, float(value), int(value), -value, str(value), value == 1, [value])
    elif isinstance(value, str):
        yield from (value.upper(), f" {value}. ", value.replace(" ", "_"), value.replace("'", '"'), value + "x", "")
        yield from (value.replace("-", "/"), [value], 7)
    elif isinstance(value, list):
        yield from (value[::-1], value[:-1], [*value, *value[:1]], [], [str(v) for v in value], json.dumps(value))
        yield [float(v) if type(v) is int else v for v in value]
        yield [int(v) if type(v) is float else v for v in value]
        yield [v.upper() + " " if isinstance(v, str) else v for v in value]
        yield [[v] for v in value]
    elif isinstance(value, dict):
        yield from ({**value, "extra": 1}, {}, json.dumps(value), [value])
        for key, inner in value.items():
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: other} for other in other_values(inner))


def mutations(call: Call) -> Iterator[Call]:
    name, arguments = call
    yield from ((f"{name}_x", arguments), (name.upper(), arguments), (name, {}), (name, {**arguments, "extra": 1}))
    for key, value in arguments.items():
        yield name, {k: v for k, v in arguments.items() if k != key}
        yield name, {**{k: v for k, v in arguments.items() if k != key}, f"{key}_": value}
        yield from ((name, {**arguments, key: other}) for other in other_values(value))


def allowed(task: Task) -> Iterator[Call]:
    """Every listed acceptable value, one at a time."""
    name, arguments = first_answer(task)
    for key, values in task.expected[0][name].items():
        yield from ((name, {**arguments, key: plain(value)}) for value in values)


def test_the_possible_answers_are_graded_alike(tasks: list[Task], oracle: Oracle) -> None:
    """BFCL's checker takes 399 of the 400 first answers; simple_python_200 leaves out what its schema requires."""
    calls = [(task, first_answer(task)) for task in tasks]
    assert len(calls) == 400
    verdicts = [oracle(task, call) for task, call in calls]
    assert [ours(task, call) for task, call in calls] == verdicts
    assert sum(verdicts) == 399


def test_mutated_calls_are_graded_alike(tasks: list[Task], oracle: Oracle) -> None:
    """Complete agreement; both verdicts must occur often, else agreement would mean little."""
    accepted = rejected = 0
    for task in tasks:
        for call in [*mutations(first_answer(task)), *allowed(task)]:
            verdict = oracle(task, call)
            assert ours(task, call) == verdict, f"{task.id}: BFCL says {verdict} to {call}, expected {task.expected}"
            accepted += verdict
            rejected += not verdict
    assert accepted > 4000
    assert rejected > 8000
