"""`RunDir`: the folder that holds everything a run was and did.

    config.json        the verb and its resolved configuration
    environment.json   versions, machine, git revision
    inputs.json        path -> SHA-256 of what was read
    metrics.jsonl      one object a step
    checkpoints/  samples/
    report.json  report.html
    result.json        what the verb returned; its presence means that the run is complete

Files are written in one step, except metrics.jsonl, which grows by whole lines: a process killed inside a line leaves
a torn one, which the next opening drops. Numbers that are not finite are stored as null, because JSON has no word
for them. One process at a time: `locked` holds the folder, and the system frees it when the process dies.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from postgrad.core.errors import ConfigError, DataError, OutsideFailure
from postgrad.core.files import write_json, write_text
from postgrad.run.environment import environment
from postgrad.run.inputs import input_hashes
from postgrad.run.plain import plain, result_json


class RunDir:
    """A run folder; it is created on first use of anything that writes."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._metrics_checked = False

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints, created."""
        return self._folder("checkpoints")

    @property
    def samples(self) -> Path:
        """Folder of sampled texts, created."""
        return self._folder("samples")

    @property
    def metrics_path(self) -> Path:
        """metrics.jsonl."""
        return self.path / "metrics.jsonl"

    @property
    def report_json(self) -> Path:
        """report.json."""
        return self.path / "report.json"

    @property
    def report_html(self) -> Path:
        """report.html."""
        return self.path / "report.html"

    def start(self, verb: str, config: Mapping[str, Any]) -> None:
        """Write config.json and environment.json; until `finish` the run is not complete (again)."""
        (self.path / "result.json").unlink(missing_ok=True)
        write_json(self.path / "config.json", {"verb": verb, "config": config})
        write_json(self.path / "environment.json", environment())

    def started(self) -> tuple[str, dict[str, Any]] | None:
        """The verb and configuration of config.json; None in a folder where no run was started.

        Raises:
            DataError: config.json is broken.
            ConfigError: a file lies where the folder should be.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(
                "a run folder cannot be a file", got=str(self.path), expected="a new folder or a run folder"
            )
        value = self._read("config.json")
        return None if value is None else (str(value["verb"]), dict(value["config"]))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Store what the verb returned; from now on the run is complete."""
        write_text(self.path / "result.json", result_json(result) + "\n")

    def result(self) -> dict[str, Any] | None:
        """What the verb returned; None while the run is not complete."""
        return self._read("result.json")

    def record_inputs(self, paths: Iterable[Path]) -> dict[str, str]:
        """Hash files and folders that the run reads and write them to inputs.json."""
        hashes = input_hashes(paths)
        write_json(self.path / "inputs.json", hashes)
        return hashes

    def log(self, *, step: int, **values: Any) -> None:
        """Append one line to metrics.jsonl: `step` and named values (numbers, text, plain data, 0-d tensors).

        Raises:
            OutsideFailure: the disk is full or not writable.
        """
        line = json.dumps({"step": step, **{name: plain(value) for name, value in values.items()}}, allow_nan=False)
        try:
            self._open_metrics()
            with self.metrics_path.open("a", encoding="utf-8") as stream:
                stream.write(line + "\n")
        except OSError as error:
            raise OutsideFailure(f"cannot write {self.metrics_path}: {error.strerror or error}") from error

    def metrics(self) -> list[dict[str, Any]]:
        """All logged lines, oldest first."""
        if not self.metrics_path.exists():
            return []
        lines = self.metrics_path.read_bytes().split(b"\n")[:-1]  # what follows the last newline is torn
        return [json.loads(line) for line in lines]

    def rewind(self, step: int) -> None:
        """Drop metrics of steps after `step`: a run that resumes from its checkpoint will log them again."""
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
        if self.metrics_path.exists():
            temporary = self.metrics_path.with_suffix(".tmp")
            temporary.write_text("".join(kept), encoding="utf-8")
            os.replace(temporary, self.metrics_path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for this process.

        Raises:
            ConfigError: another process runs in it.
        """
        self._folder(".")
        with (self.path / ".lock").open("w") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigError(
                    "another process is running in this run folder",
                    got=str(self.path),
                    do="wait, or give another --run",
                ) from None
            yield

    @property
    def busy(self) -> bool:
        """Whether a process runs in the folder; looking changes nothing."""
        try:
            with (self.path / ".lock").open() as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _folder(self, name: str) -> Path:
        folder = self.path / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutsideFailure(f"cannot create {folder}: {error.strerror or error}") from error
        return folder

    def _open_metrics(self) -> None:
        """Once per opening: cut a torn last line off."""
        if self._metrics_checked:
            return
        self._folder(".")
        if self.metrics_path.exists():
            whole = self.metrics_path.read_bytes().rfind(b"\n") + 1
            if whole < self.metrics_path.stat().st_size:
                os.truncate(self.metrics_path, whole)
        self._metrics_checked = True

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self.path / name
        try:
            value = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataError(f"broken file: {error}", got=str(path), do="remove the run folder") from None
        if not isinstance(value, dict):
            raise DataError("broken file", got=str(path), expected="a JSON object")
        return value
