"""One file a verb. The table is text, so that the command line can list verbs without importing any."""

from __future__ import annotations

VERBS: dict[str, tuple[str, str]] = {
    "record": ("postgrad.verbs.record:command", "Record an agent's calls to its API as exact traces."),
    "ingest": ("postgrad.verbs.ingest:command", "Read traces of many formats into a store, and find error sites."),
    "export": ("postgrad.verbs.export:command", "Write traces in another tool's form, with a report of losses."),
    "replay": ("postgrad.verbs.replay:command", "Ask teachers what they would have done at chosen steps."),
    "correct": ("postgrad.verbs.correct:command", "Say what an answer should have been; it becomes a training pair."),
    "build": ("postgrad.verbs.build:command", "Turn traces and teachers' answers into training records."),
    "rollout": ("postgrad.verbs.rollout:command", "Let a model act on an environment's tasks and record the traces."),
    "train": ("postgrad.verbs.train:command", "Train a causal language model with a method's channels."),
    "evaluate": ("postgrad.verbs.evaluate:command", "Score a model on held-out tasks, with n and standard error."),
    "gate": ("postgrad.verbs.gate:command", "Compare a candidate with its parent: promote, iterate or roll back."),
    "promote": ("postgrad.verbs.promote:command", "Point champion.json at an artifact that a gate passed."),
    "serve": ("postgrad.verbs.serve:command", "Serve a model over the chat-completions API and capture traces."),
    "cycle": ("postgrad.cycle:command", "Run a recipe of stages, resumable and gated."),
    "demo": ("postgrad.cycle:demo", "One turn of the whole wheel on a small model: the packaged recipe 'demo'."),
    "show": ("postgrad.verbs.show:command", "Print a run folder, a trace store or an artifact."),
    "doctor": ("postgrad.verbs.doctor:command", "Print versions, machine, cache, and what is missing."),
}
"""Verb -> (where its click command is, one line of help)."""
