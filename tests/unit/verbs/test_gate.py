"""`postgrad gate`: files in, verdict and page out, and the exit code of each decision."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.report import Report, Verdict
from postgrad.core.trace import Candidate, Request, Source, Step, Trace
from postgrad.evaluate.reports import read_report, write_report
from postgrad.run.rundir import RunDir
from postgrad.traces.capture import lines
from postgrad.verbs import gate
from unit.evaluate.reports_by_hand import first, report, score


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, Path]:
    """Reports of a parent right in 20 of 60, a no-op, a good and a sabotaged candidate."""
    paths = {}
    for name, right in (("parent", 20), ("no-op", 20), ("good", 50), ("sabotaged", 2)):
        paths[name] = tmp_path / name / "report.json"
        write_report(paths[name], report(score("t", first(right, 60)), model=name))
    return paths


@pytest.mark.parametrize(
    ("name", "decision", "code"), [("no-op", "iterate", 1), ("good", "promote", 0), ("sabotaged", "rollback", 1)]
)
def test_verdicts(reports: dict[str, Path], tmp_path: Path, name: str, decision: str, code: int) -> None:
    arguments = ["--parent", str(reports["parent"]), "--candidate", str(reports[name].parent), "--policy.targets", "t"]
    told = CliRunner().invoke(gate.command, [*arguments, "--run", str(tmp_path / "run"), "--json"])
    assert told.exit_code == code, told.output
    result = json.loads(told.stdout)
    assert (result["decision"], result["passed"]) == (decision, code == 0)
    assert result["comparisons"][0]["benchmark"] == "t"
    stored = msgspec.json.decode((tmp_path / "run" / "verdict.json").read_bytes(), type=Verdict)
    assert stored.decision == decision
    assert list(stored.reasons) == result["reasons"]
    assert f'class="badge {decision}"' in (tmp_path / "run" / "report.html").read_text()
    assert json.loads((tmp_path / "run" / "report.json").read_text())["verdict"]["decision"] == decision


def test_page_shows_the_training(reports: dict[str, Path], tmp_path: Path) -> None:
    training = RunDir(tmp_path / "05-train")
    for step in range(3):
        training.log(step=step, **{"loss/preference": 0.69 - step / 10})
    policy = {"targets": ("t",)}
    config = gate.GateConfig.model_validate(
        {
            "parent": reports["parent"], "candidate": reports["good"], "policy": policy, "training": [training.path],
            "teachers": [{"name": "gold", "kind": "gold answers"}],
        }
    )  # fmt: skip
    result = gate.run(config, tmp_path / "run")
    page = Path(result["report"]).read_text()
    assert "loss/preference" in page
    assert "gold answers" in page
    missing = config.model_copy(update={"training": (tmp_path / "nowhere",)})
    with pytest.raises(DataError, match="no training here"):
        gate.run(missing, tmp_path / "run")


def test_examples_show_the_question(reports: dict[str, Path], tmp_path: Path) -> None:
    """The transcripts of an evaluation lie beside its report; i20 is the first of the 30 items that were fixed."""
    user, answer = Message.of("user", "What is <b> in HTML?"), Message.of("assistant", "bold")
    step = Step(0, Request((user.id,)), (Candidate(answer, model="m"),))
    trace = Trace("x", Source("", "postgrad"), {user.id: user, answer.id: answer}, (step,), task_id="i20")
    (reports["good"].parent / "traces.sources.jsonl").write_text("".join(f"{line}\n" for line in lines(trace)))
    policy = {"targets": ("t",)}
    config = gate.GateConfig.model_validate(
        {"parent": reports["parent"], "candidate": reports["good"], "policy": policy}
    )
    page = Path(gate.run(config, tmp_path / "run")["report"]).read_text()
    assert "What is &lt;b&gt; in HTML?" in page


def test_a_missing_and_a_broken_report(tmp_path: Path) -> None:
    nowhere, run = str(tmp_path / "none"), str(tmp_path / "run")
    told = CliRunner().invoke(gate.command, ["--parent", nowhere, "--candidate", nowhere, "--run", run])
    assert told.exit_code == 2
    assert "no report here" in told.stderr
    (tmp_path / "report.json").write_text('{"model": 3}')
    with pytest.raises(DataError, match="broken report"):
        read_report(tmp_path)


def test_report_survives_its_file(tmp_path: Path) -> None:
    before: Report = report(score("t", first(3, 9)))
    write_report(tmp_path / "report.json", before)
    assert read_report(tmp_path) == before
