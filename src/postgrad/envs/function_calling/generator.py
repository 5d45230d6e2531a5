"""Tasks from the function tables: an endless deterministic stream per split and seed.

Rounds over all functions of the split, each round in its own random order, one request per function and round. Per
task a quarter offer one or two siblings of the same domain as distractors, and about one in twelve asks for something
that the offered tool cannot do; there, the right answer is text without a call. `shared_stream` deals the tools out in
threes instead, and every tool of a list is asked for in turn: a forest computes such a list once.

The split is by domain, so no function and no phrasing is on two sides. Names and places come from pools that all
splits share: what is held out is the function, not the city. Irrelevant requests come from another domain; that a tool
of another domain would do all the same (an oven's temperature, a temperature scale) is rare and not ruled out.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from postgrad.core.canonical import content_id
from postgrad.core.message import Message, ToolCall
from postgrad.core.task import Task
from postgrad.envs.function_calling.table import Function, load_domain

SPLITS: dict[str, tuple[str, ...]] = {
    "train": (
        *("banking", "biology", "calendar", "cooking", "devops", "education", "file_tools", "games", "gardening"),
        *("geometry", "history", "investing", "jobs", "languages", "medicine", "messaging", "music", "number_theory"),
        *("physics", "shopping", "smart_home", "text_tools", "transport", "travel", "unit_conversion", "weather"),
    ),
    "validation": ("automotive", "energy", "photography"),
    "heldout": ("art", "astronomy", "chemistry", "fitness", "law", "real_estate", "sport", "statistics"),
}
IRRELEVANT_SHARE = 0.08
CROWDED_SHARE = 0.25
SHARED_TOOLS = 3
REFUSALS = (
    "I cannot do that with the tools I have: {name} does not cover this request.",
    "None of the available tools can help with that. {name} is for something else.",
    "That is outside of what {name} can do, so I did not call it.",
)


def split_functions(split: str) -> tuple[Function, ...]:
    """All functions of a split, domain by domain."""
    return tuple(function for domain in SPLITS[split] for function in load_domain(domain))


def stream(split: str, seed: int) -> Iterator[Task]:
    """Tasks with different ids, the same ones for the same split and seed; ends when the tables have no more."""
    functions = split_functions(split)

    def one_round(number: int) -> Iterator[Task]:
        for function in random.Random(f"{split}/{seed}/{number}").sample(functions, len(functions)):
            yield make_task(function, functions, random.Random(f"{split}/{seed}/{number}/{function.name}"))

    return _different(one_round)


def shared_stream(split: str, seed: int) -> Iterator[Task]:
    """Like `stream`, but in lists of `SHARED_TOOLS` tools of one domain, and each of a list is asked for in turn.

    Every round deals the domains out anew; what is left over of a domain makes a shorter list.
    """
    functions = split_functions(split)

    def one_round(number: int) -> Iterator[Task]:
        rng = random.Random(f"{split}/{seed}/{number}/shared")
        lists = []
        for domain in SPLITS[split]:
            dealt = rng.sample(load_domain(domain), len(load_domain(domain)))
            lists += [tuple(dealt[start : start + SHARED_TOOLS]) for start in range(0, len(dealt), SHARED_TOOLS)]
        for offered in rng.sample(lists, len(lists)):
            yield from (make_task(function, functions, rng, offered) for function in offered)

    return _different(one_round)


def _different(one_round: Callable[[int], Iterator[Task]]) -> Iterator[Task]:
    """The tasks of round after round, each once, until a round brings none."""
    seen: set[str] = set()
    for number in itertools.count():
        before = len(seen)
        for task in one_round(number):
            if task.id not in seen:
                seen.add(task.id)
                yield task
        if len(seen) == before:
            return


def make_task(
    function: Function, functions: Sequence[Function], rng: random.Random, offered: tuple[Function, ...] = ()
) -> Task:
    """One task that wants `function`, or at times none, under `offered`; without it, `rng` chooses siblings too."""
    if rng.random() < IRRELEVANT_SHARE:
        return _irrelevant(function, offered or (function,), functions, rng)
    request, given = ask_for(function, rng)
    if not offered:
        # siblings depend on the function alone, so that its crowded tasks share one list and thus one prompt prefix
        offered = _crowd(function, functions) if rng.random() < CROWDED_SHARE else (function,)
    call = ToolCall.from_raw(id="call_0", name=function.name, raw=json.dumps(given, ensure_ascii=False))
    return _task(function, offered, request, (_acceptable(function, given),), Message("assistant", (call,)))


def ask_for(function: Function, rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A request for `function` and the arguments that it states, in the order of the parameters."""
    kinds = {p.name: p.kind for p in function.parameters}
    phrase = rng.choice(function.phrases)
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        value = kind.draw(rng)
        while isinstance(value, str) and value in values.values():  # a trip from Paris to Paris
            value = kind.draw(rng)
        values[name] = value
    text, given = phrase.say(kinds, values, rng)
    return text[0].upper() + text[1:], {name: given[name] for name in kinds if name in given}


def _acceptable(function: Function, given: dict[str, Any]) -> dict[str, Any]:
    """BFCL's form of an answer: per argument the acceptable values; an empty string means that it may be left out."""
    acceptable: dict[str, list[Any]] = {}
    for parameter in function.parameters:
        default = [] if parameter.default is None else [parameter.default]
        if parameter.name not in given:
            acceptable[parameter.name] = [*default, ""]
        else:
            value = given[parameter.name]
            acceptable[parameter.name] = [value, ""] if [value] == default else [value]
    return {function.name: acceptable}


def _crowd(function: Function, functions: Sequence[Function]) -> tuple[Function, ...]:
    rng = random.Random(function.name)
    siblings = [other for other in functions if other.domain == function.domain and other is not function]
    offered = [function, *rng.sample(siblings, min(rng.randint(1, 2), len(siblings)))]
    rng.shuffle(offered)
    return tuple(offered)


def _irrelevant(
    function: Function, offered: tuple[Function, ...], functions: Sequence[Function], rng: random.Random
) -> Task:
    other = rng.choice([f for f in functions if f.domain != function.domain])
    request, _ = ask_for(other, rng)
    refusal = rng.choice(REFUSALS).format(name=function.name)
    return _task(function, offered, request, (), Message.of("assistant", refusal))


def _task(
    function: Function, offered: tuple[Function, ...], request: str, expected: tuple[dict[str, Any], ...], gold: Message
) -> Task:
    names = [f.name for f in offered]
    return Task(
        id=f"function_calling/{function.name}/{content_id([names, request], length=10)}",
        messages=(Message.of("user", request),),
        group=function.name,
        tools=tuple(f.tool for f in offered),
        expected=expected,
        reference=gold,
    )
