"""A session of K steps keeps its K ids once, from the reader to the store and back, whatever is done on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from postgrad.core.prefix import LONG, Prefix
from postgrad.core.trace import Trace
from postgrad.traces.contexts.catalogue import Catalogue, Entry
from postgrad.traces.contexts.fidelity import complete
from postgrad.traces.packing.packed import Packer, unpack
from postgrad.traces.readers import read
from postgrad.traces.redaction.redactor import Redactor
from unit.traces.formats.claude_file import ClaudeFile, call
from unit.traces.formats.codex_file import CodexFile

STEPS = LONG // 2 + 200
SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def claude(path: Path) -> Trace:
    file = ClaudeFile()
    file.user(f"go, with {SECRET}")
    for number in range(STEPS):
        file.assistant(f"m{number}", call(f"t{number}", command=f"echo {number}"))
        file.result(f"t{number}", f"{number}")
    (trace,) = read(file.write(path)).traces
    return trace


def codex(path: Path) -> Trace:
    file = CodexFile("00000000-0000-4000-8000-000000000001")
    file.user(f"go, with {SECRET}")
    for number in range(STEPS):
        file.calls(f"call_{number}", arguments='{"command": ["echo"]}')
        file.output(f"call_{number}", f"{number}")
    path.write_bytes(file.data)
    (trace,) = read(path).traces
    return trace


def lists(trace: Trace) -> set[int]:
    """The lists behind the long contexts; every one is a view."""
    long = [step.request.messages for step in trace.steps if len(step.request.messages) > LONG + 2]
    assert len(long) > 100
    assert all(isinstance(ids, Prefix) for ids in long)
    return {id(ids.items) for ids in long if isinstance(ids, Prefix)}


@pytest.mark.parametrize("made", [claude, codex])
def test_all_steps_share_one_list(made: Callable[[Path], Trace], tmp_path: Path) -> None:
    trace = made(tmp_path / "rollout-s.jsonl")
    assert len(trace.steps) == STEPS
    last = trace.steps[-1].request.messages
    assert len(last) == len(set(last)), "every message once"
    app = str(trace.source.app)
    filled = complete(trace, Catalogue((Entry(app=app, system="Be brief."),)))
    clean = Redactor().redact(filled)
    packer = Packer()
    back = unpack(packer.pack(clean), packer.messages)
    for one in (trace, filled, clean, back):
        assert len(lists(one)) == 1
    assert SECRET not in str(clean.context(clean.steps[-1])[:3])
    assert clean.context(clean.steps[-1])[0].text == "Be brief."
    assert back == clean
