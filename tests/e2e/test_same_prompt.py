"""What a model is trained on is what it is asked: from a task to a row of records and back, token for token."""

from __future__ import annotations

from pathlib import Path

from postgrad.envs import load_environment, training_tasks
from postgrad.models.policy import load_policy
from postgrad.signals.rows.records import read_records
from postgrad.verbs import build, ingest, rollout


def test_rows_built_from_a_rollout_render_as_their_tasks(tmp_path: Path) -> None:
    """Tools with parameters out of alphabetical order go through capture, store and rows in the order given."""
    acted = rollout.run(rollout.RolloutConfig(model="gold", n=40), tmp_path / "rollout")
    read = ingest.run(ingest.IngestConfig(paths=[acted["traces"]]), tmp_path / "ingest")
    built = build.run(build.BuildConfig(store=Path(read["store"]), kinds=("verified",)), tmp_path / "build")
    renderer = load_policy("tiny-random").renderer
    tasks = training_tasks(load_environment("function_calling"), "train", 40)
    asked = {tuple(renderer.prompt(task.messages, task.tools)): task for task in tasks}
    records = list(read_records(Path(built["path"])))
    assert len(records) == built["records"]["total"] >= 35
    for record in records:
        task = asked[tuple(renderer.prompt(record.messages, record.tools))]
        assert task.reference is not None
        assert renderer.action(record.action) == renderer.action(task.reference)
    assert any(list(tool.parameters["properties"]) != sorted(tool.parameters["properties"]) for tool in tasks[0].tools)
