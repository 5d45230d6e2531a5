"""Hints in layers: the cheapest that answers wins, none gives the answer away, and the gate measures them."""

from __future__ import annotations

from typing import get_args

import pytest

from postgrad.core.actor import Answer, Ask
from postgrad.core.message import Message, Text
from postgrad.core.record import Record
from postgrad.core.trace import Feedback, Trace
from postgrad.signals.error_sites.sites import Site, find_sites
from postgrad.signals.hints.difference import difference_hint
from postgrad.signals.hints.hinted import build_hinted
from postgrad.signals.hints.layers import ALL_LAYERS, Hints
from postgrad.signals.hints.siblings import Siblings
from postgrad.signals.hints.templates import TEMPLATES, fault_hint
from postgrad.signals.hints.writer import HintWriter, short
from postgrad.signals.words.faults import Fault, FaultKind
from postgrad.teachers.replay import ReplayedStep, TeacherAnswer
from postgrad.teachers.scripted import ScriptedActor
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, bash, call

ROME, OSLO = (act(call("get_weather", {"city": city})) for city in ("Rome", "Oslo"))

NOT_SO = "The command would not do"


def test_every_kind_of_fault_has_a_template() -> None:
    kinds = get_args(FaultKind)
    assert set(TEMPLATES) == set(kinds)
    assert len(kinds) >= 12
    hints = [fault_hint(Fault(kind, "the detail", "n"), [WEATHER], call("get_weather", {})) for kind in kinds]
    assert len(set(hints)) == len(kinds)


@pytest.mark.parametrize(
    ("worse", "better", "hint"),
    [
        (act(Text("Sunny.")), ROME, "Do not answer in words: call get_weather."),
        (ROME, act(Text("No tool fits.")), "Do not call a tool here: answer in words."),
        (act(call("set_alarm", {"time": "7"})), ROME, "Another tool fits better here: call get_weather."),
        (OSLO, ROME, "The arguments of get_weather are not right: work out city anew."),
        (
            act(call("get_weather", {"city": "Rome", "zip": 1})),
            act(call("get_weather", {"city": "Rome", "days": 3})),
            "The arguments of get_weather are not right: give days as well; leave zip out.",
        ),
        (
            ROME,
            act(*ROME.blocks, call("get_weather", {"city": "Bern"}, "2")),
            "The number of calls is not right: 2 are needed here.",
        ),
        (act(call("get_weather", "{")), ROME, "Write the arguments of get_weather as one valid JSON object."),
        (
            act(bash("git push")),
            act(bash("git push -u origin main")),
            "The command would not do: keep git, but mind its options and operands.",
        ),
        (
            act(bash("cat a")),
            act(bash("grep -n x a")),
            "The command would not do: another one is needed here, with grep.",
        ),
        (ROME, ROME, None),
        (act(Text("a")), act(Text("b")), None),
    ],
)
def test_the_difference_without_the_answer(worse: Message, better: Message, hint: str | None) -> None:
    assert difference_hint(worse, better) == hint


def test_a_hint_that_would_hold_a_value_of_the_answer_is_none() -> None:
    """The program's name is a value of its own here."""
    assert difference_hint(act(bash("cat a")), act(bash("whoami"))) is None


def silent(*, recovered: bool) -> Trace:
    """A call that failed without a word, and one that worked."""
    builder = TraceBuilder("go", task_id="task-1").step(act(bash("frob all", "c0")), [("", True)])
    if recovered:
        builder.step(act(bash("frob -j1 all", "c1")), [("done", False)])
    return builder.build("run")


def site_of(trace: Trace) -> Site:
    return find_sites(trace)[0]


def replayed(trace: Trace, action: Message) -> dict[tuple[str, int], ReplayedStep]:
    said = {name: TeacherAnswer(Answer(action, name), "script") for name in ("a", "b")}
    step = ReplayedStep(trace.id, 0, Ask(trace.context(trace.steps[0])), trace.steps[0].action, said)
    return {(trace.id, 0): step}


def found(hints: Hints, trace: Trace) -> tuple[str, str] | None:
    hint = hints.find(site_of(trace), trace)
    return None if hint is None else (hint.layer, hint.text)


def test_the_first_layer_that_answers_wins_and_the_order_is_fixed() -> None:
    trace = silent(recovered=True)
    sibling = TraceBuilder("go", task_id="task-1").step(act(bash("frob")), [("ok", False)])
    sibling.step(act(Text("Done.")), feedback=[Feedback("reward", 1.0)])
    writer = HintWriter(ScriptedActor("w", lambda ask: Message.of("assistant", "Build with one job.")))
    hints = Hints(
        ALL_LAYERS[::-1],
        replayed(trace, act(bash("ninja -v"))),
        writer=writer,
        siblings=Siblings([trace, sibling.build("other")]),
    )
    layers: list[str] = []
    told: list[str] = []
    for place in range(2, len(ALL_LAYERS)):
        here = Hints(ALL_LAYERS[place:], hints.replayed, writer=writer, siblings=hints.siblings)
        one = found(here, trace)
        assert one is not None
        layers.append(one[0])
        told.append(one[1])
    assert layers == ["recovery", "teacher", "writer", "sibling"]
    assert told[0] == "The command would not do: keep frob, but mind its options and operands."
    assert told[2] == "Build with one job."
    assert told[3].startswith("Another attempt came out well. The right call is Bash(")
    first = found(hints, trace)
    assert first is not None
    assert first[0] == "recovery"  # neither template nor environment have anything to say here


def test_a_layer_without_its_means_says_nothing() -> None:
    trace = silent(recovered=False)
    assert found(Hints(ALL_LAYERS), trace) is None
    assert [made.dropped for made in build_hinted(trace, find_sites(trace), Hints(ALL_LAYERS))] == ["no_hint"]


def test_the_answer_itself_is_told_on_request_alone() -> None:
    trace = silent(recovered=True)
    one = found(Hints(("recovery",), literal=True), trace)
    assert one == ("recovery", 'The right call is Bash({"command":"frob -j1 all"}).')


def test_a_sibling_is_another_run_that_came_out_well() -> None:
    right = [Feedback("verifier", 1.0)]
    good = TraceBuilder("weather in Rome?", [WEATHER]).step(ROME, [("20", False)], feedback=right).build("good")
    bad = TraceBuilder("weather in Rome?", [WEATHER]).step(OSLO, [("5", False)]).build("bad")
    siblings = Siblings([good, bad])
    assert siblings.action(bad, bad.steps[0]) == ROME
    assert siblings.action(good, good.steps[0]) is None
    assert siblings.path(bad) == ()


LONG = "word " * 119 + "end."  # 599 characters


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (" One. ", "One."),
        ("One. Two! Three? Four.", "One. Two!"),
        ("Use e.g. a flag. Then run v1.2 again. Stop.", "Use e.g. a flag. Then run v1.2 again."),
        ("一つ。二つ。三つ。", "一つ。 二つ。"),
        (LONG, LONG.strip()),
        (f"{LONG} {LONG}", None),
        ("", None),
        ("No end", "No end"),
    ],
)
def test_a_written_hint_has_at_most_two_sentences_and_600_characters(text: str, hint: str | None) -> None:
    assert short(text) == hint


def test_rows_say_which_layer_spoke_and_the_gate_drops_what_has_no_effect() -> None:
    trace = silent(recovered=True)
    sites = find_sites(trace)[:1]
    (made,) = build_hinted(trace, sites, Hints(("recovery",)))
    assert made.record is not None
    assert made.record.provenance.why == "tool_error; hint: recovery"
    seen: list[tuple[str | None, Message | None]] = []

    def gate(row: Record, better: Message | None) -> str | None:
        seen.append((row.hint, better))
        return "no_effect"

    assert [one.dropped for one in build_hinted(trace, sites, Hints(("recovery",)), gate=gate)] == ["no_effect"]
    assert seen == [(made.record.hint, act(bash("frob -j1 all", "c1")))]


def test_a_row_of_the_teachers_is_measured_by_their_action() -> None:
    trace = silent(recovered=False)
    hints = Hints(("teacher",), replayed(trace, act(bash("ninja -v"))))
    assert hints.better(site_of(trace), trace) == act(bash("ninja -v"))
    assert Hints().better(site_of(trace), trace) is None
