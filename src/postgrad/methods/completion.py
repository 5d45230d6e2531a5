"""`Completion`: what a fresh rollout leaves for credit and units."""

from __future__ import annotations

from dataclasses import dataclass

from postgrad.core.actor import Answer
from postgrad.core.task import Grade, Task
from postgrad.methods.turns import Observed
from postgrad.models.sample import Sample


@dataclass(frozen=True)
class Completion:
    """One sampled action of the policy on a task."""

    task: Task
    prompt: tuple[int, ...]
    sample: Sample
    answer: Answer
    grade: Grade
    observed: tuple[Observed, ...] = ()
    """What others wrote between the turns; then `sample` holds the tokens of all turns."""
