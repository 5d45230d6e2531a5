"""Hints written by a model: at most two sentences and 600 characters, off unless one is configured.

The writer is any actor; what it says is kept by the actor's own cache, so that a second build pays for nothing. What is
longer is cut to two sentences; what is then still too long is no hint.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from postgrad.core.actor import Actor, Ask, Sampling
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace
from postgrad.signals.error_sites.site import Site
from postgrad.signals.rows.shown import shown
from postgrad.signals.words.fault_texts import first_words

SENTENCES, CHARACTERS = 2, 600
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])(?:[\"')\]]*)(?:\s+|$)|(?<=[。！？])")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no)\.|\b[A-Z]\.)$", re.IGNORECASE)
_PROMPT = """An assistant is about to make a mistake. Write a hint that would have prevented it, as if said to it before
it acts: at most two sentences, plain words, no greeting, and not the right answer itself.

The last message it saw:
{context}

What it did:
{action}

What came of it:
{evidence}

The hint:"""
_SHOWN = 3000  # characters of each part


@dataclass(frozen=True)
class HintWriter:
    """Asks `actor` for hints."""

    actor: Actor

    def __call__(self, site: Site, trace: Trace, step: Step) -> str | None:
        """A hint for `site`, None where the writer has none that is short enough.

        Raises:
            OutsideFailure: the writer cannot be reached.
        """
        context = trace.context(step)
        prompt = _PROMPT.format(
            context=shown(context[-1])[-_SHOWN:] if context else "",
            action=shown(step.action)[:_SHOWN],
            evidence=first_words(site.text, limit=_SHOWN),
        )
        (answer,) = self.actor.answer([Ask((Message.of("user", prompt),))], Sampling(max_new_tokens=160))
        return None if answer.message is None else short(answer.message.text)


def short(text: str) -> str | None:
    """The first two sentences, None if they are none or longer than 600 characters."""
    plain = " ".join(text.split()).strip("\"'` ")
    sentences = _sentences(plain)
    hint = " ".join(sentences[:SENTENCES])
    return hint if 0 < len(hint) <= CHARACTERS else None


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    start = 0
    for end in (match.end() for match in _SENTENCE_END.finditer(text)):
        piece = text[start:end].strip()
        if piece and not _ABBREVIATION.search(piece):
            found.append(piece)
            start = end
    rest = text[start:].strip()
    return [*found, rest] if rest else found
