"""Was the model trained on what it is asked? A score on known tasks is no measure of new ones, so it is said.

Two signs: the split is one that trainings draw from (the environment says so, or its name does), and the questions
stand word for word in the records of the model's training or of its ancestors', which the manifests name by path and
hash. It is a note and no error: to look at the fit of a training is legitimate.
Not covered: records that are gone or changed since, questions in other words (`data.overlap` finds those).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from postgrad.core.artifact import MANIFEST, read_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.core.words import counted
from postgrad.envs.environment import Environment
from postgrad.signals.rows.records import read_records

_SHORT = 16  # characters; "Hello" in two places is chance
_GENERATIONS = 16


class Asked(NamedTuple):
    """A benchmark with its tasks at hand."""

    environment: Environment
    split: str
    tasks: Sequence[Task]


def trained_on(model: Path, asked: Sequence[Asked]) -> list[str]:
    """What is known of `model` and the tasks, a sentence each.

    Args:
        model: the model's folder, if it is one; without a manifest no records are known.
        asked: what it is to be asked.
    """
    told = [sentence for one in asked if (sentence := _of_split(one))]
    questions = [{text for task in one.tasks if (text := _question(task.messages))} for one in asked]
    wanted = set().union(*questions)
    for owner, path in _records(model) if wanted else ():
        seen = wanted & {text for record in read_records(path) for text in _said(record.messages)}
        for one, own in zip(asked, questions, strict=True):
            if known := len(own & seen):
                what = f"{known} of {counted(len(own), 'question')} of {one.environment.name}/{one.split}"
                told.append(f"{what} stand in {path}, on which {owner} was trained")
    return told


def _of_split(one: Asked) -> str:
    name = f"{one.environment.name}/{one.split}"
    if one.split in one.environment.training_splits:
        held = [split for split in one.environment.splits if split not in one.environment.training_splits]
        do = f": for new ones take {' or '.join(held)}" if held else ""
        return f"{name} is a split that trainings draw from; a score on it says nothing of new tasks{do}"
    if "train" in re.split(r"[^a-z]+", one.split.lower()):
        return f"{name} is named like a split to train on; a score on it may say nothing of new tasks"
    return ""


def _records(model: Path) -> Iterator[tuple[str, Path]]:
    """The model or ancestor, and a file of records that it was trained on, as far as they are still what they were."""
    for _ in range(_GENERATIONS):
        if not (model / MANIFEST).is_file():
            return
        manifest = read_manifest(model)
        for name, sha256 in manifest.data.items():
            path = Path(name)
            if path.suffix == ".jsonl" and path.is_file() and file_sha256(path) == sha256 and _are_records(path):
                yield str(model), path
        model = Path(manifest.parent)


def _are_records(path: Path) -> bool:
    """A training on plain text has JSON lines, too."""
    try:
        next(read_records(path), None)
    except DataError:
        return False
    return True


def _question(messages: Sequence[Message]) -> str:
    said = _said(messages)
    return said[-1] if said else ""


def _said(messages: Sequence[Message]) -> list[str]:
    """What users said, without what white space and case differ in."""
    texts = (" ".join(message.text.split()).lower() for message in messages if message.role == "user")
    return [text for text in texts if len(text) >= _SHORT]
