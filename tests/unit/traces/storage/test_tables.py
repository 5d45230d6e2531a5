"""Row groups of messages: several for one long trace, found again whatever is done to the segment."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from postgrad.core.trace import Trace
from postgrad.traces.formats.claude_code.reader import ClaudeCode
from postgrad.traces.packing import packed
from postgrad.traces.storage import tables
from postgrad.traces.storage.journal import Line, StoredSource
from postgrad.traces.storage.segment import Segment
from postgrad.traces.storage.store import Store
from postgrad.traces.storage.tables import MESSAGES, message_groups
from unit.traces.formats.claude_file import ClaudeFile, text

NAMES = ("short", "long", "other")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Three sources in one segment, each a group of its own; one of them is long.

    A message of 300 letters is 327 bytes, so with pieces of 1,000 bytes every fourth ends a piece. Contexts do not
    hold what the last answer said, so a session of N questions and answers has 2 N messages: with N of 2, 10 and 2 that
    is one piece, five pieces, one piece. Each of them is written before its traces, and behind it what was left: after
    4 or 20 messages nothing.
    """
    monkeypatch.setattr(packed, "PIECE", 1000)
    monkeypatch.setattr(tables, "_GROUP_BYTES", 1)
    store = Store(tmp_path / "store")
    with store.writing() as journal, Segment(store.folder) as segment:
        for name, count in zip(NAMES, (2, 10, 2), strict=True):
            file = ClaudeFile(session=name)
            for number in range(count):
                file.user(f"{name} {number} asks".ljust(300, "?"))
                file.assistant(f"m{number}", text(f"{name} {number} answers".ljust(300, ".")))
            for row in file.rows:  # the first row is the session
                row |= {key: f"{name} {row[key]}" for key in ("uuid", "parentUuid") if row[key]}
            result = ClaudeCode().read(file.write(tmp_path / f"{name}.jsonl"))
            source, _ = segment.add(result, result.traces)
            journal.append([Line(source=source)])
    return store


def was(folder: Path) -> list[Trace]:
    """The traces as they were read, in the order of a store."""
    return [trace for name in sorted(NAMES) for trace in ClaudeCode().read(folder / f"{name}.jsonl").traces]


def files(store: Store) -> tuple[pq.ParquetFile, pq.ParquetFile]:
    """Traces and messages of the only segment."""
    (traces,), (messages,) = ((store.folder / kind).glob("*.parquet") for kind in ("traces", "messages"))
    return pq.ParquetFile(traces), pq.ParquetFile(messages)


def source(store: Store, name: str) -> StoredSource:
    (found,) = (one for one in store.sources() if Path(one.path).stem == name)
    return found


def test_a_long_trace_has_several_groups_of_messages(store: Store) -> None:
    traces, messages = files(store)
    assert (traces.num_row_groups, messages.num_row_groups) == (3, 2 + 6 + 2)
    assert message_groups(messages) == [[0, 1], [2, 3, 4, 5, 6, 7], [8, 9]]
    assert [messages.metadata.row_group(at).num_rows for at in range(10)] == [4, 0, 4, 4, 4, 4, 4, 0, 4, 0]
    for group, numbers in enumerate(message_groups(messages)):
        (row,) = traces.read_row_group(group).to_pylist()
        ids = messages.read_row_groups(numbers)["id"].to_pylist()
        assert Counter(ids) == Counter(row["messages"]), "each message once, and what the traces name"


def test_a_store_with_a_long_trace_reads_back_equal(store: Store, tmp_path: Path) -> None:
    assert list(store.traces()) == was(tmp_path)


def test_a_file_that_says_nothing_has_a_group_of_messages_for_each_of_traces(tmp_path: Path) -> None:
    """So it was before traces could be that long; and so it is where none is."""
    path = tmp_path / "messages.parquet"
    rows = MESSAGES.empty_table()
    with pq.ParquetWriter(path, MESSAGES) as writer:
        for _ in range(3):
            writer.write_table(rows)
    assert message_groups(pq.ParquetFile(path)) == [[0], [1], [2]]


def test_short_traces_say_nothing(tmp_path: Path) -> None:
    file = ClaudeFile()
    file.user("go")
    file.assistant("m", text("gone"))
    store = Store(tmp_path / "store")
    store.add(ClaudeCode().read(file.write(tmp_path / "s.jsonl")))
    _, messages = files(store)
    assert tables._GROUPS not in (messages.metadata.metadata or {})
    assert message_groups(messages) == [[0]]


@pytest.mark.parametrize(("gone", "groups"), [("short", [6, 2]), ("long", [2, 2]), ("other", [2, 6])])
def test_a_rewritten_segment_keeps_its_groups(store: Store, tmp_path: Path, gone: str, groups: list[int]) -> None:
    """A source that is outgrown leaves dead rows; the next writer takes them out, group by group."""
    with store.writing() as journal:
        journal.append(
            [Line(source=source(store, "other" if gone != "other" else "short"), gone=(source(store, gone).sha256,))]
        )
    traces, messages = files(store)
    assert traces.num_row_groups == 2
    assert [len(numbers) for numbers in message_groups(messages)] == groups
    told = json.loads(messages.metadata.metadata[tables._GROUPS])
    assert told == [0] * groups[0] + [1] * groups[1]
    left = {Path(one.path).stem for one in store.sources()}
    assert left == set(NAMES) - {gone}
    assert list(store.traces()) == [trace for trace in was(tmp_path) if Path(trace.source.path).stem in left]


def test_a_segment_rewritten_twice_still_reads_equal(store: Store, tmp_path: Path) -> None:
    for gone in ("short", "other"):
        with store.writing() as journal:
            journal.append([Line(source=source(store, "long"), gone=(source(store, gone).sha256,))])
    _, messages = files(store)
    assert message_groups(messages) == [[0, 1, 2, 3, 4, 5]]
    assert list(store.traces()) == list(ClaudeCode().read(tmp_path / "long.jsonl").traces)
