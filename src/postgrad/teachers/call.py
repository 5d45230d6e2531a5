"""`Call`: one ask on its way to a teacher."""

from __future__ import annotations

from dataclasses import dataclass

from postgrad.core.actor import Ask, Sampling
from postgrad.core.canonical import canonical_json, content_id
from postgrad.teachers.journal import Line
from postgrad.teachers.providers.provider import Body, Provider, host_of


@dataclass(frozen=True)
class Call:
    """One ask on its way: as the student saw it, and as it leaves. `trace`, `shared`: see `NetworkTeacher.ask`."""

    teacher: str
    ask: Ask
    sent: Ask
    sampling: Sampling
    key: str
    trace: str = ""
    shared: int | None = None

    def leaving(self, provider: Provider, body: Body, *, name: str) -> Line:
        """The journal's line of a try that is about to leave; `name` is the try's."""
        return Line(
            "sent",
            name,
            self.teacher,
            host=host_of(provider.address),
            model=provider.model,
            request=content_id(body),
            bytes=len(canonical_json(body).encode()),
            key=self.key,
            trace=self.trace,
        )
