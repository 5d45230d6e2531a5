"""The generated tasks: counts, splits, determinism, and that the gold answers are right."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

from postgrad.core.canonical import content_id
from postgrad.core.errors import ConfigError
from postgrad.core.message import Message
from postgrad.core.task import Task
from postgrad.data import overlap
from postgrad.envs.bfcl import Bfcl
from postgrad.envs.function_calling import FunctionCalling, grade
from postgrad.envs.function_calling.generator import SPLITS, ask_for, split_functions, stream
from postgrad.envs.function_calling.phrase import parse_phrase
from postgrad.envs.function_calling.results import respond
from postgrad.envs.function_calling.values import parse_kind

ENVIRONMENT = FunctionCalling()


def wrong_twin(task: Task) -> Task:
    """The same request where every acceptable value has another sign or text."""
    changed = {
        name: {key: [f"{value}~no" for value in values] for key, values in arguments.items()}
        for expected in task.expected
        for name, arguments in expected.items()
    }
    return Task(task.id, task.messages, task.group, task.tools, (changed,))


def test_there_are_hundreds_of_functions_in_many_domains() -> None:
    names = [function.name for split in SPLITS for function in split_functions(split)]
    assert len(names) == len(set(names)) >= 300
    assert sum(len(domains) for domains in SPLITS.values()) >= 24
    assert len(SPLITS["heldout"]) >= 6
    assert len(split_functions("train")) >= 200


def test_no_function_or_phrasing_is_on_two_sides() -> None:
    """Domains are disjoint, and so are function names and phrasings: a phrasing stands with its function."""
    for one, two in itertools.combinations(SPLITS, 2):
        assert not set(SPLITS[one]) & set(SPLITS[two])
        for attribute in ("name", "phrases", "description"):
            sides = [{str(getattr(f, attribute)) for f in split_functions(split)} for split in (one, two)]
            assert not sides[0] & sides[1], attribute
    tools = [{tool.name for task in ENVIRONMENT.tasks(s, 1000) for tool in task.tools} for s in ("train", "heldout")]
    assert not tools[0] & tools[1]


@pytest.mark.parametrize("split", SPLITS)
def test_the_gold_answers_are_right_and_fit_their_schemas(split: str) -> None:
    """A thousand tasks a split; and the grader does not say yes to everything: with other values it says no."""
    for task in ENVIRONMENT.tasks(split, 1000):
        assert task.reference is not None
        assert grade(task, task.reference).score == 1.0, task
        assert not any(result.is_error for result in respond(task.tools, task.reference)), task
        if task.expected:
            assert grade(wrong_twin(task), task.reference).score == 0.0, task


def test_shares_of_irrelevant_and_crowded_tasks() -> None:
    """8 % irrelevant, 25 % of the others crowded: over 3000 tasks within four standard errors.

    sqrt(0.08 * 0.92 / 3000) = 0.005 and sqrt(0.23 * 0.77 / 3000) = 0.0077, with 0.25 * 0.92 = 0.23.
    """
    tasks = ENVIRONMENT.tasks("train", 3000)
    assert sum(not task.expected for task in tasks) / 3000 == pytest.approx(0.08, abs=0.02)
    assert sum(len(task.tools) > 1 for task in tasks) / 3000 == pytest.approx(0.23, abs=0.031)
    assert all(len(task.tools) <= 3 for task in tasks)


def test_tasks_are_stable() -> None:
    """Same arguments, same tasks; more tasks begin with the fewer; ids are unique and mean their content."""
    tasks = ENVIRONMENT.tasks("train", 700, 3)
    assert tasks == ENVIRONMENT.tasks("train", 700, 3)
    assert tasks[:100] == ENVIRONMENT.tasks("train", 100, 3)
    assert len({task.id for task in tasks}) == 700
    known = {task.id: task for task in tasks}
    others = ENVIRONMENT.tasks("train", 700, 4)
    assert others != tasks
    for task in others:
        if task.id in known:
            assert (task.messages, task.tools) == (known[task.id].messages, known[task.id].tools)


def test_the_stream_is_pinned() -> None:
    """Any change of tables or stream changes every experiment, so it must come with a new `VERSION` of the tasks."""
    tasks = [msgspec.to_builtins(ENVIRONMENT.tasks(split, 400)) for split in SPLITS]
    assert (ENVIRONMENT.version, content_id(tasks)) == ("2", "1f7be9c4c1db5326")


def test_a_round_covers_all_functions() -> None:
    functions = len(split_functions("heldout"))
    tasks = list(itertools.islice(stream("heldout", 0), functions))
    assert len({task.group for task in tasks}) == functions


def test_shared_lists_are_asked_for_tool_by_tool() -> None:
    """One round: every function of the split once, in runs under one list of at most three tools of its own domain."""
    functions = split_functions("train")
    tasks = ENVIRONMENT.tasks("train_shared", len(functions))
    assert sorted(task.group for task in tasks) == sorted(function.name for function in functions)
    domain = {function.name: function.domain for function in functions}
    for tools, run in itertools.groupby(tasks, key=lambda task: tuple(tool.name for tool in task.tools)):
        assert [task.group for task in run] == list(tools)
        assert len(tools) <= 3
        assert len({domain[name] for name in tools}) == 1
    wanted = [task for task in tasks if task.expected]
    assert all(list(task.expected[0]) == [task.group] for task in wanted)
    assert 0.85 < len(wanted) / len(tasks) < 0.98
    assert [task.id for task in tasks[:61]] == [task.id for task in ENVIRONMENT.tasks("train_shared", 61)]


def test_the_request_shows_every_argument() -> None:
    """Text arguments of gold calls stand in the request, by their words or as they are; numbers too, 5% for 0.05."""
    for function in split_functions("train") + split_functions("heldout"):
        rng = random.Random(function.name)
        for _ in range(5):
            text, given = ask_for(function, rng)
            kinds = {p.name: p.kind for p in function.parameters}
            for name, value in given.items():
                styles = ("", "words", ",", "iso", "list")
                shown = {kinds[name].show(value, style).lower() for style in styles}
                implied = isinstance(value, bool)  # "non-stop only" is true without a word of its own
                assert implied or any(words in text.lower() for words in shown), (function.name, text, name, value)


def test_no_overlap_with_the_outside_judge() -> None:
    """No function name, no eight words in a row, no near-duplicate in common with BFCL simple_python."""
    benchmark = Bfcl().tasks("simple_python")
    for split in (*SPLITS, "train_shared"):
        report = overlap(ENVIRONMENT.tasks(split, 2000), benchmark, ngram=8)
        assert report.clean, report.findings[:5]


def test_an_unknown_split_is_told() -> None:
    known = "train, validation, heldout, train_shared, heldout_irrelevant"
    with pytest.raises(ConfigError, match=f"got 'test'; expected one of {known}"):
        ENVIRONMENT.tasks("test")


def test_phrases() -> None:
    """One phrasing by hand: `days` is a word, `fast` is implied by the optional part or left to its default."""
    kinds = {"days": parse_kind("int 2..9", {}), "fast": parse_kind("bool", {})}
    phrase = parse_phrase("In {days:words} days[, quickly{fast=true}].")
    said = {phrase.say(kinds, {"days": 3, "fast": False}, random.Random(seed))[0] for seed in range(20)}
    assert said == {"In three days.", "In three days, quickly."}
    text, given = next(
        found for seed in range(20) if "quickly" in (found := phrase.say(kinds, {"days": 3}, random.Random(seed)))[0]
    )
    assert (text, given) == ("In three days, quickly.", {"days": 3, "fast": True})


@pytest.mark.parametrize(
    ("kind", "value", "style", "words"),
    [
        ("pct 1..12/0.5", 0.075, "", "7.5%"),
        ("int 1..9", 4, "words", "four"),
        ("int 1..90000", 12500, ",", "12,500"),
        ("num 0..5/0.1", 0.3, "", "0.3"),
        ("date", "2025-03-04", "", "March 4, 2025"),
        ("date", "2025-03-04", "iso", "2025-03-04"),
        ("one of dew_point, wind", "dew_point", "", "dew point"),
        ("word euros=EUR, yen=JPY", "JPY", "", "yen"),
        ("2-3 int 1..9", [4, 5, 6], "", "4, 5 and 6"),
        ("2-3 int 1..9", [4, 5], "list", "[4, 5]"),
        ("bool", True, "open|closed", "open"),
        ("bool", False, "open|closed", "closed"),
    ],
)
def test_values_and_their_words(kind: str, value: object, style: str, words: str) -> None:
    assert parse_kind(kind, {}).show(value, style) == words


def test_number_arrays_hold_no_whole_numbers() -> None:
    """See `_ListOf`: whole numbers among fractions would be graded by how they are written."""
    kind = parse_kind("3-5 num 1..9/0.5", {})
    drawn = [value for seed in range(50) for value in kind.draw(random.Random(seed))]
    assert all(isinstance(value, float) and value % 1 == 0.5 for value in drawn)


def test_silence_alone_scores_on_the_irrelevant_split_only() -> None:
    """Evaluation keeps the two apart: a model that never calls is right on all of one and none of the other."""
    silence = Message.of("assistant", "I cannot help with that.")
    for split, score in (("heldout_irrelevant", 1.0), ("heldout", 0.0), ("validation", 0.0)):
        assert {ENVIRONMENT.grade(task, silence).score for task in ENVIRONMENT.tasks(split, 24)} == {score}
    mixed = {ENVIRONMENT.grade(task, silence).score for task in ENVIRONMENT.tasks("train", 60)}
    assert mixed == {0.0, 1.0}
