"""What is read from the source of a class is what Python would say of it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from postgrad.core.strict import Strict
from postgrad.run.class_source import class_of, summary, texts_below
from postgrad.run.schema import schema_lines


class Base(Strict):
    """The first paragraph
    of two lines.

    Not this.
    """

    a: int = 1
    """Of the base."""
    b: int = 2
    """Of the base, too."""


class Derived(Base):
    """Another."""

    b: int = 3
    """Of the class
    itself."""
    c: int = 4


def test_texts_come_from_the_class_and_then_from_its_bases() -> None:
    told = {line.path: line.description for line in schema_lines(Derived)}
    assert told == {"a": "Of the base.", "b": "Of the class itself.", "c": ""}


def test_a_summary_is_the_first_paragraph_on_one_line() -> None:
    assert summary(__name__, "Base") == "The first paragraph of two lines."


def test_a_docstring_that_begins_a_line_at_the_margin_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class seems to end in its docstring, so its own lines are no Python, and the module is read."""
    (tmp_path / "odd_margin.py").write_text('class A:\n    """One\nx two."""\n\n    a: int\n    "Text."\n\nB = 1\n')
    monkeypatch.syspath_prepend(tmp_path)
    assert summary("odd_margin", "A") == "One x two."
    found = class_of("odd_margin", "A")
    assert found is not None
    assert texts_below(found) == {"a": "Text."}


def test_what_has_no_file_has_no_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an interactive session, whose module is loaded and lies nowhere."""
    module = ModuleType("typed_in")
    monkeypatch.setitem(sys.modules, "typed_in", module)
    exec("class Typed(Strict):\n    a: int = 1\n    'Text.'\n", module.__dict__ | {"Strict": Strict}, module.__dict__)
    assert [line.description for line in schema_lines(module.__dict__["Typed"])] == [""]
