"""The capture file after crashes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from postgrad.serve.log import CaptureLog, append_line


def test_a_torn_line_stays_alone(tmp_path: Path) -> None:
    """A crash left half a line: the next exchange starts on its own line, so exactly one line of the file is broken."""
    path = tmp_path / "day.jsonl"
    append_line(path, b'{"a": 1}\n')
    with path.open("ab") as stream:
        stream.write(b'{"half')
    append_line(path, b'{"b": 2}\n')
    assert path.read_bytes() == b'{"a": 1}\n{"half\n{"b": 2}\n'


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    """4 threads x 10 exchanges of one name each: 40 lines, each of them whole."""
    log = CaptureLog(tmp_path)

    def write(name: str) -> None:
        for _ in range(10):
            log.append({"model": name * 500, "messages": []}, {"choices": []})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = [json.loads(line)["request"]["model"] for line in log.today().read_text().splitlines()]
    assert sorted(names) == sorted(name * 500 for name in "abcd" for _ in range(10))
    assert log.written == 40
