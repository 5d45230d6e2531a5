"""Pairs and rows from what users put right: corrections, edits of edits, what was done after a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from postgrad.core.canonical import canonical_json
from postgrad.core.errors import DataError
from postgrad.core.message import Message, Text, ToolCall
from postgrad.core.trace import Candidate, Feedback, Step, Trace
from postgrad.signals.error_sites.sites import find_sites
from postgrad.signals.rows.human import (
    CORRECTED,
    CORRECTIONS,
    StoredCorrection,
    corrections_of,
    human_name,
    read_corrections,
    with_corrections,
)
from postgrad.signals.rows.imitation import build_taken
from postgrad.signals.rows.records import write_records
from postgrad.signals.rows.user_edits import edited_call
from postgrad.signals.rows.user_rows import build_corrected, build_corrections, build_refined
from unit.signals.traces_by_hand import WEATHER, TraceBuilder, act, bash, call

ROME, OSLO, BERN = (act(call("get_weather", {"city": city})) for city in ("Rome", "Oslo", "Bern"))
WHY = "I asked for Rome."


def corrected(*candidates: Candidate, feedback: tuple[Feedback, ...] = (), served: Message = OSLO) -> Trace:
    trace = TraceBuilder("weather in Rome?", [WEATHER]).step(served).build()
    (step,) = trace.steps
    return replace(trace, steps=(replace(step, candidates=(*step.candidates, *candidates), feedback=feedback),))


def human(action: Message, who: str = "ada") -> Candidate:
    return Candidate(action, chosen=False, teacher=human_name(who))


def test_a_correction_is_a_pair_with_who_and_why() -> None:
    trace = corrected(human(ROME), feedback=(Feedback("correction", None, WHY, "human:ada"),))
    (made,) = build_corrections(trace, find_sites(trace))
    assert made.record is not None
    assert (made.record.action, made.record.rejected, made.record.weight) == (ROME, OSLO, 1.0)
    assert made.record.messages == trace.context(trace.steps[0])
    where = made.record.provenance
    assert (where.rule, where.teachers, where.why, where.fidelity) == ("correction/1", ("human:ada",), WHY, "exact")


def test_the_last_of_several_corrections_by_one_human_counts() -> None:
    words = tuple(
        Feedback("correction", None, said, who) for said, who in [("a", "human"), ("c", "human"), ("b", "human:x")]
    )
    trace = corrected(human(BERN, ""), human(ROME, "x"), human(ROME, ""), feedback=words)
    found = corrections_of(trace.steps[0])
    assert [(one.action, one.who, one.why) for one in found] == [(ROME, "human", "c"), (ROME, "human:x", "b")]


def test_the_answer_that_is_meant_stands_before_its_correction() -> None:
    """The step was answered again, and Bern was taken; it is Oslo that was corrected."""
    mark = Candidate(OSLO, chosen=False, teacher=CORRECTED)
    trace = corrected(mark, human(ROME), served=BERN)
    (made,) = build_corrections(trace, ())
    assert made.record is not None
    assert made.record.rejected == OSLO


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (OSLO, "same_action"),
        (act(call("get_weather", {"town": "Rome"})), "against_schema"),
        (act(call("get_time", {})), "unknown_tool"),
        (act(Text(" ")), "empty"),
    ],
)
def test_corrections_that_cannot_be_learnt(action: Message, reason: str) -> None:
    assert [made.dropped for made in build_corrections(corrected(human(action)), ())] == [reason]


def test_teachers_are_no_humans_and_a_corrected_step_is_no_example() -> None:
    teacher = Candidate(ROME, chosen=False, teacher="humanoid")
    assert list(build_corrections(corrected(teacher), ())) == []
    assert [made.dropped for made in build_taken(corrected(human(ROME)), ())] == ["corrected"]


def test_a_verdict_triple_has_the_proposal_and_the_reason_in_its_context() -> None:
    trace = corrected(human(ROME), feedback=(Feedback("correction", None, WHY, "human:ada"),))
    (made,) = build_refined(trace, ())
    assert made.record is not None
    proposal, reason = made.record.messages[-2:]
    assert proposal == OSLO
    assert [(r.call_id, r.text, r.status) for r in reason.tool_results] == [("c0", WHY, "rejected")]
    assert (made.record.action, made.record.rejected) == (ROME, None)
    assert [one.dropped for one in build_refined(corrected(human(ROME)), ())] == ["no_reason"]
    (plain,) = build_corrected(trace, ())
    assert plain.record is not None
    assert (plain.record.messages, plain.record.action) == (trace.context(trace.steps[0]), ROME)
    assert plain.record.provenance.rule == "corrected/1"


def refused(*, second: ToolCall, works: bool = True) -> Trace:
    builder = TraceBuilder("push it")
    builder.step(act(bash("git push -f", "c0")), [("The user doesn't want to proceed.", True)], status="rejected")
    builder.event("user_text", "never force, use a branch")
    return builder.step(act(second), [("ok", False) if works else ("Exit code 1\nfatal: no", True)]).build()


def test_what_was_done_after_a_refusal_is_preferred_by_half() -> None:
    trace = refused(second=bash("git push origin fix", "c1"))
    made = list(build_corrections(trace, find_sites(trace)))
    (record,) = [one.record for one in made if one.record is not None]
    assert (record.action, record.rejected) == (act(bash("git push origin fix", "c1")), act(bash("git push -f", "c0")))
    assert (record.weight, record.provenance.rule, record.provenance.why) == (
        0.5,
        "redo/1",
        "never force, use a branch",
    )
    assert record.messages == trace.context(trace.steps[0])


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (refused(second=bash("git push origin fix", "c1"), works=False), "redone_without_success"),
        (refused(second=bash("git  push '-f'", "c1")), "same_action"),
        (refused(second=call("Read", {"file_path": "a"}, "c1")), "redone_otherwise"),
    ],
)
def test_refusals_that_teach_nothing(trace: Trace, reason: str) -> None:
    sites = [site for site in find_sites(trace) if site.kind == "reject"]
    assert [made.dropped for made in build_corrections(trace, sites)] == [reason]


DIFF = """--- a.py
+++ a.py
@@ -1,2 +1,2 @@
 def f():
-    return 1
+    return 2
@@ -9,1 +9,2 @@
 end
+# more
"""


def test_a_users_diff_is_put_into_the_calls_own_text() -> None:
    before = "# head\ndef f():\n    return 1\n\nx\nend"
    edited = edited_call(call("Write", {"file_path": "a.py", "content": before}), DIFF)
    assert edited is not None
    after = "# head\ndef f():\n    return 2\n\nx\nend\n# more"
    assert edited.arguments == {"file_path": "a.py", "content": after}
    assert edited.arguments_raw == canonical_json(edited.arguments)


@pytest.mark.parametrize(
    ("content", "diff"),
    [
        ("def f():\n    return 3\n\nend", DIFF),  # not there
        ("def f():\n    return 1\n\nend\ndef f():\n    return 1\n\n", DIFF),  # there twice
        ("a", "I would rather have b"),
        ("a", "@@ @@\n+b"),  # nowhere to put it
        ("a", "@@ -1 +1 @@\n a"),  # changes nothing
        ("a", ""),
    ],
)
def test_a_diff_that_does_not_fit_gives_nothing(content: str, diff: str) -> None:
    assert edited_call(call("Write", {"content": content}), diff) is None


def test_an_edited_edit_is_a_pair() -> None:
    said = f"The user made the following updates to your content:\n\n{DIFF}"
    write = call("write_to_file", {"path": "a.py", "content": "def f():\n    return 1\n\nend"})
    trace = TraceBuilder("write it").step(act(write), [(said, False)]).build()
    (made,) = build_corrections(trace, find_sites(trace))
    assert made.record is not None
    assert made.record.provenance.rule == "edit/1"
    assert made.record.rejected == act(write)
    assert made.record.action.tool_calls[0].arguments == {
        "path": "a.py",
        "content": "def f():\n    return 2\n\nend\n# more",
    }


def test_corrections_of_a_store_join_their_steps(tmp_path: Path) -> None:
    line = StoredCorrection("t", 0, ROME, "human:ada", WHY)
    write_records(tmp_path / CORRECTIONS, [line, replace(line, trace="other"), replace(line, step=7)])
    trace = TraceBuilder("weather in Rome?", [WEATHER]).step(OSLO).build()
    joined = with_corrections(trace, read_corrections(tmp_path)["t"])
    (step,) = joined.steps
    assert step.action == OSLO
    assert [(one.action, one.who, one.why) for one in corrections_of(step)] == [(ROME, "human:ada", WHY)]
    assert with_corrections(trace, []) is trace
    assert read_corrections(tmp_path / "nowhere") == {}
    (tmp_path / CORRECTIONS).write_text("{}\n")
    with pytest.raises(DataError, match="line 1 is no StoredCorrection"):
        read_corrections(tmp_path)


def test_an_unknown_context_gives_no_row() -> None:
    trace = corrected(human(ROME))
    blind: Step = replace(trace.steps[0], request=replace(trace.steps[0].request, fidelity="none"))
    for build in (build_corrections, build_corrected):
        assert [made.dropped for made in build(replace(trace, steps=(blind,)), ())] == ["context"]
