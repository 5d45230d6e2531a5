"""`cycle`: one turn of the wheel, a recipe of stages that resumes after any kill and stops where a gate says no.

Each stage is a verb run in this process in its own folder RUN/NN-name. When it is done its result.json is written in
one step; a second call of the same command keeps every stage whose stamp is unchanged and runs the rest. The stamp
covers the verb, the resolved configuration, the hashes of files and folders that it names outside RUN, and the stamps
of the stages that it refers to (`${stage.key}`) or `needs`. So a changed stage runs again, and with it all that
depend on it. A stage that was cut off keeps its folder, and its verb goes on in it; a changed one starts empty.

A result with `passed: false` (a gate) ends the turn: of the stages after it only those marked `always` run (a report),
and the exit code is 1. Not covered: stages in parallel, loops of turns.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

from pydantic import Field

from postgrad.core.errors import ConfigError, UserError
from postgrad.core.files import write_json
from postgrad.run.config import Config, validate
from postgrad.run.config import check as check_config
from postgrad.run.inputs import input_hashes, paths_in, stamp, texts_in
from postgrad.run.nearest import nearest
from postgrad.run.progress import note
from postgrad.run.references import references, resolved, resolved_in_part, resolved_or_null
from postgrad.run.rundir import RunDir
from postgrad.verbs import VERBS
from postgrad.verbs.command import VerbOptions, verb_command
from postgrad.verbs.preflight import Known, preflight
from postgrad.verbs.stages_table import show

NOT_STAGES = ("cycle", "demo", "show", "doctor")
RESERVED = ("recipe", "run")


class Stage(Config):
    """One stage: a verb and its configuration."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    """Unique; `${name.key}` refers to its result."""
    verb: str
    """A verb of postgrad, or a module of your own with CONFIG and run."""
    settings: dict[str, Any] = Field(default_factory=dict, alias="with")
    """The verb's configuration."""
    needs: tuple[str, ...] = ()
    """Earlier stages that this one depends on without referring to them."""
    always: bool = False
    """Runs even after a gate said no."""


class CycleConfig(Config):
    """A turn of the wheel."""

    name: str
    """Names the turn."""
    stages: tuple[Stage, ...] = Field(min_length=1)
    """In the order in which they run."""
    summary: dict[str, Any] = Field(default_factory=dict)
    """What the turn reports: any shape of data whose references are filled from the stages' results."""
    recipe: Path | None = None
    """The folder that `${recipe}` stands for: where the recipe was found."""
    fresh: bool = Field(default=False, exclude=True)
    """Start over: remove what earlier calls left in the run folder."""


class Done(NamedTuple):
    """A stage's outcome. `status`: "ran", "kept" (nothing changed) or "not run" (a gate said no)."""

    stage: Stage
    folder: Path
    status: str
    seconds: float = 0.0
    stamp: str = ""
    result: Mapping[str, Any] = MappingProxyType({})


CONFIG = CycleConfig


def check(config: CycleConfig) -> list[dict[str, Any]]:
    """Validate every stage before the first one starts; returns the plan that --dry-run prints.

    Raises:
        ConfigError: a doubled or reserved name, an unknown verb, a reference to no earlier stage, a wrong setting,
            or what `preflight` finds.
    """
    earlier: list[str] = []
    coming: list[str] = []
    plan = []
    for number, stage in enumerate(config.stages, start=1):
        if stage.name in (*earlier, *RESERVED):
            raise ConfigError(f"stage {number}: the name '{stage.name}' is taken", do="give it another name")
        depends = _dependencies(stage)
        _require_known(depends, earlier, f"stage '{stage.name}'")
        coming = _check_settings(stage, config, coming)
        plan.append({"stage": stage.name, "folder": _folder_name(number, stage), "verb": stage.verb, "after": depends})
        earlier.append(stage.name)
    _require_known([_head(text) for _, text in references(config.summary)], [*earlier, *RESERVED], "summary")
    return plan


def run(config: CycleConfig, out: Path) -> dict[str, Any]:
    """Run what is not done yet, in order, in `out`.

    Returns:
        `name`, `run`, `stages` (name, verb, status, seconds, result), `seconds` (of all stages, whenever they ran),
        `passed`, and the recipe's summary.
    """
    check(config)
    if config.fresh:
        _clear(out)
    done: dict[str, Done] = {}
    for number, stage in enumerate(config.stages, start=1):
        folder = out / _folder_name(number, stage)
        if not _passed(done) and not stage.always:
            done[stage.name] = Done(stage, folder, "not run")
            continue
        label = f"[{number}/{len(config.stages)}] {stage.name} ({stage.verb})"
        done[stage.name] = _turn(stage, folder, done, scope=_scope(config, out, done), label=label)
    return {
        "name": config.name,
        "run": str(out),
        "stages": [_told(outcome) for outcome in done.values()],
        "seconds": round(sum(outcome.seconds for outcome in done.values()), 3),
        "passed": _passed(done),
        **resolved_or_null(config.summary, _scope(config, out, done)),
    }


def _check_settings(stage: Stage, config: CycleConfig, coming: list[str]) -> list[str]:
    """Check one stage's settings as far as they are known; gives the paths that it and the stages before may make."""
    model, settings = _module(stage).CONFIG, stage.settings
    open_paths = [path for path, _ in references(settings)]
    check_config(model, settings, source=f"stage '{stage.name}'", open_paths=open_paths)
    known = resolved_in_part(settings, {} if config.recipe is None else {"recipe": str(config.recipe)})
    try:
        preflight(stage.verb, Known.of_stage(model, known, coming))
    except UserError as error:
        raise ConfigError(f"stage '{stage.name}': {error}") from None
    return [*coming, *texts_in(known)]


def _turn(stage: Stage, folder: Path, done: Mapping[str, Done], *, scope: Mapping[str, Any], label: str) -> Done:
    """Keep the stage if nothing changed, else run it: in its folder if it was cut off, in an empty one otherwise."""
    module = _module(stage)
    fill = resolved if _passed(done) else resolved_or_null
    config = validate(module.CONFIG, fill(stage.settings, scope), source=f"stage '{stage.name}'")
    settings = config.resolved()
    before = [done[name].stamp for name in _dependencies(stage)]

    def current_stamp() -> str:
        return stamp(stage.verb, settings, before, input_hashes(paths_in(settings, outside=folder.parent)))

    directory, mark = RunDir(folder), folder / "stage.json"
    left = _left_behind(folder, mark)
    result = directory.result()
    now = current_stamp()
    if result is not None and left.get("complete") and left.get("stamp") == now:
        note(f"{label}: kept")
        return Done(stage, folder, "kept", left["seconds"], now, result)
    if left and (left.get("complete") or left.get("stamp") != now):
        shutil.rmtree(folder)
    note(label)
    write_json(mark, {"complete": False, "stamp": now})
    directory.start(stage.verb, settings)
    directory.record_inputs(paths_in(settings, outside=folder.parent))
    started = time.monotonic()
    directory.finish(module.run(config, folder))
    seconds = time.monotonic() - started
    # Hashed again: a stage may write where its configuration points (a store outside RUN), and that is its own doing.
    now = current_stamp()
    write_json(mark, {"complete": True, "stamp": now, "seconds": seconds})
    return Done(stage, folder, "ran", seconds, now, directory.result() or {})


def _left_behind(folder: Path, mark: Path) -> dict[str, Any]:
    """What an earlier call noted about the stage's folder.

    Raises:
        ConfigError: the folder is not empty and was not made by a cycle; it may be anyone's.
    """
    if mark.exists():
        noted: dict[str, Any] = json.loads(mark.read_bytes())
        return noted
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError("this folder is not from a cycle", got=str(folder), do="move it, or give another --run")
    return {}


def _clear(out: Path) -> None:
    for mark in out.glob("[0-9][0-9]-*/stage.json"):
        shutil.rmtree(mark.parent)


def _module(stage: Stage) -> Any:
    """The module with the verb's CONFIG and run.

    Raises:
        ConfigError: there is no such verb, or it cannot be a stage.
    """
    if stage.verb in VERBS and stage.verb not in NOT_STAGES:
        return import_module(VERBS[stage.verb][0].partition(":")[0])
    if "." not in stage.verb:
        known = [verb for verb in VERBS if verb not in NOT_STAGES]
        raise ConfigError(f"stage '{stage.name}': unknown verb '{stage.verb}'", do=nearest(stage.verb, known))
    try:
        module = import_module(stage.verb)
    except ModuleNotFoundError as error:
        raise ConfigError(f"stage '{stage.name}': cannot import '{stage.verb}': {error}") from None
    if not (hasattr(module, "CONFIG") and hasattr(module, "run")):
        raise ConfigError(f"stage '{stage.name}': '{stage.verb}' is no verb", expected="a module with CONFIG and run")
    return module


def _dependencies(stage: Stage) -> list[str]:
    """Names of the stages that this one refers to or needs, each once."""
    named = (_head(text) for _, text in references(stage.settings))
    return list(dict.fromkeys(name for name in (*stage.needs, *named) if name not in RESERVED))


def _require_known(names: Iterable[str], known: Sequence[str], who: str) -> None:
    for name in names:
        if name not in known:
            raise ConfigError(f"{who} refers to '{name}', which is no earlier stage", do=nearest(name, known))


def _head(reference: str) -> str:
    return reference.partition(".")[0]


def _folder_name(number: int, stage: Stage) -> str:
    return f"{number:02d}-{stage.name}"


def _passed(done: Mapping[str, Done]) -> bool:
    return all(outcome.result.get("passed") is not False for outcome in done.values())


def _scope(config: CycleConfig, out: Path, done: Mapping[str, Done]) -> dict[str, Any]:
    """What references may name: the two folders, and per finished stage its result and its `folder`."""
    results = {n: {"folder": str(d.folder), **d.result} for n, d in done.items() if d.status != "not run"}
    return {"recipe": str(config.recipe or Path()), "run": str(out), **results}


def _told(outcome: Done) -> dict[str, Any]:
    return {
        "name": outcome.stage.name,
        "verb": outcome.stage.verb,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
        "result": dict(outcome.result),
    }


def _options(**own: Unpack[VerbOptions]) -> VerbOptions:
    return {
        "show": show,
        "exit_code": lambda result: 0 if result["passed"] else 1,
        "plan": check,
        "revisable": True,
        "recipe_field": "recipe",
        **own,
    }


command = verb_command(
    "cycle",
    CycleConfig,
    run,
    **_options(help="Run a recipe of stages, resumable and gated; a second call keeps what is done."),
)
demo = verb_command(
    "demo",
    CycleConfig,
    run,
    **_options(
        help="One turn of the whole wheel on a small model; the same command goes on after an interruption.",
        default_recipe="demo",
        default_run=lambda config: Path("runs/demo"),
    ),
)
