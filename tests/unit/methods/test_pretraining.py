from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from postgrad.core.errors import ConfigError, DataError
from postgrad.methods.pretraining import CPT, TextSource
from postgrad.models.policy import Policy, load_policy

POEM = "Tyger Tyger, burning bright, In the forests of the night; What immortal hand or eye, Could frame thy symmetry?"
SHORT = "In what distant deeps or skies"


@pytest.fixture(scope="module")
def policy() -> Policy:
    return load_policy("tiny-random")


def ids(policy: Policy, text: str) -> list[int]:
    end = policy.tokenizer.eos_token_id
    return [*policy.tokenizer.encode(text, add_special_tokens=False), *([] if end is None else [end])]


def epoch(source: TextSource) -> list[Any]:
    return [unit for step in range(source.rows["rows"]) for unit in source.units(step)]


def one_by_one(policy: Policy, *paths: Path, **fields: Any) -> TextSource:
    return CPT(paths=paths, batch_size=1, **fields).source(policy, seed=0)


def test_three_kinds_of_file_give_the_same_rows(policy: Policy, tmp_path: Path) -> None:
    """Each document is one branch, its end token included, every token but the first scored."""
    (tmp_path / "a.txt").write_text(POEM)
    (tmp_path / "b.md").write_text(SHORT)
    (tmp_path / "both.jsonl").write_text("".join(json.dumps({"text": t, "n": 1}) + "\n\n" for t in (POEM, SHORT)))
    pq.write_table(pa.table({"text": [POEM, SHORT], "n": [1, 2]}), tmp_path / "both.parquet")
    kinds = ([tmp_path / "a.txt", tmp_path / "b.md"], [tmp_path / "both.jsonl"], [tmp_path / "both.parquet"])
    for paths in kinds:
        source = one_by_one(policy, *paths)
        assert source.rows == {"documents": 2, "rows": 2}
        units = epoch(source)
        assert sorted(list(unit.branches[0]) for unit in units) == sorted([ids(policy, POEM), ids(policy, SHORT)])
        for unit in units:
            assert unit.items[0].span.positions == tuple(range(1, len(unit.branches[0])))
    assert one_by_one(policy, tmp_path).rows == {"documents": 6, "rows": 6}


def test_a_long_document_is_cut_and_every_token_scored_once(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    whole = ids(policy, POEM)
    units = epoch(one_by_one(policy, tmp_path / "a.txt", length=12, overlap=5))
    assert len(units) > 2
    assert max(len(unit.branches[0]) for unit in units) == 12
    scored = Counter(unit.branches[0][p] for unit in units for p in unit.items[0].span.positions)
    assert scored == Counter(whole[1:])
    assert all(min(unit.items[0].span.positions) in (1, 5) for unit in units)


def test_batches_are_a_function_of_seed_and_step(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    method = CPT(paths=(tmp_path / "a.txt",), length=12, overlap=5, batch_size=3)
    first, second = method.source(policy, seed=1), method.source(policy, seed=1)
    assert [second.units(step) for step in (4, 0)] == [first.units(step) for step in (4, 0)]
    assert [len(first.units(step)) for step in range(3)] == [3, 3, 3]
    assert [method.source(policy, seed=2).units(s) for s in range(3)] != [first.units(s) for s in range(3)]


def test_empty_documents_are_dropped_and_counted(policy: Policy, tmp_path: Path) -> None:
    lines = [{"text": ""}, {"text": POEM}, {"text": "a lone surrogate \ud800 is no character"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert one_by_one(policy, tmp_path / "a.jsonl").rows == {"documents": 2, "dropped: empty": 1, "rows": 2}
    pq.write_table(pa.table({"text": [None, ""]}), tmp_path / "nothing.parquet")
    with pytest.raises(DataError, match=r"no text to train on.*'dropped: empty': 2"):
        one_by_one(policy, tmp_path / "nothing.parquet")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x y"}\n{"body": "x"}\n', r"a.jsonl line 2 has no text in 'text'; got 'body'"),
        ("a.jsonl", b'{"text": 5}\n', r"line 1 has no text in 'text'"),
        ("a.jsonl", b'["text"]\n', r"line 1 has no text in 'text'; got 'list'"),
        ("a.jsonl", b'{"text": "x"\n', r"line 1 is no JSON"),
        ("a.txt", b"caf\xe9 and more", r"a.txt is no UTF-8 text: .* at byte 3"),
        ("a.parquet", b"PAR1 nonsense PAR1", r"a.parquet is no Parquet file"),
        ("a.pdf", b"%PDF", r"text of an unknown kind.*a.pdf.*\.parquet"),
        ("a.txt", b"", r"no text to train on"),
    ],
)
def test_a_broken_file_is_named(policy: Policy, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        one_by_one(policy, tmp_path / name)


def test_a_missing_column_file_or_folder_is_named(policy: Policy, tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": [POEM]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"has no column 'text'; got 'body'"):
        one_by_one(policy, tmp_path / "a.parquet")
    assert one_by_one(policy, tmp_path / "a.parquet", field="body").rows["documents"] == 1
    with pytest.raises(DataError, match="no such file of text"):
        one_by_one(policy, tmp_path / "none.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no text in this folder"):
        one_by_one(policy, tmp_path / "empty")


def test_lengths_that_do_not_fit_are_refused(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(POEM)
    with pytest.raises(ValueError, match=r"overlap is 12, expected less than length \(12\)"):
        CPT(paths=(tmp_path / "a.txt",), length=12, overlap=12)
    with pytest.raises(ValueError, match="paths is empty"):
        CPT(paths=())
    with pytest.raises(ConfigError, match=r"method.length; got .*; expected at most"):
        CPT(paths=(tmp_path / "a.txt",), length=policy.context_length + 1).source(policy, seed=0)


@pytest.mark.parametrize(("field", "value"), [("length", 14), ("overlap", 3), ("batch_size", 2)])
def test_every_number_changes_what_is_trained_on(policy: Policy, tmp_path: Path, field: str, value: int) -> None:
    numbers = {name for name, f in CPT.model_fields.items() if f.annotation in (int, float)}
    assert numbers == {"length", "overlap", "batch_size"}
    (tmp_path / "a.txt").write_text(POEM)
    base = {"paths": (tmp_path / "a.txt",), "length": 12, "overlap": 5, "batch_size": 3}
    sources = [CPT.model_validate(fields).source(policy, seed=0) for fields in (base, base | {field: value})]
    assert sources[0].units(0) != sources[1].units(0)


def test_a_byte_order_mark_is_no_text(policy: Policy, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbf" + POEM.encode())
    (unit,) = one_by_one(policy, tmp_path / "a.txt").units(0)
    assert list(unit.branches[0]) == ids(policy, POEM)
