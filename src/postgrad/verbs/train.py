"""`postgrad train`: annotate with a method, train a policy, write an artifact with its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postgrad.core.artifact import MANIFEST, Manifest, write_manifest
from postgrad.core.canonical import file_sha256
from postgrad.core.errors import DataError
from postgrad.core.files import write_json
from postgrad.core.words import counted
from postgrad.methods.method import Counted, Method
from postgrad.run.launch import is_first_worker, own_device
from postgrad.run.progress import note
from postgrad.run.rundir import RunDir
from postgrad.verbs.command import verb_command
from postgrad.verbs.train_config import TrainVerb, build_method, training
from postgrad.verbs.train_help import topics

if TYPE_CHECKING:
    from postgrad.models.policy import Policy


CONFIG = TrainVerb

ROWS = "rows.json"
"""In the run folder: how many rows were used, dropped (and why) or split."""

GEOMETRY = "adapter_geometry.json"
"""In the run folder: ranks and norms of what the adapter learned, layer by layer."""


def plan(config: TrainVerb) -> dict[str, Any]:
    """Method and channels as they will be used; refuses what cannot work before anything is loaded."""
    method = build_method(config.method)
    return {"method": config.method["name"], "channels": training(config, method).channels}


def run(config: TrainVerb, out: Path) -> dict[str, Any]:
    """Train and save; goes on from the newest checkpoint in `out`, and does nothing where the artifact is whole."""
    from postgrad.models.policy import load_policy
    from postgrad.train.loop import train
    from postgrad.train.memory import uses_reference

    method = build_method(config.method)
    loop_config = training(config, method)
    folder, run_dir = out / "artifact", RunDir(out)
    data = _unchanged(method, out / "data.json")
    if not (folder / MANIFEST).exists():
        if is_first_worker():
            note(opening(config, method, out))
        policy = load_policy(config.model, adapter=config.adapter, device=own_device(config.device))
        if uses_reference(loop_config):  # with an adapter it is at hand anyway
            policy.freeze_reference()
        source = method.source(policy, seed=loop_config.loop.seed)
        if isinstance(source, Counted) and is_first_worker():
            write_json(out / ROWS, dict(source.rows))
            if source.rows:
                note(f"rows: {', '.join(f'{count:,} {what}' for what, count in source.rows.items())}")
        train(policy, source, loop_config, run_dir, companions=policy.companions(steps=config.loop.steps))
        if is_first_worker():
            policy = _whole(policy, config, run_dir)
            write_json(out / GEOMETRY, policy.geometry() or {})
            _save(policy, config, folder, data=data)
    metrics = run_dir.metrics()
    return {
        "artifact": str(folder),
        "steps": config.loop.steps,
        "tokens": sum(line.get("tokens", 0) for line in metrics),
        "last": {name: value for name, value in metrics[-1].items() if name.startswith("loss")} if metrics else {},
        "rows": json.loads((out / ROWS).read_bytes()) if (out / ROWS).exists() else {},
        "metrics": str(run_dir.metrics_path),
        "adapter": _adapter_summary(out / GEOMETRY),
    }


def opening(config: TrainVerb, method: Method, out: Path) -> str:
    """What is about to be trained on what, and where, in one line: a default recipe's file must not go unseen."""
    files = [f"{path} ({_rows(path)})" for path in method.data()]
    data = ", ".join(files) or "what the policy does itself"
    return f"train: {config.model} by {config.method['name']} on {data}, {counted(config.loop.steps, 'step')}, in {out}"


def _rows(path: Path) -> str:
    """How much lies in a file: rows of a JSONL file, bytes of another."""
    if path.suffix != ".jsonl":
        return f"{path.stat().st_size / 1e6:,.1f} MB"
    with path.open("rb") as stream:
        rows = sum(1 for line in stream if line.strip())
    return counted(rows, "row")


def _whole(policy: Policy, config: TrainVerb, run_dir: RunDir) -> Policy:
    """The policy with whole weights: where they were split over workers, loaded anew and set to the last ones."""
    from torch.distributed.tensor import DTensor

    from postgrad.models.policy import load_policy
    from postgrad.train.checkpoint import Checkpoints, put_weights, read_tensors

    if not any(isinstance(parameter, DTensor) for parameter in policy.model.parameters()):
        return policy
    fresh = load_policy(config.model, adapter=config.adapter, device=own_device(config.device))
    last = Checkpoints(run_dir.checkpoints, keep=config.loop.keep).latest()
    assert last is not None, "the loop saves its last step"
    trained = {name: p for name, p in fresh.model.named_parameters() if p.requires_grad}
    put_weights(read_tensors(last).weights, trained)
    return fresh


def _unchanged(method: Method, noted: Path) -> dict[str, str]:
    """Hashes of the files that the method reads, the same ones whenever the run goes on.

    Raises:
        DataError: a file is missing, or is not the one that the run began with.
    """
    for path in method.data():
        if not path.is_file():
            raise DataError("no such file of records", got=str(path), do="build it with `postgrad build`")
    data = {str(path): file_sha256(path) for path in method.data()}
    if noted.exists():
        for name, before in json.loads(noted.read_bytes()).items():
            if data.get(name) != before:
                raise DataError("the records changed since this run began", got=name, do="give another --run")
    elif is_first_worker():
        write_json(noted, data)
    return data


def _save(policy: Policy, config: TrainVerb, folder: Path, *, data: dict[str, str]) -> None:
    if config.save == "adapter":
        policy.save(folder)
    else:
        policy.save_merged(folder)
    name = config.method["name"]
    manifest = Manifest(parent=config.model, method=name, kind=config.save, recipe=config.resolved(), data=data)
    write_manifest(folder, manifest)


def _adapter_summary(path: Path) -> dict[str, Any]:
    """Of all layers together; nothing without an adapter."""
    told = json.loads(path.read_bytes()) if path.exists() else {}
    return {name: value for name, value in told.items() if name != "layers"}


def show(result: dict[str, Any]) -> str:
    """One line for a person."""
    losses = ", ".join(f"{name} {value:.4f}" for name, value in result["last"].items())
    steps, tokens = counted(result["steps"], "step"), counted(result["tokens"], "token")
    return f"{steps}, {tokens}; last {losses}; artifact: {result['artifact']}"


command = verb_command(
    "train",
    TrainVerb,
    run,
    help="Train a policy with a method (sft, cpt, dpo, sdpo, composer, es, ...) and write an artifact.",
    show=show,
    plan=plan,
    topics=topics,
)
