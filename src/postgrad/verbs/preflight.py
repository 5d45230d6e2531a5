"""`preflight`: what is known to be wrong before a model is loaded or a folder is made.

`--dry-run` runs it, every verb begins with it, and a cycle does so for all of its stages before the first one starts:
names of models, environments, splits and benchmarks, files and folders that are read. What only an earlier stage will
make is not there yet: a value with a reference (`${stage.key}`) is unknown and passed over, and so is a path that an
earlier stage names as well.
A training's channels are known to torch only, so a stage that sets some is checked with it.
Not covered: whether a hub id exists, whether an endpoint answers, what lies in the files.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postgrad.core.errors import ConfigError, DataError, UserError
from postgrad.run.config import Config, validate
from postgrad.run.references import references
from postgrad.run.rundir import RunDir


@dataclass(frozen=True)
class Known:
    """The settings of a verb as far as they are known.

    Attributes:
        values: plain data; what is open is left out.
        open: keys of which some value is left out.
        coming: paths that earlier stages make.
    """

    values: Mapping[str, Any]
    open: frozenset[str] = frozenset()
    coming: Collection[str] = field(default=())

    @classmethod
    def of_stage(cls, model: type[Config], settings: Mapping[str, Any], coming: Collection[str]) -> Known:
        """Those of a stage: its own settings over the verb's defaults."""
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        optional = ((key, one) for key, one in fields.items() if not one.is_required())
        values = {key: one.get_default(call_default_factory=True) for key, one in optional} | dict(settings)
        opened = frozenset(key for key, value in settings.items() if any(references(value)))
        return cls({key: value for key, value in values.items() if not _is_open(value)}, opened, coming)

    def text(self, key: str) -> str | None:
        """The text or path at `key`; None where there is none or it is open."""
        value = self.values.get(key)
        return str(value) if isinstance(value, (str, Path)) and key not in self.open else None

    def texts(self, key: str) -> Iterator[str]:
        """The known texts of a list, or the one that stands for a list."""
        value = self.values.get(key)
        for one in (value,) if isinstance(value, (str, Path)) else value or ():
            if isinstance(one, (str, Path)) and not any(references(str(one))):
                yield str(one)

    def sections(self, key: str) -> Iterator[Mapping[str, Any]]:
        """The sections of a list, without what is open in them."""
        value = self.values.get(key)
        for one in value if isinstance(value, (list, tuple)) else ():
            if isinstance(one, Mapping):
                yield {name: item for name, item in one.items() if not any(references(item))}

    def expected(self, path: str) -> bool:
        """Whether an earlier stage makes `path`, or a folder around it."""
        return any(path == one or Path(one) in Path(path).parents for one in self.coming)


def preflight(verb: str, known: Known) -> None:
    """Refuse what cannot work.

    Raises:
        UserError: the first thing that is wrong, in the words of the part that would stumble over it.
    """
    check = CHECKS.get(verb)
    if check is not None:
        check(known)


def _is_open(value: Any) -> bool:
    """Whether nothing of the value is known: a text with a reference."""
    return isinstance(value, str) and any(references(value))


def _evaluate(known: Known) -> None:
    _model(known)
    for text in known.texts("benchmarks"):
        _benchmark(text, _seed(known))


def _rollout(known: Known) -> None:
    from postgrad.envs import load_environment, training_tasks

    if known.text("model") != "gold":
        _model(known)
    environment, split = known.text("environment"), known.text("split")
    if environment is not None and split is not None:
        n = known.values.get("n")
        training_tasks(load_environment(environment), split, n if isinstance(n, int) else None, _seed(known))
    for text in known.texts("benchmarks"):
        _tasks(*text.partition("/")[::2], None, 0)  # overlap is looked for in all of a split


def _train(known: Known) -> None:
    from postgrad.verbs.train_config import TrainVerb, build_method, training

    _model(known)
    section = known.values.get("method")
    if not isinstance(section, Mapping):
        return
    try:
        method = build_method(dict(section))
    except ConfigError:
        if "method" in known.open:  # a number that an earlier stage gives
            return
        raise
    for path in method.data() if "method" not in known.open else ():
        if not known.expected(str(path)) and not path.is_file():
            raise DataError("no such file of records", got=str(path), do="build it with `postgrad build`")
    settings = {key: known.values[key] for key in _LOOP if key in known.values}
    if settings.get("channels") and not known.open & settings.keys():
        training(validate(TrainVerb, {**settings, "method": dict(section)}, source="train"), method)


_LOOP = ("channels", "optim", "loop", "memory", "sync")
"""Keys of a training that its method's channels are checked with."""


def _replay(known: Known) -> None:
    _store(known)
    for teacher in known.sections("teachers"):
        if teacher.get("kind") == "local" and teacher.get("model"):
            _require_model(str(teacher["model"]), known)
        if teacher.get("environment"):
            _benchmark(str(teacher["environment"]), 0)
        tape = str(teacher.get("tape") or teacher.get("path") or "")
        if teacher.get("kind") == "cassette" and tape and not known.expected(tape) and not Path(tape).is_file():
            raise DataError("no tape here", got=tape, expected="a file that a teacher was recorded on")


def _ingest(known: Known) -> None:
    for text in known.texts("paths"):
        path = str(Path(text).expanduser())
        inside = any(parent.is_file() for parent in Path(path).parents)  # of an archive
        if text and not inside and not known.expected(text) and not Path(path).exists() and not glob.glob(path):
            raise DataError("no such file or folder", got=text, expected="a file, a folder, an archive or a glob")


def _build(known: Known) -> None:
    _store(known)
    replays = known.text("replays")
    if replays is not None and not known.expected(replays) and not Path(replays).exists():
        raise DataError("no replays here", got=replays, expected="replayed.jsonl of `postgrad replay`, or its folder")


def _gate(known: Known) -> None:
    from postgrad.evaluate.reports import read_report

    for key in ("parent", "candidate"):
        path = known.text(key)
        if path is not None and not known.expected(path):
            read_report(Path(path))
    for folder in known.texts("training"):
        if not known.expected(folder) and not RunDir(Path(folder)).metrics_path.exists():
            raise DataError("no training here", got=folder, expected="a run folder with metrics.jsonl")


def _promote(known: Known) -> None:
    from postgrad.core.artifact import read_manifest

    artifact, verdict = known.text("artifact"), known.text("verdict")
    if artifact is not None and not known.expected(artifact):
        read_manifest(Path(artifact))
    if verdict is not None and not known.expected(verdict) and not Path(verdict).is_file():
        raise DataError("no verdict here", got=verdict, expected="verdict.json of `postgrad gate`")


def _serve(known: Known) -> None:
    from postgrad.core.champion import champion_artifact
    from postgrad.serve.listening import require_free

    model, host, port = known.text("model"), known.text("host"), known.values.get("port")
    if host is not None and isinstance(port, int):
        require_free(host, port)
    if model is None or known.expected(model):
        return
    _require_model(str(champion_artifact(Path(model))) if model.endswith(".json") else model, known)


def _correct(known: Known) -> None:
    where = known.text("where")
    if where is not None and not known.expected(where) and not Path(where).exists():
        raise DataError("no such file or folder", got=where, expected="captures, a run folder with some, or a store")


def _store(known: Known) -> None:
    from postgrad.traces.storage.store import Store

    path = known.text("store")
    if path is not None and not known.expected(path) and not Store(Path(path)).exists:
        raise DataError("no trace store here", got=path, do="make one with `postgrad ingest PATH -o STORE`")


def _model(known: Known) -> None:
    name = known.text("model")
    if name is not None:
        _require_model(name, known)


def _require_model(name: str, known: Known) -> None:
    from postgrad.models.resolve import require_model

    if not known.expected(name):
        require_model(name)


def _benchmark(text: str, seed: int) -> None:
    """Its environment, split and number of tasks; what is not installed is reported as unmeasured, not refused."""
    from postgrad.evaluate.benchmarks import Benchmark

    benchmark = Benchmark.parse(text)
    _tasks(benchmark.environment, benchmark.split, benchmark.n, seed)


def _tasks(environment: str, split: str, n: int | None, seed: int) -> None:
    from postgrad.envs import load_environment

    try:
        load_environment(environment).tasks(split, n, seed)
    except ConfigError:
        raise
    except UserError:
        return


def _seed(known: Known) -> int:
    seed = known.values.get("seed", 0)
    return seed if isinstance(seed, int) else 0


CHECKS: Mapping[str, Callable[[Known], None]] = {
    "evaluate": _evaluate,
    "rollout": _rollout,
    "train": _train,
    "replay": _replay,
    "ingest": _ingest,
    "build": _build,
    "correct": _correct,
    "export": _store,
    "gate": _gate,
    "promote": _promote,
    "serve": _serve,
}
"""Verb -> its check."""
