"""`Evidence`: one result with its call and all that the rules ask about it, read once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from postgrad.core.message import Tool, ToolCall, ToolResult
from postgrad.signals.error_sites.outcomes import Outcome, clean, read_outcome, typed_output
from postgrad.signals.shell.commands import ToolKind, command_of, kind_of, target_of
from postgrad.signals.shell.programs import only_reads, programs

_OPENING = 2000  # characters


class Evidence:
    """A result and its call.

    Attributes:
        call, result: the two.
        tools: tools offered at the step, () where they are unknown.
        session_names: names of files and folders in the trace's calls, without suffix; a module among them is known.
        text: the result without terminal colours.
    """

    def __init__(
        self,
        call: ToolCall,
        result: ToolResult,
        *,
        tools: Sequence[Tool] = (),
        session_names: frozenset[str] = frozenset(),
    ) -> None:
        self.call, self.result, self.tools, self.session_names = call, result, tuple(tools), session_names
        self.text = clean(result.text)

    @cached_property
    def kind(self) -> ToolKind:
        """What sort of tool it is."""
        return kind_of(self.call)

    @cached_property
    def line(self) -> str | None:
        """The command line of a shell call."""
        return command_of(self.call) if self.kind == "shell" else None

    @cached_property
    def target(self) -> str | None:
        """What the call works on."""
        return target_of(self.call)

    @cached_property
    def programs(self) -> tuple[str, ...]:
        """The programs of the command line, () for other tools."""
        return programs(self.line) if self.line is not None else ()

    @cached_property
    def outcome(self) -> Outcome:
        """Exit code and output; files that are read are taken as they are, frames in them are content."""
        framed = self.kind in ("shell", "code", "wait", "other") or self.result.is_error is True
        quotes = self.line is not None and not self.flagged and only_reads(self.line)
        text = typed_output(self.text, self.line) if "keystrokes" in (self.call.arguments or {}) else self.text
        return read_outcome(text, quotes=quotes) if framed else Outcome(None, text)

    @property
    def opening(self) -> str:
        """The first words of the result: where applications put their own."""
        return self.text.lstrip()[:_OPENING]

    @property
    def flagged(self) -> bool:
        """Whether the source itself says that the call failed."""
        return self.result.status not in ("ok", "pending") or self.result.is_error is True
