"""What cannot work is told before a model is loaded and a folder is made: by --dry-run, by the verb, by a cycle."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from postgrad.cli import cli
from postgrad.core.errors import ConfigError
from postgrad.cycle import CycleConfig, check


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ADAPTER = {"base_model_name_or_path": "runs/gone/artifact"}

WRONG = [
    ("evaluate --model tiny-random --benchmarks function_calling/nosuch", "unknown split"),
    ("evaluate --model tiny-random --benchmarks nosuch/x", "unknown environment"),
    ("evaluate --model tiny-random --benchmarks heldout", "not a benchmark"),
    ("evaluate --model runs/none/artifact --benchmarks retention/facts", "no such model folder"),
    ("evaluate --model adapter --benchmarks retention/facts", "no such model folder; got 'runs/gone/artifact'"),
    ("evaluate --model empty --benchmarks retention/facts", "no model in this folder"),
    ("rollout --model tiny-random --split nosuch", "nosuch"),
    ("rollout --model tiny-random --split heldout", "heldout"),
    ("rollout --model tiny-rnadom", "unknown model"),
    ("rollout --model gold --benchmarks bfcl/nosuch", "unknown split"),
    ("train sft --model tiny-random", "no such file of records; got 'runs/build/records.jsonl'"),
    ("train sft --model ./none --method.records rows.jsonl", "no such model folder"),
    ("replay --store none --teachers []", "no trace store here; got 'none'"),
    ("rollout --model gold --benchmarks bfcl/simple_python:20", "unknown split"),
    ("ingest none.jsonl", "no such file or folder; got 'none.jsonl'"),
    ("build none", "no trace store here"),
    ("build --replays none", "no replays here"),
    ("export none --to openai -o out.jsonl", "no trace store here"),
    ("gate --parent none --candidate none", "no report here"),
    ("promote none --verdict none", "none"),
    ("serve none.json", "no champion here"),
    ("serve ./none", "no such model folder"),
]


@pytest.mark.parametrize(("line", "told"), WRONG, ids=[line for line, _ in WRONG])
@pytest.mark.parametrize("dry", [["--dry-run"], []], ids=["dry", "run"])
def test_one_line_and_no_folder(line: str, told: str, dry: list[str]) -> None:
    Path("rows.jsonl").write_text("{}\n")
    Path("empty").mkdir()
    Path("adapter").mkdir()
    Path("adapter/adapter_config.json").write_text(json.dumps(ADAPTER))
    done = CliRunner().invoke(cli, [*line.split(), *dry])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert told in done.stderr
    assert not Path("runs").exists()


def test_a_taken_port_is_told_before_the_model_is_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(cli, ["serve", "tiny-random", "--port", str(port), "--dry-run"])
    assert done.exit_code == 2
    assert f"port {port} is taken" in done.stderr
    assert done.stderr.count("--port 0") == 1
    assert "--resume" not in done.stderr


def test_what_can_work_passes() -> None:
    Path("rows.jsonl").write_text("{}\n")
    for line in (
        "evaluate --model tiny-random --benchmarks function_calling/heldout:5",
        "rollout --model gold --n 3",
        "train sft --model tiny-random --method.records rows.jsonl",
        "ingest *.jsonl",
        "evaluate --model someone/on-the-hub --benchmarks retention/facts",
    ):
        done = CliRunner().invoke(cli, [*line.split(), "--dry-run"])
        assert done.exit_code == 0, done.stderr


def cycle(*stages: tuple[str, dict[str, Any]]) -> CycleConfig:
    listed = [{"name": f"s{n}", "verb": verb, "with": settings} for n, (verb, settings) in enumerate(stages)]
    return CycleConfig.model_validate({"name": "turn", "stages": listed, "recipe": "."})


LOCAL = {"name": "a", "kind": "local", "model": "./no"}
SFT = {"name": "sft", "records": "${s0.traces}"}
ROLLOUT = ("rollout", {"model": "tiny-random", "n": 2})


@pytest.mark.parametrize(
    ("stage", "told"),
    [
        (("evaluate", {"model": "${s0.traces}", "benchmarks": ["function_calling/nosuch"]}), "unknown split"),
        (("evaluate", {"model": "runs/none/artifact", "benchmarks": ["retention/facts"]}), "no such model folder"),
        (("rollout", {"model": "${s0.traces}", "split": "heldout"}), "heldout"),
        (("ingest", {"paths": ["${s0.traces}", "none.jsonl"]}), "no such file or folder; got 'none.jsonl'"),
        (("ingest", {"paths": ["${recipe}/none.jsonl"]}), "no such file or folder"),
        (("replay", {"store": "${s0.traces}", "teachers": [LOCAL]}), "no such model folder"),
        (("train", {"model": "./no", "method": {"name": "sft", "records": "${s0.traces}"}}), "no such model folder"),
        (("train", {"model": "tiny-random", "method": {"name": "sft", "records": "no.jsonl"}}), "no such file of rec"),
        (("train", {"method": SFT, "channels": {"preference": {"beta": 0.1}}}), "the method feeds no such channel"),
        (("train", {"method": SFT, "channels": {"cross_entropy": {"objectiv": "dft"}}}), "objectiv"),
    ],
)  # fmt: skip
def test_a_cycle_checks_every_stage_before_the_first(stage: tuple[str, dict[str, Any]], told: str) -> None:
    with pytest.raises(ConfigError, match=r"^stage 's1': ") as error:
        check(cycle(ROLLOUT, stage))
    assert told in str(error.value)


def test_what_an_earlier_stage_makes_need_not_be_there() -> None:
    """By reference, or by a path that both name: the store that one stage writes and the next one reads."""
    Path("log.jsonl").write_text("{}\n")
    plan = check(
        cycle(
            ("ingest", {"paths": ["log.jsonl"], "store": "store"}),
            ("build", {"store": "store", "kinds": ["taken"]}),
            ("train", {"model": "tiny-random", "method": {"name": "sft", "records": "${s1.path}"}}),
            ("evaluate", {"model": "${s2.artifact}", "benchmarks": ["retention/facts:3"]}),
        )
    )
    assert [stage["verb"] for stage in plan] == ["ingest", "build", "train", "evaluate"]
