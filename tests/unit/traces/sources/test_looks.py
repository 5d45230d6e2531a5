"""What a source looks like, for whoever is told that it cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postgrad.traces.sources.looks import looks


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "an empty file"),
        (b'{"b": 1, "a": {"c": 2}}', "a JSON object with the keys b, a"),
        (b'[{"role": 1}, {"other": 2}]', "a JSON list of objects with the key role"),
        (b"[1, 2]", "a JSON list"),
        (b'{"a": 1}\n{"b": 2}\n', "JSON lines with the key a"),
        (b"# notes\n", "text"),
        (b"\0\1\2", "a binary file"),
        (b"PK\x03\x04 and no more", "a zip archive"),
        (b'{"sk-live-0123456789abcdefghij0123456789": 1}', "a JSON object with 1 key"),
        (json.dumps(dict.fromkeys("abcdefghi")).encode(), "a JSON object with the keys a, b, c, d, e, f and 3 more"),
    ],
)
def test_a_source_is_told_by_its_shape_and_never_by_its_content(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "file").write_bytes(data)
    assert looks(tmp_path / "file") == told
