"""`export`: a store in another form, the report of losses, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postgrad.traces import readers
from postgrad.traces.storage.store import Store
from postgrad.verbs.export import command

SECRET = "sk-proj-" + "a1B2" * 12
TALK = [
    {"role": "user", "content": f"Use the key {SECRET}."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "assistant", "content": "Done."},
]


def store(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text(json.dumps({"messages": TALK}) + "\n" + json.dumps({"messages": TALK[:2]}) + "\n")
    Store(folder / "store").add(readers.read(path))
    return folder / "store"


def run(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def told(*arguments: str | Path) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize(
    ("form", "name"), [("openai", "o.jsonl"), ("atif", "o.json"), ("sharegpt", "s.jsonl"), ("inspect", "o.eval")]
)
def test_the_store_leaves_without_secrets_and_comes_back(tmp_path: Path, form: str, name: str) -> None:
    """Two traces, three steps; the key is in both, so it is redacted at least twice."""
    out = tmp_path / name
    result = told(store(tmp_path), "--to", form, "-o", out)
    assert (result["traces"], result["steps"], result["rows"], result["evaluation_traces"]) == (2, 3, 2, 0)
    assert sum(result["redactions"].values()) >= 2
    assert SECRET.encode() not in out.read_bytes()
    assert sum(len(trace.steps) for trace in readers.read(out).traces) == 3


def test_what_was_lost_is_reported(tmp_path: Path) -> None:
    result = told(store(tmp_path), "--to", "openai", "-o", tmp_path / "o.jsonl")
    assert result["losses"] == {"calls without result": 1, "events": 2}
    _, text, _ = run(store(tmp_path), "--to", "openai", "-o", tmp_path / "o.jsonl")
    assert "calls without result" in text


def test_one_trace_alone(tmp_path: Path) -> None:
    folder = store(tmp_path)
    name = next(Store(folder).traces()).id
    assert told(folder, "--to", "atif", "-o", tmp_path / "o.json", "--trace", name)["traces"] == 1
    assert told(folder, "--to", "atif", "-o", tmp_path / "p.json", "--trace", name[:8])["traces"] == 1
    code, _, err = run(folder, "--to", "atif", "-o", tmp_path / "o.json", "--trace", "nobody")
    assert (code, "no such trace" in err) == (2, True)


def test_mistakes_are_told_in_a_line(tmp_path: Path) -> None:
    folder = store(tmp_path)
    for arguments, words in (
        ((folder, "--to", "pdf", "-o", tmp_path / "o"), "atif"),
        ((tmp_path / "none", "--to", "atif", "-o", tmp_path / "o"), "no trace store"),
        ((folder, "--to", "atif", "-o", folder / "o.json"), "lies in the store"),
    ):
        code, _, err = run(*arguments)
        assert (code, words in err, "Traceback" in err) == (2, True, False)
