"""`outline`: which step goes on from which, and how far to the right it stands.

A step goes on from the step before it unless it says otherwise. Of several steps that go on from one, the last that
was not abandoned carries the line on; the others begin branches, one place further to the right. Steps of a subagent
within the same trace stand to the right of the main line too.
"""

from __future__ import annotations

from dataclasses import dataclass

from postgrad.core.trace import Trace


@dataclass(frozen=True)
class Place:
    """A step's place in the tree: `parent` is the step before it on its path, None at a root."""

    step: int
    parent: int | None
    depth: int
    branches: bool


def outline(trace: Trace) -> list[Place]:
    """A place per step, in the order of the steps. Parents that are no earlier step are taken as roots."""
    parents: dict[int, int | None] = {}
    for step in trace.steps:
        before = step.index - 1 if step.parent is None else step.parent
        parents[step.index] = before if before in parents else None
    children: dict[int | None, list[int]] = {}
    for index, parent in parents.items():
        children.setdefault(parent, []).append(index)
    abandoned = {step.index for step in trace.steps if step.abandoned}
    heirs = {parent: ([one for one in ones if one not in abandoned] or ones)[-1] for parent, ones in children.items()}
    aside = {step.index for step in trace.steps if step.kind == "subagent"}
    aside = aside if len(aside) < len(trace.steps) else set()
    places: list[Place] = []
    depths: dict[int | None, int] = {None: 0}
    for index, parent in parents.items():
        depths[index] = depths[parent] + (parent is not None and heirs[parent] != index)
        places.append(Place(index, parent, depths[index] + (index in aside), len(children.get(index, ())) > 1))
    return places
