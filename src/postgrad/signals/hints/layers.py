"""Hints in layers, the cheapest first; the first that answers wins.

    template     by the kind of mistake, from tools and schema               nothing
    environment  the environment's own words                                 nothing
    recovery     in what a later call that worked was different              nothing
    teacher      in what the teachers' action is different                   the replay
    writer       a model writes it, in two sentences                         a call
    sibling      what another attempt that came out well did                 other attempts

Recovery and teacher tell the difference and not the answer, unless `literal` asks for the answer itself. The writer is
off unless one is configured. Whether a hint does any good is for the `effect` gate to find out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.signals.actions import same_action
from postgrad.signals.agreement import Agreement
from postgrad.signals.error_sites.sites import LEARNABLE, Site
from postgrad.signals.hints.difference import difference_hint
from postgrad.signals.hints.hint import environment_hint, gold_hint, kind_hint
from postgrad.signals.hints.siblings import Siblings
from postgrad.signals.hints.writer import HintWriter
from postgrad.signals.rows.preferences import BY_MAJORITY, Choice
from postgrad.signals.rows.recovery_rows import recovery_of
from postgrad.signals.words.fault_texts import first_words
from postgrad.teachers.replay import ReplayedStep

Layer = Literal["template", "environment", "recovery", "teacher", "writer", "sibling"]
ALL_LAYERS: tuple[Layer, ...] = ("template", "environment", "recovery", "teacher", "writer", "sibling")


class Hint(msgspec.Struct, frozen=True):
    """A hint, and the layer that gave it."""

    text: str
    layer: Layer


@dataclass(frozen=True)
class Hints:
    """What the layers work with. A layer that lacks its means has nothing to say.

    Attributes:
        layers: those that may speak; their order is always that of `ALL_LAYERS`.
        replayed: replayed steps by trace and step.
        choice: whose action the teacher layer takes.
        literal: tell the better action itself.
        writer: the model that writes hints.
        siblings: the successful attempts.
    """

    layers: tuple[Layer, ...] = ("template", "environment", "recovery")
    replayed: Mapping[tuple[str, int], ReplayedStep] = field(default_factory=dict)
    choice: Choice = BY_MAJORITY
    literal: bool = False
    writer: HintWriter | None = None
    siblings: Siblings | None = None

    def find(self, site: Site, trace: Trace) -> Hint | None:
        """The hint of the first layer that has one; never for a site that is not learnt from."""
        if site.verdict not in LEARNABLE:
            return None
        step = next(step for step in trace.steps if step.index == site.step)
        for layer in (layer for layer in ALL_LAYERS if layer in self.layers):
            text = _SPEAK[layer](self, site, trace, step)
            if text:
                return Hint(text, layer)
        return None

    def better(self, site: Site, trace: Trace) -> Message | None:
        """The action that is known to be better at `site`: the recovery, else the teachers'."""
        recovered = recovery_of(trace, site)
        if not isinstance(recovered, str):
            return Message("assistant", (recovered[3],))
        step = self.replayed.get((trace.id, site.step))
        chosen = self.choice.of(step) if step is not None else None
        return chosen.action if isinstance(chosen, Agreement) else None

    def _template(self, site: Site, trace: Trace, step: Step) -> str | None:
        return kind_hint(site, trace)

    def _environment(self, site: Site, trace: Trace, step: Step) -> str | None:
        return environment_hint(site, trace)

    def _recovery(self, site: Site, trace: Trace, step: Step) -> str | None:
        found = recovery_of(trace, site)
        if isinstance(found, str):
            return None
        _, _, call, better = found
        return self._told(Message("assistant", (call,)), Message("assistant", (better,)))

    def _teacher(self, site: Site, trace: Trace, step: Step) -> str | None:
        replayed = self.replayed.get((trace.id, site.step))
        found = self.choice.of(replayed) if replayed is not None else None
        return self._told(step.action, found.action) if isinstance(found, Agreement) else None

    def _written(self, site: Site, trace: Trace, step: Step) -> str | None:
        return self.writer(site, trace, step) if self.writer is not None else None

    def _sibling(self, site: Site, trace: Trace, step: Step) -> str | None:
        if self.siblings is None:
            return None
        action = self.siblings.action(trace, step)
        if action is not None:
            same = same_action(step.action, action, step.request.tools)
            return None if same else first_words(f"Another attempt came out well. {gold_hint(action)}")
        path = self.siblings.path(trace)
        return f"Another attempt at this came out well; its calls were: {', '.join(path)}." if path else None

    def _told(self, worse: Message, better: Message) -> str | None:
        told = difference_hint(worse, better)
        return first_words(gold_hint(better)) if told is not None and self.literal else told


OWN_EVIDENCE = Hints()
"""Hints from the trace alone."""
_SPEAK: dict[Layer, Callable[[Hints, Site, Trace, Step], str | None]] = {
    "template": Hints._template,
    "environment": Hints._environment,
    "recovery": Hints._recovery,
    "teacher": Hints._teacher,
    "writer": Hints._written,
    "sibling": Hints._sibling,
}
