"""A note where the model may know the tasks, and none where it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from postgrad.core.artifact import Manifest, write_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.message import Message
from postgrad.core.record import Record
from postgrad.core.task import Task
from postgrad.envs.function_calling import FunctionCalling
from postgrad.evaluate.trained_on import Asked, trained_on
from postgrad.signals.rows.records import write_records


def task(question: str) -> Task:
    return Task(question, (Message.of("system", "Be brief."), Message.of("user", question)), question)


def asked(*questions: str, split: str = "heldout") -> list[Asked]:
    return [Asked(FunctionCalling(), split, [task(question) for question in questions])]


def artifact(folder: Path, parent: str, records: Sequence[str]) -> Path:
    """A model trained on rows that ask these questions."""
    folder.mkdir()
    rows = folder.with_suffix(".jsonl")
    write_records(rows, [Record((Message.of("user", one),), Message.of("assistant", "Yes.")) for one in records])
    (folder / "model.safetensors").write_bytes(b"1")
    write_manifest(folder, Manifest(parent=parent, method="sft", kind="merged", data={str(rows): file_sha256(rows)}))
    return folder


def test_questions_of_the_models_records_and_of_its_ancestors_are_counted(tmp_path: Path) -> None:
    """Three questions: one (in other case and spacing) is the child's, two are the parent's, "hello" is nobody's."""
    parent = artifact(tmp_path / "parent", "smollm2-135m", ["What is the time in Rome?", "Where is the station?"])
    child = artifact(tmp_path / "child", str(parent), ["what is the  time in rome?", "hello"])
    told = trained_on(
        child, asked("What is the time in Rome?", "Where is the station?", "hello", "Who wrote it, then?")
    )
    assert told == [
        f"1 of 3 questions of function_calling/heldout stand in {tmp_path}/child.jsonl, on which {child} was trained",
        f"2 of 3 questions of function_calling/heldout stand in {tmp_path}/parent.jsonl, on which {parent} was trained",
    ]


def test_records_that_changed_since_say_nothing(tmp_path: Path) -> None:
    model = artifact(tmp_path / "model", "smollm2-135m", ["What is the time in Rome?"])
    question = asked("What is the time in Rome?")
    assert len(trained_on(model, question)) == 1
    with (tmp_path / "model.jsonl").open("a") as stream:
        stream.write("\n")
    assert trained_on(model, question) == []


@pytest.mark.parametrize(("split", "told"), [("train", "trainings draw from"), ("heldout", "")])
def test_a_split_that_trainings_draw_from_is_told_whatever_the_model(split: str, told: str) -> None:
    notes = trained_on(Path("smollm2-135m"), asked("What is the time in Rome?", split=split))
    assert [told in note for note in notes] == ([True] if told else [])
    assert all("; a score on it says nothing of new tasks: for new ones take " in note for note in notes)


def test_a_split_may_be_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of the user's that names no splits to train on; "strained" is none."""
    monkeypatch.setattr(FunctionCalling, "training_splits", ())
    told = [bool(trained_on(Path("m"), asked("Which one is it?", split=name))) for name in ("train_a", "strained")]
    assert told == [True, False]
