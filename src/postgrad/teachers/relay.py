"""`Relay`: what an actor is that answers by another one, whose name and kind it keeps: reports and caches see that one.

A subclass is an `Actor` once it says how it answers.
"""

from __future__ import annotations

from postgrad.core.actor import Actor


class Relay:
    """An actor in front of `actor`."""

    actor: Actor

    @property
    def name(self) -> str:
        """The actor's name."""
        return self.actor.name

    @property
    def kind(self) -> str:
        """The actor's kind."""
        return self.actor.kind
