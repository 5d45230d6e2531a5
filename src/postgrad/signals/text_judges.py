"""Do two answers in words mean the same? A question for a judge, because equal words are rare.

`exact` is the default: texts with single spaces. `words` lets case, punctuation and Markdown marks go. `ActorJudge`
asks a model, whose answer counts only when it is the same both ways round; it is for answers without calls alone,
since calls have a normal form. Any function of this type may stand in (`module:name`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postgrad.core.actor import Actor, Ask, Sampling
from postgrad.core.message import Message

SameText = Callable[[Sequence[Message], str, str], bool]
"""``same(context, one, other)``: whether two texts, as answers in this context, say the same."""

TEXT_JUDGES = {"exact": "postgrad.signals.text_judges:exact", "words": "postgrad.signals.text_judges:words"}
"""Plug-in point `text_judge`: short name -> `SameText`."""

_WORDS = re.compile(r"[-+]?\d+(?:[.,:/]\d+)*%?|[^\W\d_]+")  # what belongs to a number stays with it
_QUESTION = """Two answers to the same message are given. Do they say the same to the one who asked, in whatever words?
Differences in tone, order or politeness do not count; any difference in a fact, a number, a name, a decision or a
question asked counts.

The message:
{context}

Answer 1:
{one}

Answer 2:
{other}

Reply with one word: SAME or DIFFERENT."""
_SHOWN = 4000  # characters of the message and of each answer


def exact(context: Sequence[Message], one: str, other: str) -> bool:
    """Texts with single spaces are equal."""
    return one.split() == other.split()


def words(context: Sequence[Message], one: str, other: str) -> bool:
    """The words are equal, whatever their case and the marks between them; signs at numbers count."""
    return plain_words(one) == plain_words(other)


def plain_words(text: str) -> list[str]:
    """The words and numbers of a text, in lower case."""
    return _WORDS.findall(unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True)
class ActorJudge:
    """A model as a `SameText`. It is asked twice, the answers swapped; anything but two times SAME is a no."""

    actor: Actor

    def __call__(self, context: Sequence[Message], one: str, other: str) -> bool:
        """Whether the judge says so both ways round.

        Raises:
            OutsideFailure: the judge cannot be reached.
        """
        if exact(context, one, other):
            return True
        asked = context[-1].text if context else ""
        asks = [
            Ask((Message.of("user", _QUESTION.format(context=asked[-_SHOWN:], one=a[:_SHOWN], other=b[:_SHOWN])),))
            for a, b in ((one, other), (other, one))
        ]
        said = self.actor.answer(asks, Sampling(max_new_tokens=8))
        return all(answer.message is not None and _says_same(answer.message.text) for answer in said)


def _says_same(text: str) -> bool:
    found = re.findall(r"\b(same|different)\b", text.lower())
    return found[:1] == ["same"] and "different" not in found
