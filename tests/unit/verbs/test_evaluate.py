"""`postgrad evaluate` with a scripted actor: modes, unmeasured benchmarks, resuming, what the result holds."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from postgrad.core.actor import Answer, Ask
from postgrad.core.errors import ConfigError, MissingDependency
from postgrad.core.message import Message, Tool, ToolResult
from postgrad.core.task import Task
from postgrad.evaluate.reports import read_report
from postgrad.run.config import load
from postgrad.traces.readers import read as traces
from postgrad.verbs import evaluate
from unit.evaluate.fakes import Echo, Parity, tasks


class Everyday(Parity):
    """Parity as an environment of one split, optionally with a tool."""

    name = "everyday"
    trainable = False
    splits = ("all",)
    training_splits = ()
    tools: tuple[Tool, ...] = ()

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        return [Task(t.id, t.messages, t.group, self.tools, t.expected) for t in tasks(n or 20)]

    def respond(self, task: Task, message: Message) -> tuple[ToolResult, ...]:
        return ()


class WithTool(Everyday):
    """The same questions with a tool on offer."""

    name = "with tool"
    tools = (Tool("parity"),)


class NotHere(Everyday):
    """Its data is not installed."""

    def tasks(self, split: str, n: int | None = None, seed: int = 0) -> list[Task]:
        raise MissingDependency("bfcl-eval", extra="eval")


HERE = "unit.verbs.test_evaluate"


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch) -> Echo:
    echo = Echo()
    monkeypatch.setattr(evaluate, "load_actor", lambda config: (echo, f"weights of {config.model}"))
    return echo


def measure(out: Path, *benchmarks: str, **more: Any) -> dict[str, Any]:
    config = load(evaluate.EvaluateConfig, None, {"model": "m", "benchmarks": [*benchmarks], **more})
    return evaluate.run(config, out)


def test_report_holds_every_benchmark(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, f"{HERE}:Everyday/all:12", "retention/facts:30")
    report = read_report(Path(result["report"]))
    parity = report.scores[f"{HERE}:Everyday/all"]
    summary = result["scores"][f"{HERE}:Everyday/all"]
    assert (summary["accuracy"], summary["stderr"], summary["n"]) == (parity.mean, parity.stderr, 12)
    assert summary["low"] <= summary["accuracy"] <= summary["high"]
    assert parity.settings["subset"] == "12 drawn with seed 0"
    assert parity.settings["weights"] == "weights of m"
    assert report.scores["retention/facts"].settings["grader"] == "retention 2"
    assert report.scores["retention/facts"].settings["max_new_tokens"] == "48"  # no more than the questions need
    assert result["scores"]["retention/facts"]["accuracy"] == 0  # "even" and "odd" are no facts


def test_a_split_to_train_on_is_noted_with_the_result_and_below_the_table(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, "function_calling/train:3")
    assert "function_calling/train is a split that trainings draw from" in result["notes"][0]
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(evaluate.show(result))
    assert "note: function_calling/train is a split" in console.export_text()
    assert measure(tmp_path / "b", f"{HERE}:Everyday/all:3")["notes"] == []


def test_constrained_is_a_benchmark_of_its_own_where_tools_are_offered(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, f"{HERE}:WithTool/all", f"{HERE}:Everyday/all", modes=["free", "constrained"])
    with_tool, plain = f"{HERE}:WithTool/all", f"{HERE}:Everyday/all"
    assert set(result["scores"]) == {with_tool, f"{with_tool}@constrained", plain}
    settings = read_report(tmp_path).scores[f"{with_tool}@constrained"].settings
    assert settings["mode"] == "constrained"


def test_what_is_not_installed_is_unmeasured(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, f"{HERE}:NotHere/all", f"{HERE}:Everyday/all")
    (gap,) = result["unmeasured"]
    assert gap["benchmark"] == f"{HERE}:NotHere/all"
    assert "pip install" in gap["reason"]
    assert [one.benchmark for one in read_report(tmp_path).unmeasured] == [f"{HERE}:NotHere/all"]
    assert result["scores"][f"{HERE}:Everyday/all"]["n"] == 20
    assert result["scores"][f"{HERE}:NotHere/all"] == {"accuracy": None, "stderr": None, "n": 0}


def test_a_prompt_too_long_for_the_model_is_unmeasured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def spoil(ask: Ask, call: int) -> Answer:
        return Answer(None, "echo", "too_long")

    monkeypatch.setattr(evaluate, "load_actor", lambda config: (Echo(spoil=spoil), "w"))
    result = measure(tmp_path, f"{HERE}:Everyday/all")
    assert "no prompt fits" in result["unmeasured"][0]["reason"]


def test_the_same_command_goes_on(actor: Echo, tmp_path: Path) -> None:
    once = measure(tmp_path, f"{HERE}:Everyday/all")
    asked = len(actor.asked)
    assert measure(tmp_path, f"{HERE}:Everyday/all") == once
    assert len(actor.asked) == asked


def test_transcripts_are_traces_that_ingest_reads(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, f"{HERE}:Everyday/all:6")
    read = traces(Path(result["traces"]))
    items = {item.id: item for item in read_report(tmp_path).scores[f"{HERE}:Everyday/all"].items}
    assert [trace.task_id for trace in read.traces] == [f"t{i}" for i in range(6)]
    for trace in read.traces:
        (step,) = trace.steps
        assert step.action.text == items[str(trace.task_id)].answer
        assert step.feedback[0].value == items[str(trace.task_id)].score


def test_a_real_policy_is_measured(tmp_path: Path) -> None:
    """The random model answers noise, cut off at 8 tokens or ended by chance; that is a measurement too."""
    result = measure(tmp_path, "retention/facts:6", "function_calling/heldout:4", model="tiny-random", max_new_tokens=8)
    assert [one["n"] for one in result["scores"].values()] == [6, 4]
    report = read_report(tmp_path)
    assert report.scores["retention/facts"].settings["weights"] == "named tiny-random, float32"
    assert {item.outcome for score in report.scores.values() for item in score.items} <= {"scored", "truncated"}


def test_weights_are_named_by_content(tmp_path: Path) -> None:
    """Two folders of equal files are one model; a changed file, or a changed base under an adapter, is another."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    base, copy = str(tmp_path / "a"), str(tmp_path / "b")
    assert evaluate.weights_of(base) == evaluate.weights_of(copy)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    before = evaluate.weights_of(str(adapter))
    (tmp_path / "a" / "model.safetensors").write_bytes(b"changed")
    assert evaluate.weights_of(base) != evaluate.weights_of(copy)
    assert evaluate.weights_of(str(adapter)) != before
    assert evaluate.weights_of("someone/model") == "named someone/model"


def test_mistakes_are_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown environment;"):
        measure(tmp_path, "nonsense/all")
    with pytest.raises(ConfigError, match="unknown split"):
        measure(tmp_path, "retention/nonsense")
    with pytest.raises(ConfigError, match="named twice"):
        measure(tmp_path, "retention/facts:10", "retention/facts:20")


def test_table_has_a_row_a_benchmark(actor: Echo, tmp_path: Path) -> None:
    result = measure(tmp_path, f"{HERE}:Everyday/all", f"{HERE}:NotHere/all")
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(evaluate.show(result))
    shown = console.export_text()
    assert "pip install 'postgrad[eval]'" in shown  # square brackets are no markup
    assert f"{100 * result['scores'][f'{HERE}:Everyday/all']['accuracy']:.1f} %" in shown
