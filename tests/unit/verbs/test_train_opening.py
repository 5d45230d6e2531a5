"""A training says what it trains on before the long part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from postgrad.verbs.train import opening
from postgrad.verbs.train_config import TrainVerb, build_method


def opened(steps: int, **method: Any) -> str:
    config = TrainVerb.model_validate({"model": "tiny-random", "method": method, "loop": {"steps": steps}})
    return opening(config, build_method(config.method), Path("runs/x"))


def test_rows_file_folder_and_steps_are_named(tmp_path: Path) -> None:
    """Two rows and an empty line; a text file has no rows, so its size is told; fresh attempts have no file."""
    rows, text = tmp_path / "rows.jsonl", tmp_path / "book.txt"
    rows.write_text("{}\n\n{}\n")
    text.write_text("x" * 1_500_000)
    assert opened(1, name="sft", records=str(rows)) == (
        f"train: tiny-random by sft on {rows} (2 rows), 1 step, in runs/x"
    )
    assert f"on {text} (1.5 MB), 20 steps" in opened(20, name="cpt", paths=[str(text)])
    assert "on what the policy does itself" in opened(2, name="es")
