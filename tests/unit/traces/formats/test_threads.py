"""Where every turn is a trace: what the user said to an answer stands at the end of the trace that gave it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from postgrad.signals.error_sites.sites import find_sites
from postgrad.traces.formats.otel.reader import OTelGenAI
from postgrad.traces.records import ReadResult
from unit.traces.formats import service_files as files

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def says(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "content": words}


def turns(tmp_path: Path, *talks: list[dict[str, Any]]) -> ReadResult:
    """Each talk is a trace of one call: all but its last message is the context, that is the answer."""
    documents = []
    for number, talk in enumerate(talks):
        own = {
            **CHAT,
            "gen_ai.input.messages": files.genai_messages(*talk[:-1]),
            "gen_ai.output.messages": files.genai_messages(talk[-1]),
        }
        text = json.dumps(files.otlp([(f"{number:016x}", "", "chat", number, own)]))
        documents.append(text.replace(files.TRACE, f"{number + 1:032x}"))
    return OTelGenAI().read(files.write(tmp_path / "o.jsonl", "".join(f"{text}\n" for text in documents)))


FIRST = [says("user", "How many orders?"), says("assistant", "There are 12.")]
SECOND = [*FIRST, says("user", "That's wrong, count the open ones only"), says("assistant", "7 are open.")]
THIRD = [*SECOND, says("user", "thanks"), says("assistant", "You are welcome.")]


def test_the_next_words_are_an_event_of_the_trace_they_are_about(tmp_path: Path) -> None:
    first, second, third = turns(tmp_path, FIRST, SECOND, THIRD).traces
    assert [event.text for event in first.events if event.before_step == 1] == [SECOND[2]["content"]]
    assert [event.text for event in second.events if event.before_step == 1] == ["thanks"]
    assert [event for event in third.events if event.before_step == 1] == []
    (site,) = find_sites(first)
    assert (site.verdict, site.step, site.record) == ("user_correction", 0, second.steps[0].records[0])
    assert find_sites(second) == []


def test_another_conversation_says_nothing_of_this_one(tmp_path: Path) -> None:
    """The same answer to another question, and a context that begins anew."""
    other = [says("user", "How many users?"), FIRST[1], says("user", "no, wrong"), says("assistant", "Sorry.")]
    first, *_ = turns(tmp_path, FIRST, other, [says("user", "no, wrong"), says("assistant", "What is?")]).traces
    assert [event for event in first.events if event.before_step == 1] == []


def test_an_answer_is_told_once_and_by_the_first_that_goes_on(tmp_path: Path) -> None:
    again = [*FIRST, says("user", "and the closed ones?"), says("assistant", "5.")]
    first, *_ = turns(tmp_path, FIRST, SECOND, again).traces
    assert [event.text for event in first.events if event.before_step == 1] == [SECOND[2]["content"]]
