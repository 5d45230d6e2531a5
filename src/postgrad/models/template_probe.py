"""What all that probes a chat template shares: the template at work, and marks that can be found again in its text.

A mark is a text of private characters, which no template changes. The user's turn is one mark, so that what stands
behind it is the template's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from postgrad.core.message import Tool

PROBE_TOOL = Tool("probe_tool", "A probe.", {"type": "object", "properties": {}})
NAMES, IDS = (PROBE_TOOL.name, "other_tool"), ("probecal0", "probecal1")
KEYS, VALUES, SAID = ("\ue003", "\ue004"), ("\ue005", "\ue006"), "\ue007"
MARKS = re.compile("\ue000(\\d+)\ue001")
_END = "\ue001"


class Render(Protocol):
    """A template at work."""

    def __call__(self, turns: list[dict[str, Any]], *, tools: Sequence[Tool] = (), generation: bool = False) -> str:
        """Render turns, with the tools and the generation prompt if wanted."""
        ...


def mark(number: int) -> str:
    """The mark in the place of a content."""
    return f"\ue000{number}{_END}"


def behind_mark(text: str) -> str:
    """What stands behind the last content: in an exchange without words of the answer, behind the user's."""
    return text[text.rfind(_END) + 1 :]


def answer_in(text: str, opened: str) -> str | None:
    """The answer in the text of an exchange; `opened` is the text that asks for it, ending in the generation prompt.

    That is all behind the generation prompt, or behind what is left of it where it opens a thinking part.
    """
    rest, asked = behind_mark(text), behind_mark(opened)
    start = next((part for part in (asked, asked.partition("<think>")[0]) if rest.startswith(part)), None)
    return None if start is None else rest.removeprefix(start)
