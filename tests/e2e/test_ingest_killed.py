"""kill -9 in the middle of an ingest: the store is valid, and the same command goes on to the same end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from postgrad.traces.storage.store import Store
from unit.traces.formats.claude_file import ClaudeFile, text

HERE = Path(__file__).parent


def ingest(folder: Path, store: Path, *, last: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "ingest_killed.py"), str(folder), str(store), str(last)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def sessions(folder: Path) -> int:
    """Six sessions, two of them copies of others."""
    folder.mkdir(parents=True)
    for number in range(6):
        file = ClaudeFile(session=f"s{number % 4}")
        file.user("go")
        for answer in range(3):
            file.assistant(f"m{number % 4} {answer}", text(f"answer {answer}"))
        for row in file.rows:
            row["uuid"] = f"{number % 4} {row['uuid']}"
            row["parentUuid"] = row["parentUuid"] and f"{number % 4} {row['parentUuid']}"
        file.write(folder / f"{number}.jsonl")
    return 4


def test_a_killed_ingest_leaves_a_valid_store(tmp_path: Path) -> None:
    count = sessions(tmp_path / "traces")
    whole = ingest(tmp_path / "traces", tmp_path / "whole", last=10**6)
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stdout)
    expected = [trace.id for trace in Store(tmp_path / "whole").traces()]
    assert len(expected) == count
    for last in sorted({2, steps // 3, steps // 2, steps - 2}):
        store = tmp_path / f"store{last}"
        assert ingest(tmp_path / "traces", store, last=last).returncode == -9
        seen = ids(store)
        assert set(seen) <= set(expected)
        assert ingest(tmp_path / "traces", store, last=10**6).returncode == 0
        assert ids(store) == expected
        assert pq.read_table(store / "traces").num_rows == count
        assert not list(store.rglob("*.tmp"))


def ids(folder: Path) -> list[str]:
    """What is in a store; one that was killed before it was made is none yet."""
    store = Store(folder)
    return [trace.id for trace in store.traces()] if store.exists else []


pytestmark = pytest.mark.slow
