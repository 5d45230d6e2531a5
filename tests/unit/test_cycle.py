"""The cycle on small stages of its own kind: order, references, resuming, changed stages, gates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from postgrad.core.errors import ConfigError
from postgrad.cycle import CycleConfig, check, command, run

ADDING, JUDGING = "stages.adding", "stages.judging"


def stage(name: str, verb: str = ADDING, **settings: Any) -> dict[str, Any]:
    return {"name": name, "verb": verb, "with": settings}


def cycle(*stages: dict[str, Any], **rest: Any) -> CycleConfig:
    return CycleConfig.model_validate({"name": "turn", "stages": stages, **rest})


def statuses(result: dict[str, Any]) -> list[str]:
    return [stage["status"] for stage in result["stages"]]


def calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text().splitlines()


def test_a_reference_carries_the_value_and_its_type(tmp_path: Path) -> None:
    """0 + 3 * 1 = 3; starting there, 3 + 3 * 2 = 9."""
    config = cycle(
        stage("first"),
        stage("second", start="${first.total}", step=2),
        summary={"nested": ["${second.total}", "total ${second.total}, $${second.total}"], "at": "${first.folder}"},
    )
    result = run(config, tmp_path)
    assert result["nested"] == [9.0, "total 9.0, ${second.total}"]
    assert result["at"] == str(tmp_path / "01-first")
    assert json.loads((tmp_path / "02-second/result.json").read_text())["total"] == 9.0


def test_a_second_call_keeps_everything(tmp_path: Path) -> None:
    config = cycle(stage("first"), stage("second", start="${first.total}"), summary={"total": "${second.total}"})
    first = run(config, tmp_path)
    second = run(config, tmp_path)
    assert (statuses(first), statuses(second)) == (["ran", "ran"], ["kept", "kept"])
    assert second["total"] == first["total"] == 6.0
    assert second["seconds"] == first["seconds"]
    assert calls(tmp_path) == ["01-first kept 0", "02-second kept 0"]


def test_a_changed_stage_reruns_with_what_depends_on_it_and_nothing_else(tmp_path: Path) -> None:
    def config(step: int) -> CycleConfig:
        return cycle(
            stage("a"),
            stage("b", step=step),
            stage("c", start="${b.total}"),
            stage("d", start="${a.total}"),
            {**stage("e"), "needs": ["c"]},
        )

    run(config(1), tmp_path)
    assert statuses(run(config(2), tmp_path)) == ["kept", "ran", "ran", "kept", "ran"]
    assert calls(tmp_path)[5:] == ["02-b kept 0", "03-c kept 0", "05-e kept 0"], "a changed stage starts empty"


def test_a_changed_input_file_reruns_its_stage_and_what_follows(tmp_path: Path) -> None:
    """The dependent stage reruns although the value that it refers to may stay the same."""
    source = tmp_path / "source.txt"
    source.write_text("1")
    config = cycle(stage("a", source=str(source)), stage("b", start="${a.kept}"))
    run(config, tmp_path / "run")
    source.write_text("2")
    assert statuses(run(config, tmp_path / "run")) == ["ran", "ran"]


def test_a_gate_that_says_no_stops_the_turn_but_not_the_report(tmp_path: Path) -> None:
    """0 + 3 * 1 = 3 < 4. What refers to a stage that did not run is null."""
    config = cycle(
        stage("a"),
        stage("gate", JUDGING, value="${a.total}", threshold=4),
        stage("promote"),
        {**stage("report", source="${promote.log}"), "always": True},
        summary={"decision": "${gate.decision}", "promoted": "${promote.total}", "report": "${report.total}"},
    )
    result = run(config, tmp_path)
    assert statuses(result) == ["ran", "ran", "not run", "ran"]
    assert result["passed"] is False
    assert (result["decision"], result["promoted"], result["report"]) == ("iterate", None, 3.0)
    assert not (tmp_path / "03-promote").exists()


def test_a_key_that_a_result_lacks_is_told_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reference \$\{a.totl\}: there is no 'totl'; did you mean 'total'"):
        run(cycle(stage("a"), stage("b", start="${a.totl}")), tmp_path)


def test_the_exit_code_is_the_gates(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"name": "t", "stages": [stage("a"), stage("g", JUDGING, value="${a.total}")]}))
    told = CliRunner().invoke(command, [str(recipe), "--run", str(tmp_path / "run"), "--json"])
    assert (told.exit_code, json.loads(told.stdout)["passed"]) == (0, True)
    more = ["--stages.g.with.threshold", "4"]
    told = CliRunner().invoke(command, [str(recipe), "--run", str(tmp_path / "run"), "--json", *more])
    assert told.exit_code == 1
    assert statuses(json.loads(told.stdout)) == ["kept", "ran"]


@pytest.mark.parametrize(
    ("stages", "told"),
    [
        ([stage("a", setp=1)], "unknown key 'setp' in stage 'a': did you mean 'step'?"),
        ([stage("a", setp="${b.x}")], "no earlier stage"),
        ([stage("b"), stage("a", setp="${b.total}")], "unknown key 'setp'"),
        ([stage("b"), stage("a", start="${b.total}", times="x")], "'times' in stage 'a': got 'x'"),
        ([stage("a", start="${b.total}"), stage("b")], "refers to 'b', which is no earlier stage"),
        ([stage("a"), stage("a")], "the name 'a' is taken"),
        ([stage("a", "trian")], "did you mean 'train'?"),
        ([stage("a", "cycle")], "unknown verb 'cycle'"),
        ([stage("a", "no.such_module")], "cannot import 'no.such_module'"),
        ([stage("a", "os.path")], "'os.path' is no verb"),
        ([{**stage("a"), "needs": ["z"]}], "refers to 'z'"),
    ],
)
def test_all_stages_are_checked_before_the_first_starts(
    stages: list[dict[str, Any]], told: str, tmp_path: Path
) -> None:
    config = cycle(stage("good"), *stages)
    with pytest.raises(ConfigError) as error:
        run(config, tmp_path / "run")
    assert told in str(error.value)
    assert not (tmp_path / "run").exists()


def test_an_unknown_name_in_the_summary_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"summary refers to 'frist'.*did you mean 'first'"):
        check(cycle(stage("first"), summary={"x": "${frist.total}"}))


def test_a_folder_that_is_not_ours_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "01-a").mkdir()
    (tmp_path / "01-a/thesis.txt").write_text("dear")
    with pytest.raises(ConfigError, match="not from a cycle"):
        run(cycle(stage("a")), tmp_path)
    run_fresh = cycle(stage("a"), fresh=True)
    with pytest.raises(ConfigError, match="not from a cycle"):
        run(run_fresh, tmp_path)
    assert (tmp_path / "01-a/thesis.txt").read_text() == "dear"


def test_fresh_starts_over(tmp_path: Path) -> None:
    run(cycle(stage("a")), tmp_path)
    assert statuses(run(cycle(stage("a"), fresh=True), tmp_path)) == ["ran"]
    assert "fresh" not in cycle(stage("a"), fresh=True).resolved(), "a resumed run must not start over again"


def test_killed_in_a_stage_the_same_command_goes_on_there(tmp_path: Path) -> None:
    """SIGKILL after the first of three lines of the second stage: the first stage is kept, the second finds its line,
    and the result is that of an unbroken run: 3 + 3 + 3 = 9."""
    fuse = tmp_path / "run/fuse"
    fuse.parent.mkdir()
    fuse.touch()
    recipe = tmp_path / "recipe.yaml"
    stages = [stage("a"), stage("b", start="${a.total}", die_at=str(fuse)), stage("c", start="${b.total}")]
    recipe.write_text(yaml.safe_dump({"name": "t", "stages": stages, "summary": {"total": "${c.total}"}}))
    arguments = [sys.executable, "-m", "postgrad", "cycle", str(recipe), "--run", str(tmp_path / "run"), "--json"]

    def call() -> subprocess.CompletedProcess[str]:
        paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]
        environment = {"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin"}
        return subprocess.run(arguments, env=environment, capture_output=True, text=True, timeout=60)

    assert call().returncode == -9
    assert not (tmp_path / "run/02-b/result.json").exists()
    done = call()
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert statuses(result) == ["kept", "ran", "ran"]
    assert result["total"] == 9.0
    assert calls(tmp_path / "run") == ["01-a kept 0", "02-b kept 1", "03-c kept 0"]
