"""Tapes: recorded, played, torn, missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgrad.core.actor import Answer, Ask, Sampling
from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.teachers.cassette import Cassette, Recorder

SAMPLING = Sampling(temperature=0.5)
ASK = Ask((Message.of("user", "key hunter2"),), hint="care")
ANSWER = Answer(Message.of("assistant", "hi"), "m-1", prompt_tokens=5, cost=0.25)


def clean(ask: Ask) -> Ask:
    return Ask((Message.of("user", "key <secret>"),), hint=ask.hint)


def test_what_was_recorded_is_played_and_costs_nothing(tmp_path: Path) -> None:
    """The tape holds the ask without its secret, and yet the ask with it is found."""
    recorder = Recorder(tmp_path / "tape.jsonl", clean)
    for _ in range(2):
        recorder.add(ASK, SAMPLING, ANSWER)
    recorder.add(Ask((Message.of("user", "x"),)), SAMPLING, Answer(None, "m-1", error="timeout"))
    Recorder(tmp_path / "tape.jsonl", clean).add(ASK, SAMPLING, ANSWER)
    text = (tmp_path / "tape.jsonl").read_text()
    assert len(text.splitlines()) == 1
    assert "hunter2" not in text
    (answer,) = Cassette("a", tmp_path / "tape.jsonl").answer([ASK], SAMPLING)
    assert (answer.message, answer.model, answer.prompt_tokens, answer.cost) == (ANSWER.message, "m-1", 5, 0.0)


@pytest.mark.parametrize("other", [Ask((Message.of("user", "else"),)), Ask(ASK.messages)])
def test_what_is_not_on_the_tape_is_an_error_and_no_abstention(tmp_path: Path, other: Ask) -> None:
    Recorder(tmp_path / "tape.jsonl", clean).add(ASK, SAMPLING, ANSWER)
    cassette = Cassette("a", tmp_path / "tape.jsonl")
    with pytest.raises(DataError, match=r"teacher a.*holds no answer.*record it"):
        cassette.answer([other], SAMPLING)
    with pytest.raises(DataError, match="sampled as then"):
        cassette.answer([ASK], Sampling())


def test_a_line_written_by_hand_needs_no_key(tmp_path: Path) -> None:
    line = '{"ask": {"messages": [{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}]}, '
    line += '"answer": {"message": {"role": "assistant", "blocks": []}, "model": "m"}}'
    (tmp_path / "tape.jsonl").write_text(line)  # and no end of line
    (answer,) = Cassette("a", tmp_path / "tape.jsonl").answer([Ask((Message.of("user", "hi"),))], Sampling())
    assert answer.model == "m"
    Recorder(tmp_path / "tape.jsonl", clean).add(ASK, SAMPLING, ANSWER)
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) == 2


def test_a_torn_line_is_cut_off_when_recording_goes_on(tmp_path: Path) -> None:
    tape = tmp_path / "tape.jsonl"
    Recorder(tape, clean).add(ASK, SAMPLING, ANSWER)
    whole = tape.read_bytes()
    tape.write_bytes(whole + whole[:30])
    Recorder(tape, clean).add(Ask(ASK.messages), SAMPLING, ANSWER)
    assert len(Cassette("a", tape).answer([ASK, Ask(ASK.messages)], SAMPLING)) == 2


def test_no_tape_and_no_recording(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no tape here"):
        Cassette("a", tmp_path / "tape.jsonl")
    (tmp_path / "tape.jsonl").write_text("nonsense\n")
    with pytest.raises(DataError, match="line 1 is no recorded answer"):
        Cassette("a", tmp_path / "tape.jsonl")
