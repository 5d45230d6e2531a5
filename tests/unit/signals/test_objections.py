"""Words that take a finished answer back, and words that only sound so."""

from __future__ import annotations

import pytest

from postgrad.signals.objections import objects


@pytest.mark.parametrize(
    "words",
    [
        "No, I asked for the other file.",
        "not that one",
        "undo that, please",
        "you forgot the header",
        "that's wrong",
        "Nein, das ist falsch.",
        "还是不对",
        "не то",
    ],
)
def test_an_objection(words: str) -> None:
    assert objects(words)


@pytest.mark.parametrize(
    "words",
    [
        "No problem, thanks!",
        "not bad, now add a test",
        "How do I undo a commit?",
        "Great. What does revert do?",
        "now the tests please",
        "Nichts weiter, danke.",
    ],
)
def test_no_objection(words: str) -> None:
    assert not objects(words)
