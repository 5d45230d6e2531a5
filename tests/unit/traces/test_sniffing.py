"""Small files of many tools: read as what they are, as a plain chat where they are one, or refused; never wrongly.

`sniffing.jsonl` has a file a line: what it is (`what`), its name, and its content as `document`, `lines`, `text` or
`base64`. Where a reader has to take it, `is` names the reader and `steps` the steps in it; every other one is refused.
The known formats in all their generations are built by the tests of their readers.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postgrad.core.errors import DataError
from postgrad.traces import readers
from postgrad.traces.records import totals
from postgrad.verbs.ingest import IngestConfig, run

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("sniffing.jsonl").read_text(encoding="utf-8").splitlines()
]
REFUSED = [row for row in ROWS if "is" not in row]
TAKEN = [row for row in ROWS if "is" in row]
TABLES = {
    "browser history": "create table urls (id integer, url text); create table visits (id integer, url integer)",
    "a mail program": "create table messages (id integer, sender text, body text); create table threads (id integer)",
    "a web shop": "create table sessions (id text, user text); create table messages (id integer, text text)",
    "flash cards": "create table notes (id integer, flds text); create table cards (id integer, nid integer)",
    "a messenger": "create table message (id integer, data blob); create table session (id integer, record blob); "
    "create table part (id integer, mid integer)",
    "settings of an editor": "create table ItemTable (key text unique, value blob)",
    "an empty editor store": "create table cursorDiskKV (key text unique, value blob)",
    "an agent's terminal": "create table ai_queries (id integer, input text); create table agent_tasks (id integer)",
    "no tables": "pragma user_version = 3",
}


def written(folder: Path, row: dict[str, Any]) -> Path:
    path: Path = folder / row["file"]
    if "lines" in row:
        path.write_text("".join(f"{json.dumps(line)}\n" for line in row["lines"]))
    elif "document" in row:
        path.write_text(json.dumps(row["document"], indent=2))
    else:
        path.write_bytes(row["text"].encode() if "text" in row else base64.b64decode(row["base64"]))
    return path


def refused(path: Path) -> bool:
    """Whether no reader takes the file; one that cannot be opened is refused by a sentence that names it."""
    try:
        return readers.detect(path) is None
    except DataError as error:
        return path.name in str(error)


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row["what"])
def test_what_is_a_chat_is_read_as_one(tmp_path: Path, row: dict[str, Any]) -> None:
    path = written(tmp_path, row)
    result = readers.read(path)
    assert (result.source.format, totals(result.traces)["steps"]) == (row["is"], row["steps"])
    assert result.uses[""] == 0


def test_what_no_reader_knows_is_refused(tmp_path: Path) -> None:
    folders = [tmp_path / str(place) for place in range(len(REFUSED))]
    for folder in folders:
        folder.mkdir()
    pairs = zip(folders, REFUSED, strict=True)
    assert [row["what"] for folder, row in pairs if not refused(written(folder, row))] == []


def test_databases_of_other_programs_are_refused(tmp_path: Path) -> None:
    for place, script in enumerate(TABLES.values()):
        with closing(sqlite3.connect(tmp_path / f"{place}.db")) as connection:
            connection.executescript(script)
    assert [what for place, what in enumerate(TABLES) if not refused(tmp_path / f"{place}.db")] == []


def test_a_folder_of_foreign_files_is_told_file_by_file_in_one_line_each(tmp_path: Path) -> None:
    """Every file of the table in one folder: the chats are read, each of the others has one diagnostic of one line."""
    for place, row in enumerate(ROWS):
        (tmp_path / "in" / str(place)).mkdir(parents=True)
        written(tmp_path / "in" / str(place), row)
    result = run(IngestConfig(paths=[str(tmp_path / "in")], store=tmp_path / "store"), tmp_path / "run")
    sources = {source["path"]: source for source in result["sources"]}
    assert sum(source["format"] is not None for source in sources.values()) == len(TAKEN)
    for source in sources.values():
        assert source["records"] == source["records_accounted"]
        if source["format"] is None:
            (told,) = source["diagnostics"]
            assert "\n" not in told["what"]
    assert len(sources) == len(ROWS)


@pytest.mark.parametrize("packed", ["", "gz"])
def test_a_tar_archive_is_told_to_be_unpacked_and_not_read_as_one_session(packed: str, tmp_path: Path) -> None:
    """Its members, one behind the other, look like the first of them."""
    session = tmp_path / "rollout.jsonl"
    rows = [{"timestamp": "t", "type": "session_meta", "payload": {"id": "s"}}]
    session.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    path = tmp_path / f"all.tar{'.gz' * bool(packed)}"
    with tarfile.open(path, f"w:{packed}") as target:
        target.add(session, "rollout.jsonl")
    with pytest.raises(DataError, match="tar archive"):
        readers.detect(path)
