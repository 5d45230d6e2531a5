"""Corrections of served answers: from the endpoint, or the command, through ingest to a pair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from postgrad.core.errors import DataError
from postgrad.serve.corrections import Correction, correct
from postgrad.serve.log import append_line
from postgrad.serve.scripted import ScriptedEngine
from postgrad.serve.server import Listening, Running, serving
from postgrad.signals.rows.human import corrections_of
from postgrad.signals.rows.user_rows import build_corrections
from postgrad.traces.capture import exchange
from postgrad.traces.readers import read

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "weather in Rome?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@contextmanager
def served(folder: Path, said: str = "It is sunny.") -> Iterator[tuple[Running, httpx.Client]]:
    with (
        serving(ScriptedEngine(lambda messages: [said]), Listening(folder)) as running,
        httpx.Client(verify=False) as client,
    ):
        yield running, client


def chat(client: httpx.Client, running: Running, **more: Any) -> str:
    body = {"model": "scripted", "messages": ASKED, **more}
    answer: dict[str, Any] = client.post(f"{running.address}/chat/completions", json=body).json()
    return str(answer["id"])


def test_a_correction_becomes_a_pair_with_provenance(tmp_path: Path) -> None:
    with served(tmp_path) as (running, client):
        first = chat(client, running, tools=[WEATHER])
        right = {"tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Rome"}}}]}
        body = {"id": first, "message": right, "reason": "look it up", "by": "ada"}
        told = client.post(f"{running.address}/corrections", json=body)
    assert (told.status_code, told.json()["by"]) == (201, "human:ada")
    (file,) = tmp_path.glob("*.jsonl")
    assert told.json() == {"object": "correction", "id": first, "by": "human:ada", "captured": str(file)}
    result = read(file)
    (trace,) = result.traces
    (step,) = trace.steps
    assert step.action.text == "It is sunny."  # what was served stays what was done
    (made,) = build_corrections(trace, ())
    assert made.record is not None
    assert made.record.action.tool_calls[0].arguments == {"city": "Rome"}
    assert made.record.rejected is not None
    assert made.record.rejected.text == "It is sunny."
    where = made.record.provenance
    assert (where.rule, where.teachers, where.why) == ("correction/1", ("human:ada",), "look it up")
    assert list(result.diagnostics) == []


def test_the_conversation_goes_on_and_the_right_answer_is_corrected(tmp_path: Path) -> None:
    """The same request was answered twice, the conversation went on from the second answer; the first is corrected."""
    with served(tmp_path, "one") as (running, client):
        first = chat(client, running)
    with served(tmp_path, "two") as (running, client):
        chat(client, running)
        messages = [*ASKED, {"role": "assistant", "content": "two"}, {"role": "user", "content": "and then?"}]
        chat(client, running, messages=messages)
        told = client.post(f"{running.address}/corrections", json={"id": first, "content": "three"})
    assert told.status_code == 201
    (file,) = tmp_path.glob("*.jsonl")
    (trace,) = read(file).traces
    assert [step.action.text for step in trace.steps] == ["two", "two"]
    (found,) = corrections_of(trace.steps[0])
    assert (found.action.text, found.corrected.text, found.who, found.why) == ("three", "one", "human", "")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"id": "chatcmpl-none", "content": "x"}, 404, "no answer with this id"),
        ({"content": "x"}, 400, "'id' must be a text"),
        ({"id": 5, "content": "x"}, 400, "'id' must be a text"),
        ({"id": "ID"}, 400, "give either"),
        ({"id": "ID", "content": "x", "message": {}}, 400, "give either"),
        ({"id": "ID", "content": "x", "why": "y"}, 400, "unknown field 'why'"),
        ({"id": "ID", "message": "x"}, 400, "must be a message"),
        ({"id": "ID", "message": {"role": "user", "content": "x"}}, 400, "none of an assistant"),
        ({"id": "ID", "content": " "}, 400, "says nothing and calls nothing"),
        ({"id": "ID", "content": "It  is sunny."}, 400, "what the served answer said"),
        ({"id": "ID", "message": {"tool_calls": [{}]}}, 400, "has no name"),
        ({"id": "ID", "message": {"tool_calls": [{"function": {"name": "weather", "arguments": "{"}}]}}, 400, "JSON"),
        ({"id": "ID", "message": {"tool_calls": [{"function": {"name": "wether"}}]}}, 400, "did not offer"),
        ({"id": "ID", "message": {"tool_calls": [{"function": {"name": "weather"}}]}}, 400, "do not fit"),
        ({"id": "ID", "content": "x", "reason": []}, 400, "'reason' must be a text"),
    ],
)
def test_what_is_no_correction_is_refused_and_not_written(
    tmp_path: Path, body: dict[str, Any], status: int, words: str
) -> None:
    request = {"model": "m", "messages": ASKED, "tools": [WEATHER]}
    message = {"role": "assistant", "content": "It is sunny."}
    line = exchange(request, {"id": "ID", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    file = tmp_path / "2026-01-01.jsonl"
    append_line(file, json.dumps(line).encode() + b"\n")
    before = file.read_bytes()
    with served(tmp_path) as (running, client):
        told = client.post(f"{running.address}/corrections", json=body)
    assert told.status_code == status, told.text
    assert words in told.json()["error"]["message"]
    assert file.read_bytes() == before


def test_torn_and_foreign_lines_are_passed_over_and_failed_calls_have_nothing_to_correct(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    failed = exchange({"messages": ASKED}, {"id": "FAILED", "error": {"message": "no"}})
    file.write_text(f'{{"request": {{}}, "response": {{"id": "ID"\n[1, "ID"]\n"ID"\n{json.dumps(failed)}\n')
    with pytest.raises(DataError, match="no answer with this id was captured"):
        correct(file, Correction("ID", {"content": "x"}))
    with pytest.raises(DataError, match="no answer to correct"):
        correct(file, Correction("FAILED", {"content": "x"}))
    with pytest.raises(DataError, match="cannot read"):
        correct(tmp_path / "nowhere.jsonl", Correction("ID", {"content": "x"}))
