"""One run in the form of every service and recorder: the same steps, and nobody takes another's file for its own."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.message import Message
from postgrad.core.trace import Step
from postgrad.traces import readers
from postgrad.traces.records import ReadResult, totals
from postgrad.traces.sources.head import Head
from unit.traces.formats import service_files as files

RUN = {"steps": 2, "tool_calls": 1, "tool_results": 1, "calls_without_result": 0, "flagged_errors": 0}
GENAI, PHOENIX = files.GENAI_SPANS, files.OPENINFERENCE_SPANS
CHAT_URL = "https://api.openai.com/v1/chat/completions"
FORMS: dict[str, tuple[str, str, str]] = {
    **{name: (name, *file) for name, file in files.FILES.items()},
    "har": ("http_log", "x.har", json.dumps(files.har(files.CHAT_REQUESTS, files.CHAT_RESPONSES, CHAT_URL), indent=1)),
    "claude-trace": ("http_log", "log.jsonl", files.jsonl(*files.CLAUDE_TRACE)),
    "chat, a document": ("openai_chat", "log.json", json.dumps(files.CHAT, indent=1)),
    "batch, one file": ("openai_chat", "batch.jsonl", files.jsonl(*files.BATCH_INPUT, *files.BATCH_OUTPUT)),
    "tempo": ("otel_genai", "t.json", json.dumps(files.tempo(GENAI))),
    "jaeger": ("otel_genai", "j.json", json.dumps(files.jaeger(GENAI))),
    "otlp, one line": ("otel_genai", "o.jsonl", files.jsonl(files.otlp(GENAI))),
    "console": ("otel_genai", "c.txt", "\n".join(json.dumps(span, indent=4) for span in files.console(GENAI))),
    "javascript": ("otel_genai", "js.json", json.dumps(files.javascript(GENAI))),
    "openinference in otlp": ("openinference", "o.json", json.dumps(files.otlp(PHOENIX), indent=1)),
    "openinference in jaeger": ("openinference", "j.json", json.dumps(files.jaeger(PHOENIX), indent=1)),
    "langsmith, lines": ("langsmith", "r.jsonl", files.jsonl(*files.LANGSMITH["post"], *files.LANGSMITH["patch"])),
    "mlflow, lines": ("mlflow", "m.jsonl", files.jsonl(files.MLFLOW)),
    "weave, a list": ("weave", "w.json", json.dumps(files.WEAVE, indent=1)),
    "langfuse, lines": ("langfuse", "l.jsonl", files.jsonl(*files.LANGFUSE["observations"])),
    "managed, recorded": (
        "anthropic_managed_agents",
        "m.jsonl",
        files.jsonl(*(["client.beta.sessions.events.stream", event] for event in files.MANAGED)),
    ),
}


def read(tmp_path: Path, form: str) -> ReadResult:
    _, name, text = FORMS[form]
    return readers.read(files.write(tmp_path / name, text))


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_run_gives_the_same_steps(tmp_path: Path, form: str) -> None:
    result = read(tmp_path, form)
    assert result.source.format == FORMS[form][0]
    (trace,) = result.traces
    assert totals([trace]) == RUN
    first, second = trace.steps
    (call,) = first.action.tool_calls
    assert (call.name, call.arguments) == ("weather", {"city": "Oslo"})
    assert [item.text for item in first.results] == ["Rain"]
    assert second.action.text == "It rains."
    said = [message for message in trace.context(second) if message.role != "system"]
    assert [message.role for message in said] == ["user", "assistant", "tool"]
    assert said[0].text == "Weather in Oslo?"
    assert said[1].tool_calls[0].id == said[2].tool_results[0].call_id == call.id == first.results[0].call_id
    assert [event.text for event in trace.events if event.kind == "user_text"] == ["Weather in Oslo?"]
    assert trace.result_records[call.id] >= 0


@pytest.mark.parametrize("form", FORMS)
def test_every_record_is_accounted_for(tmp_path: Path, form: str) -> None:
    result = read(tmp_path, form)
    assert sum(result.uses.values()) == len(result.records)
    assert result.uses["step"] >= 2
    assert not set(result.uses) & {"", "unknown", "unreadable"}
    assert result.diagnostics == ()


@pytest.mark.parametrize("form", [form for form in FORMS if not FORMS[form][0].startswith("anthropic_managed")])
def test_system_prompt_tools_and_level(tmp_path: Path, form: str) -> None:
    (trace,) = read(tmp_path, form).traces
    exact = FORMS[form][0] in ("openai_chat", "openai_responses", "anthropic_messages", "http_log", "litellm")
    for step in trace.steps:
        assert trace.context(step)[0] == _same(trace.context(step)[0], Message.of("system", "Be brief."))
        assert [tool.name for tool in step.request.tools] == ["weather"]
        assert step.request.tools[0].parameters == files.SCHEMA
        assert (step.request.fidelity, step.request.missing) == ("exact" if exact else "exact-messages", ())


def _same(message: Message, other: Message) -> Message:
    """`message` where it says what `other` says, wherever it was read from."""
    return message if message.id == other.id else other


def test_one_trace_of_spans_has_one_id_in_all_its_exports(tmp_path: Path) -> None:
    """W13: the same trace from a collector, Tempo, Jaeger, an SDK and Phoenix, ids in hexadecimal or base64."""
    forms = ["otel_genai", "tempo", "jaeger", "console", "javascript", "openinference", "openinference in otlp"]
    assert len({trace.id for form in forms for trace in read(tmp_path, form).traces}) == 1


def test_an_exchange_has_one_id_whoever_recorded_it(tmp_path: Path) -> None:
    forms = [
        "openai_chat",
        "har",
        "litellm",
        "batch, one file",
        "anthropic_messages",
        "claude-trace",
        "openai_responses",
    ]
    assert len({trace.id for form in forms for trace in read(tmp_path, form).traces}) == 1


@pytest.mark.parametrize("form", FORMS)
def test_nobody_takes_another_format_for_its_own(tmp_path: Path, form: str) -> None:
    kind, name, text = FORMS[form]
    head = Head(files.write(tmp_path / name, text))
    assert [other for other in files.FILES if readers.reader(other).recognises(head)] == [kind]


LOOK_ALIKES: dict[str, Any] = {
    "a chat without answers (training data)": {"messages": [files.USER, files.SAID], "tools": []},
    "embeddings": {
        "request": {"model": "m", "input": "x"},
        "response": {"object": "list", "data": [{"embedding": [1]}]},
    },
    "some web API": {"request": {"method": "GET", "url": "https://x/users", "body": None}, "response": {"status": 200}},
    "a web API with messages": {"request": {"messages": ["a", "b"]}, "response": {"ok": True}},
    "token counting": {
        "request": {"method": "POST", "path": "/v1/messages/count_tokens", "body": {"messages": [files.USER]}},
        "response": {"status": 200, "body": {"input_tokens": 3}},
    },
    "spans of a web server": files.otlp([(files.ROOT, "", "GET /", 0, {"http.request.method": "GET"})]),
    "spans of a database in jaeger": files.jaeger([(files.ROOT, "", "SELECT", 0, {"db.system": "postgresql"})]),
    "log records of a web server": {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [{"body": {"stringValue": "GET /"}, "attributes": []}]}]}]
    },
    "braintrust": {
        **{"id": "b", "span_id": "s", "root_span_id": "s", "input": [files.USER], "output": [files.SAID]},
        **{"span_attributes": {"type": "llm", "name": "x"}, "metrics": {}, "scores": {}},
    },
    "a GitHub-like event": {"type": "SPAN", "id": "1", "name": "x"},
    "a job with inputs": {"id": "j", "run_type": "nightly", "inputs": {}, "outputs": {}, "trace_id": "x"},
    "an airflow task": {"id": "1", "op_name": "BashOperator", "inputs": {}},
    "a schema": {"$schema": "https://json-schema.org", "title": "InputMessages", "type": "array", "items": {}},
    "a list of numbers": [1, 2, 3],
    "a claude code row": {
        **{"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s"},
        "message": {"role": "user", "content": "hi"},
    },
    "a chat session with messages and ids": {
        "sessionId": "s",
        "messages": [{"role": "user", "text": "hi"}],
        "response": None,
    },
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
@pytest.mark.parametrize("indent", [None, 1])
def test_look_alikes_are_refused(tmp_path: Path, name: str, indent: int | None) -> None:
    path = files.write(tmp_path / "x.json", json.dumps(LOOK_ALIKES[name], indent=indent) + "\n")
    assert [kind for kind in files.FILES if readers.reader(kind).recognises(Head(path))] == []


ODD: list[Any] = [
    *(None, True, 0, -1, 10**30, float("nan"), "", "x", "{", "[]", '{"a":', "\ud800", '"{\\"a\\": 1}"'),
    *(
        [],
        {},
        [[]],
        [None],
        [1],
        ["x"],
        [{}],
        {"a": 1},
        {"type": "text"},
        {"role": "user"},
        {"role": 5},
        {"content": {}},
    ),
]


@pytest.mark.parametrize("form", FORMS)
def test_odd_values_anywhere_are_no_crash_and_every_record_stays_accounted_for(tmp_path: Path, form: str) -> None:
    """Whatever one value is replaced by, the read ends; a cut file gives what is whole."""
    chance = random.Random(form)
    kind, name, text = FORMS[form]
    whole = (
        json.loads(text) if text.count("\n}\n{") == 0 and _is_json(text) else [json.loads(row) for row in _rows(text)]
    )
    for _ in range(8):
        value = _replaced(whole, chance)
        lines = isinstance(value, list) and chance.random() < 0.5
        odd = files.jsonl(*value) if lines else json.dumps(value)
        odd = odd[: chance.randrange(len(odd) + 1)] if chance.random() < 0.3 else odd
        if odd.lstrip()[:1] not in ("{", "["):
            continue
        path = files.write(tmp_path / name, odd)
        for other in files.FILES:
            readers.reader(other).recognises(Head(path))
        result = readers.read(path, kind)
        assert all(record.used_as for record in result.records)
        for trace in result.traces:
            assert all(_whole(step) and trace.context(step) is not None for step in trace.steps)


def _whole(step: Step) -> bool:
    return step.action is not None and len(step.results) <= len(step.action.tool_calls)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _rows(text: str) -> list[str]:
    return text.replace("\n}\n{", "\n}\x00{").split("\x00") if "\n}\n{" in text else text.splitlines()


def _replaced(value: Any, chance: random.Random) -> Any:
    """A copy with one value, anywhere, replaced."""
    if isinstance(value, dict | list) and value and chance.random() < 0.85:
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
        copy[key] = _replaced(copy[key], chance)
        return copy
    return chance.choice(ODD)


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "otlp.json.gz"
    path.write_bytes(gzip.compress(FORMS["otel_genai"][2].encode()))
    assert totals(readers.read(path).traces) == RUN


@pytest.mark.parametrize("form", ["otel_genai", "langfuse", "langsmith", "mlflow", "har"])
def test_a_document_that_is_cut_gives_its_whole_records(tmp_path: Path, form: str) -> None:
    kind, name, text = FORMS[form]
    path = files.write(tmp_path / name, text[: int(len(text) * 0.7)])
    result = readers.read(path, kind)
    assert totals(result.traces)["steps"] >= 1
    assert any("stops in the middle" in note.what for note in result.diagnostics)
    assert sum(result.uses.values()) == len(result.records)


@pytest.mark.parametrize("form", ["openai_chat", "anthropic_messages", "weave", "openinference"])
def test_broken_lines_are_said_and_the_others_read(tmp_path: Path, form: str) -> None:
    kind, name, text = FORMS[form]
    lines = text.splitlines()
    broken = "\n".join([lines[0], '{"request": {"mess', "[1]", "", *lines[1:], lines[-1][:40]])
    result = readers.read(files.write(tmp_path / name, broken), kind)
    assert totals(result.traces) == RUN
    assert [note.line for note in result.diagnostics if note.line is not None] == [2, 3, len(lines) + 4]
    assert result.uses["unreadable"] == 3


@pytest.mark.parametrize("form", ["openai_chat", "otel_genai", "langfuse", "litellm", "openinference"])
def test_a_grown_file_keeps_its_trace_id(tmp_path: Path, form: str) -> None:
    """W6: the file as it was after the first step, and whole."""
    kind, name, text = FORMS[form]
    whole = readers.read(files.write(tmp_path / name, text))
    (trace,) = whole.traces
    shorter = {
        "openai_chat": files.jsonl(*files.CHAT[:1]),
        "litellm": files.jsonl(*files.LITELLM[:1]),
        "otel_genai": json.dumps(files.otlp(GENAI[:2])),
        "openinference": files.jsonl(*files.phoenix(PHOENIX[:2])),
        "langfuse": json.dumps({**files.LANGFUSE, "observations": files.LANGFUSE["observations"][:2]}),
    }[form]
    (before,) = readers.read(files.write(tmp_path / f"before-{name}", shorter), kind).traces
    assert (before.id, len(before.steps)) == (trace.id, 1)
    assert before.tool_calls - before.tool_results == 1
