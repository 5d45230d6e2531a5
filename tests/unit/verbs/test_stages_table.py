"""What a person sees at the end of a turn."""

from __future__ import annotations

import io

from rich.console import Console

from postgrad.verbs.stages_table import show

TRAINED = {"artifact": "runs/x/01-a/artifact", "steps": 3, "tokens": 9, "last": {"loss": 0.123456}}


def test_scores_come_with_their_intervals() -> None:
    """0.25 with a standard error of 0.05 is worth 0.1875 / 0.0025 + 1 = 76 items; Wilson, with z^2 = 3.8415:
    (0.25 + 3.8415 / 152 +- sqrt(3.8415 (0.1875 / 76 + 3.8415 / (4 * 76^2)))) / (1 + 3.8415 / 76)
    = (0.27527 +- 0.10058) / 1.05055 = 16.6 to 35.8 %. None of 60: 0 to 3.8415 / 60 / (1 + 3.8415 / 60) = 6.0 %.
    """
    result = {
        "name": "turn",
        "run": "runs/x",
        "seconds": 3.0,
        "passed": True,
        "stages": [{"name": "a", "verb": "train", "status": "kept", "seconds": 3.0, "result": TRAINED}],
        "before": {"accuracy": 0.0, "stderr": 0.0, "n": 60},
        "outside": {"bfcl": {"after": {"accuracy": 0.25, "stderr": 0.05, "n": 100}}},
        "later": {"accuracy": None, "stderr": None, "n": 0},
        "verdict": {"decision": "promote", "reasons": ["better", "no worse"]},
        "report": None,
    }
    console = Console(width=120, file=io.StringIO(), record=True)
    console.print(show(result))
    text = console.export_text()
    assert "train (kept)" in text
    assert "3 steps, loss 0.1235 at last; 01-a/artifact" in text
    rows = [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]
    assert "before 0.0 % 0.0 to 6.0 60" in rows
    assert "outside bfcl after 25.0 % 16.6 to 35.8 100" in rows
    assert "later unmeasured" in rows
    assert {"verdict.decision: promote", "verdict.reasons: better; no worse", "report: -"} <= set(rows)
