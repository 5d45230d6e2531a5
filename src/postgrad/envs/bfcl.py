"""BFCL v4 `simple_python` as an outside judge, read from the installed package `bfcl-eval`.

400 requests, one function offered each, graded by our AST grader, which agrees with BFCL's own checker. Only the data
files of the package are read; its modules, which import the software of every vendor, are not. Its schema dialect
("dict", "float", "tuple", "any") becomes JSON schema; dotted function names stay as they are.

A benchmark is never trained on: no split is a training split, and tasks carry no reference answer.
Berkeley Function-Calling Leaderboard: Patil et al., ICML 2025. Data: Apache-2.0.
Not covered: the other categories.
"""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postgrad.core.canonical import file_sha256
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.message import Message, Tool, ToolResult
from postgrad.core.task import Grade, Task
from postgrad.envs.function_calling.grader import VERSION, grade
from postgrad.envs.function_calling.results import respond

SPLIT = "simple_python"
INSTALL = "run: pip install --no-deps bfcl-eval==2026.3.23"
HASHES = {
    "BFCL_v4_simple_python.json": "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991",
    "possible_answer/BFCL_v4_simple_python.json": "90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc",
}
_DIALECT = {"dict": "object", "float": "number", "tuple": "array"}


@dataclass(frozen=True)
class Bfcl:
    """The benchmark as an environment for evaluation."""

    name: str = "bfcl"
    version: str = f"2026.3.23-{VERSION}"
    trainable: bool = False
    splits: tuple[str, ...] = (SPLIT,)
    training_splits: tuple[str, ...] = ()

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        """All 400 tasks in the benchmark's order, or `n` of them drawn by `seed`.

        Raises:
            ConfigError: another split, or `n` above 400.
            DataError: the package is not installed, or its data is not that of the pinned version.
        """
        if split != SPLIT:
            raise ConfigError("unknown split of bfcl", got=split, expected=SPLIT)
        questions, answers = (_rows(_data_file(name)) for name in HASHES)
        truth = {row["id"]: row["ground_truth"] for row in answers}
        tasks = [_task(row, truth[row["id"]]) for row in questions]
        if n is None:
            return tasks
        if n > len(tasks):
            raise ConfigError(f"bfcl/{SPLIT} has too few tasks", got=n, expected=f"<= {len(tasks)}")
        return random.Random(seed).sample(tasks, n)

    def grade(self, task: Task, message: Message) -> Grade:
        """Compare the calls of `message` to the possible answers."""
        return grade(task, message)

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        """Results as in `function_calling`: an error for what cannot be carried out, else a made-up one."""
        return respond(task.tools, message)


def json_schema(dialect: Mapping[str, Any]) -> dict[str, Any]:
    """Write a schema of BFCL's dialect as JSON schema; "any" becomes no type at all."""
    schema = {key: value for key, value in dialect.items() if key in ("description", "enum", "default", "required")}
    kind = dialect.get("type", "any")
    if kind != "any":
        schema["type"] = _DIALECT.get(kind, kind)
    if "properties" in dialect:
        schema["properties"] = {name: json_schema(inner) for name, inner in dialect["properties"].items()}
    if "items" in dialect:
        schema["items"] = json_schema(dialect["items"])
    return schema


def _task(row: Mapping[str, Any], truth: list[dict[str, Any]]) -> Task:
    messages = tuple(Message.of(turn["role"], turn["content"]) for turn in row["question"][0])
    tools = tuple(Tool(f["name"], f["description"], json_schema(f["parameters"])) for f in row["function"])
    return Task(f"bfcl/{row['id']}", messages, group=tools[0].name, tools=tools, expected=tuple(truth))


def _data_file(name: str) -> Path:
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("the data of BFCL is not installed", do=INSTALL)
    path = Path(spec.submodule_search_locations[0]) / "data" / name
    if not path.is_file() or file_sha256(path) != HASHES[name]:
        raise DataError("the installed bfcl-eval holds other data", got=str(path), do=INSTALL)
    return path


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
