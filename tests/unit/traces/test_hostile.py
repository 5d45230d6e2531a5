"""Damaged and hostile files of every format that is read from one file: no exception but a `DataError`, and every
record is accounted for, whatever the bytes are. Folders that change, loop or cannot be read end no ingest.
"""

from __future__ import annotations

import gzip
import json
import operator
import os
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.errors import DataError
from postgrad.traces import READERS, readers
from postgrad.traces.records import BLANK, ReadResult
from postgrad.verbs.ingest import IngestConfig, run
from unit.traces.formats import agent_files, service_files
from unit.traces.formats.claude_file import ClaudeFile, call
from unit.traces.formats.test_atif import STEPS, trajectory
from unit.traces.formats.test_chat_exports import Chat
from unit.traces.formats.test_hostile_agent_files import FILES as AGENTS
from unit.traces.formats.test_hostile_agent_files import data
from unit.traces.formats.test_inspect_log import EVENTS, log, sample
from unit.traces.formats.test_tau import RESULTS, RUN

CUTS = 8  # places a file; all of them are a matter of minutes
_TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
_SPOKEN = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
_SENT = [
    {"uuid": str(n), "text": text, "sender": who, "content": []}
    for n, (who, text) in enumerate([("human", "hi"), ("assistant", "x")])
]


def _chatgpt() -> list[Any]:
    chat = Chat()
    chat.add("u", "user", "hi")
    chat.add("a", "assistant", "hello")
    return [chat.value()]


DOCUMENTS: dict[str, Any] = {
    "atif": trajectory(*STEPS),
    "inspect": log(sample(*EVENTS)),
    "tau_bench": [RUN],
    "tau2_bench": RESULTS,
    "chatgpt": _chatgpt(),
    "claude_ai": [{"uuid": "c", "name": "n", "chat_messages": _SENT}],
    "messages": {"messages": _TALK},
    "sharegpt": [{"conversations": _SPOKEN}],
    "adp": [
        {"id": "t", "content": [{"class_": "message_action", "content": "Done.", "description": "x"}], "details": {}}
    ],
}
FOLDERS = {"harbor_trial", "terminal_bench"}  # made of documents and texts, which have their tests


def _document(folder: Path, *, value: Any) -> Path:
    return agent_files.write_json(folder / "file.json", value)


def _service(folder: Path, *, name: str, text: str) -> Path:
    return service_files.write(folder / name, text)


def _agent(folder: Path, *, rows: Callable[[Path], list[dict[str, Any]]]) -> Path:
    return service_files.write(folder / "file.jsonl", data(rows(folder)).decode())


def _writers() -> dict[str, Callable[[Path], Path]]:
    """A small file of every format."""
    found: dict[str, Callable[[Path], Path]] = {}
    found |= {name: partial(_document, value=value) for name, value in DOCUMENTS.items()}
    found |= {name: partial(_service, name=file, text=text) for name, (file, text) in service_files.FILES.items()}
    found |= {name: partial(_agent, rows=rows) for name, rows in AGENTS.items()}
    return dict(agent_files.WRITERS.values()) | found


WRITERS = _writers()


def whole(folder: Path, format: str) -> tuple[Path, bytes]:
    """The file and its bytes; of a format that is also a folder the form that is a file."""
    forms = [write for name, write in agent_files.WRITERS.values() if name == format]
    for number, write in enumerate([WRITERS[format], *forms]):
        home = folder / str(number)
        home.mkdir()
        if (path := write(home)).is_file():
            return path, path.read_bytes()
    raise AssertionError(format)


def tried(path: Path, format: str | None, content: bytes) -> ReadResult | None:
    """The reading of these bytes, None where they are refused by a sentence."""
    path.write_bytes(content)
    try:
        result = readers.read(path, format)
    except DataError:
        return None
    assert result.uses.total() == sum(record.status != BLANK for record in result.records)
    assert not result.uses[""]
    assert all(trace.context(step) is not None for trace in result.traces for step in trace.steps)
    return result


def test_every_format_is_here() -> None:
    assert set(WRITERS) | FOLDERS == set(READERS)


@pytest.mark.parametrize("format", WRITERS)
def test_cut_damaged_and_coded_bytes(tmp_path: Path, format: str) -> None:
    """Cut at places all over the file; NUL bytes, a lone surrogate and a foreign line put in; BOM, UTF-16, gzip cut."""
    path, content = whole(tmp_path, format)
    assert tried(path, None, content) is not None
    for stop in range(0, len(content), max(1, len(content) // CUTS)):
        tried(path, format, content[:stop])
        tried(path, None, content[:stop])
    middle = len(content) // 2
    for odd in (b"\0" * 64, b"\\ud83d", b"\xff\xfe", b'\n{"type": "hologram"}\n[1]\n', b"}{", b"[" * 5000):
        tried(path, format, content[:middle] + odd + content[middle:])
    tried(path, None, b"\xef\xbb\xbf" + content)
    tried(path, None, content.decode("latin-1").encode("utf-16"))
    tried(path, None, gzip.compress(content)[:-20])


@pytest.mark.parametrize("format", WRITERS)
def test_lines_of_two_files_mixed(tmp_path: Path, format: str) -> None:
    path, content = whole(tmp_path, format)
    other = data(AGENTS["claude_code" if format != "claude_code" else "codex_cli"](tmp_path)).split(b"\n")
    own = content.split(b"\n")
    mixed = [line for pair in zip(own, other * (len(own) // len(other) + 1), strict=False) for line in pair]
    tried(path, format, b"\n".join(mixed))
    tried(path, None, b"\n".join(mixed))


@pytest.mark.parametrize("format", DOCUMENTS)
def test_values_of_another_type(tmp_path: Path, format: str) -> None:
    """Each value in turn is an object or a list of them instead: neither can be looked up among known words."""
    path, content = whole(tmp_path, format)
    places = list(_places(json.loads(content)))
    for number, (*way, key) in enumerate(places[:: max(1, len(places) // (CUTS * 4))]):
        document = json.loads(content)
        holder = reduce(operator.getitem, way, document)
        holder[key] = ({}, [{}])[number % 2]
        tried(path, None, json.dumps(document).encode())
        tried(path, format, json.dumps(document).encode())


def _places(value: Any, *way: Any) -> Iterator[tuple[Any, ...]]:
    """The ways to all plain values inside it."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list):
            yield from _places(inner, *way, key)
        else:
            yield (*way, key)


@pytest.mark.parametrize("format", ["messages", "tau_bench", "tau2_bench", "atif", "chatgpt"])
@pytest.mark.parametrize("odd", [{}, []])
def test_a_speaker_that_is_no_word(tmp_path: Path, format: str, odd: Any) -> None:
    """Every role of the file in turn; the rest is read, or the file refused."""
    path, content = whole(tmp_path, format)
    for *way, key in _places(json.loads(content)):
        if key in ("role", "source"):
            document = json.loads(content)
            reduce(operator.getitem, way, document)[key] = odd
            tried(path, None, json.dumps(document).encode())
            tried(path, format, json.dumps(document).encode())


def test_a_message_without_a_word_for_its_role_ends_no_sniffing(tmp_path: Path) -> None:
    odds: list[Any] = [{}, [], None, 1]
    for odd in odds:
        for rows in ([{"role": odd, "content": "x"}, *_TALK], [*_TALK, {"role": odd, "content": "x"}]):
            tried(tmp_path / "chat.jsonl", None, data(rows))
            tried(tmp_path / "chat.json", None, json.dumps(rows).encode())


def test_a_format_that_is_forced_on_another_ones_file_is_no_fault(tmp_path: Path) -> None:
    """`--format` with a wrong word: a reading that accounts for every record, mostly of nothing, or a sentence.

    Every format on a quarter of the files; all of them take some seconds more.
    """
    for place, name in enumerate(WRITERS):
        (tmp_path / str(place)).mkdir()
        path, content = whole(tmp_path / str(place), name)
        for forced in list(READERS)[place % 4 :: 4]:
            tried(path, forced, content)


def test_one_bad_record_ends_no_read(tmp_path: Path) -> None:
    """Behind a line of a megabyte that is no JSON, and one that is nested 20,000 deep, the session goes on."""
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    first, second = file.data.splitlines(keepends=True)
    result = tried(tmp_path / "s.jsonl", None, first + b"x" * (1 << 20) + b"\n" + b'{"a":' * 20_000 + b"\n" + second)
    assert result is not None
    assert [len(trace.steps) for trace in result.traces] == [1]
    assert [told.line for told in result.diagnostics] == [2, 3]


def test_parents_in_a_circle(tmp_path: Path) -> None:
    """A tree whose rows hang on one another still gives each of its answers once."""
    file = ClaudeFile()
    file.user("go", parent="u3")
    file.assistant("m1", call("t1"))
    file.result("t1")
    file.assistant("m2", call("t2"), parent="u4")
    result = readers.read(file.write(tmp_path / "s.jsonl"))
    assert sum(len(trace.steps) for trace in result.traces) == 2


def ingest(tmp_path: Path, *paths: Path) -> dict[str, Any]:
    return run(IngestConfig(paths=[str(path) for path in paths], store=tmp_path / "store"), tmp_path / "run")


def test_folders_that_loop_vanish_or_forbid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link to its own folder, a link to nothing, a file that may not be opened, one that is gone when it is read."""
    folder = tmp_path / "in"
    folder.mkdir()
    file = ClaudeFile()
    file.user("go")
    file.assistant("m1", call("t1"))
    file.write(folder / "good.jsonl")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "self").symlink_to(folder / "self")
    (folder / "nothing.jsonl").symlink_to(folder / "away")
    for name in ("gone.jsonl", "locked.jsonl"):
        (folder / name).write_text(json.dumps({"type": "user"}) + "\n")
    real = Path.open

    def refusing(path: Path, *args: Any, **options: Any) -> Any:
        if path.name == "locked.jsonl":
            raise PermissionError(13, "Permission denied", str(path))
        if path.name == "gone.jsonl":
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return real(path, *args, **options)

    monkeypatch.setattr(Path, "open", refusing)
    result = ingest(tmp_path, folder)
    found = {os.path.basename(source["path"]): source for source in result["sources"]}
    assert (found["good.jsonl"]["format"], found["good.jsonl"]["steps"]) == ("claude_code", 1)
    for name in ("locked.jsonl", "gone.jsonl", "nothing.jsonl"):
        assert found[name]["format"] is None
        assert found[name]["diagnostics"]


def test_a_packed_document_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits made small: a megabyte from a thousand bytes is a bomb, the same bytes unpacked are not."""
    monkeypatch.setattr("postgrad.traces.sources.archive._BOMB_SIZE", 1 << 18)
    content = b'{"messages": [' + b" " * (1 << 20) + json.dumps(_TALK)[1:].encode() + b"}"
    path = tmp_path / "chat.json.gz"
    assert tried(path, "messages", gzip.compress(content)) is None
    assert tried(tmp_path / "chat.json", "messages", content) is not None
