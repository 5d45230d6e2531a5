"""The run folder: torn lines, locking, what is written."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.run.rundir import RunDir


def test_metrics_come_back_as_logged(tmp_path: Path) -> None:
    """float32(0.1) is 0.10000000149011612 as a double; nan has no word in JSON."""
    run = RunDir(tmp_path)
    run.log(step=0, loss=np.float32(0.1), tokens=np.int64(7), channels={"rl": {"loss": float("nan")}})
    run.log(step=1, loss=0.5, name="x")
    assert run.metrics() == [
        {"step": 0, "loss": 0.10000000149011612, "tokens": 7, "channels": {"rl": {"loss": None}}},
        {"step": 1, "loss": 0.5, "name": "x"},
    ]


def test_a_torn_last_line_is_dropped_and_the_rest_goes_on(tmp_path: Path) -> None:
    RunDir(tmp_path).log(step=0)
    with (tmp_path / "metrics.jsonl").open("a") as stream:
        stream.write('{"step": 1, "lo')
    again = RunDir(tmp_path)
    assert again.metrics() == [{"step": 0}]
    again.log(step=1)
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 0}\n{"step": 1}\n'


def test_rewinding_drops_what_comes_after_the_checkpoint(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    for step in range(4):
        run.log(step=step)
    run.rewind(1)
    run.log(step=2)
    assert [line["step"] for line in run.metrics()] == [0, 1, 2]


def test_start_writes_configuration_and_environment(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    assert run.started() is None
    run.start("train", {"lr": 1e-4})
    assert run.started() == ("train", {"lr": 1e-4})
    environment = json.loads((tmp_path / "run/environment.json").read_text())
    assert environment["versions"]["pydantic"]
    assert environment.keys() >= {"python", "platform", "git", "postgrad"}
    assert run.result() is None
    run.finish({"n": 1})
    assert run.result() == {"n": 1}
    run.start("train", {"lr": 1e-4})
    assert run.result() is None, "a run that was started again is not complete"


def test_inputs_are_recorded_by_hash(tmp_path: Path) -> None:
    """The SHA-256 of "abc" is ba7816bf...f20015ad (FIPS 180-2, appendix B.1)."""
    file = tmp_path / "input.txt"
    file.write_text("abc")
    RunDir(tmp_path / "run").record_inputs([file, tmp_path / "absent"])
    (entry,) = json.loads((tmp_path / "run/inputs.json").read_text()).items()
    assert entry == (str(file), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(DataError, match="broken file"):
        RunDir(tmp_path).started()


def test_a_folder_that_cannot_be_made_is_an_outside_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutsideFailure, match="cannot create"):
        RunDir(tmp_path / "file/run").log(step=0)


def _hold(path: Path, held: multiprocessing.synchronize.Event) -> None:
    with RunDir(path).locked():
        held.set()
        multiprocessing.Event().wait(30)


def test_one_process_at_a_time_and_a_dead_one_holds_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    held = context.Event()
    process = context.Process(target=_hold, args=(tmp_path, held))
    process.start()
    assert held.wait(20)
    with pytest.raises(ConfigError, match="another process"), RunDir(tmp_path).locked():
        pass
    process.kill()
    process.join()
    with RunDir(tmp_path).locked():
        pass


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a run folder cannot be a file; got .*notes\.txt"):
        RunDir(path).started()
