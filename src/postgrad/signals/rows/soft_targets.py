"""Soft targets: a teacher's log-probabilities of its own answer, put into the student's vocabulary.

They can be used only where teacher and student cut the action into the same tokens. That is checked token by token on
the action itself, so two models with tokenizers of one make pass, whatever they are called. Of the teacher's likeliest
tokens those that the student does not have go into the tail. Texts of tokens are compared, because an API tells no ids:

    p(v) for the k named tokens,      tail = log(1 - sum of p over the named), at least log 1e-7

Not covered: tokens that are parts of a character (an action that holds one is imitated as a sequence).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from postgrad.core.actor import Answer, TokenChoice
from postgrad.core.errors import DataError
from postgrad.core.message import Message
from postgrad.core.record import SoftTargets
from postgrad.models.token_texts import BROKEN, token_texts

if TYPE_CHECKING:
    from postgrad.models.render import Renderer

Unfit = Literal["no_logprobs", "not_the_whole_action", "tokenizer_mismatch", "not_a_distribution"]
"""Why there are no soft targets; of calls most APIs give no log-probabilities, so they are not the whole action."""
_LEAST_TAIL = math.log(1e-7)  # of what is left, where the named tokens have everything
_ROUNDING = 1e-3  # by which the named tokens' probabilities may sum to more than 1


@dataclass(frozen=True)
class StudentVocabulary:
    """The student's tokenizer, as far as soft targets need it."""

    name: str
    renderer: Renderer

    def targets(self, teacher: str, answer: Answer, action: Message) -> SoftTargets | Unfit:
        """Soft targets for `action`, which is what `answer` says, or why there are none."""
        if not answer.tokens:
            return "no_logprobs"
        ids = self.renderer.action(action)
        told = self._told(answer.tokens)
        tokens = self._spelt(ids, "".join(choice.token for choice in told))
        if tokens is None:
            return "not_the_whole_action"
        if not self._same(tokens, told):
            return "tokenizer_mismatch"
        pairs = enumerate(zip(tokens, told, strict=True))
        rows = [self._row(token, choice, first=place == 0) for place, (token, choice) in pairs]
        kept = [row for row in rows if row is not None]
        if len(kept) < len(rows):
            return "not_a_distribution"
        return SoftTargets(
            teacher,
            self.name,
            tuple(tokens),
            tuple(tuple(row) for row in kept),
            tuple(tuple(row.values()) for row in kept),
            tuple(_tail(list(row.values())) for row in kept),
        )

    def _told(self, tokens: Sequence[TokenChoice]) -> Sequence[TokenChoice]:
        """Without a last token that ends the teacher's turn in a way that is not the student's, or that is no text."""
        stops = {self._texts[token] for token in self.renderer.stop_ids}
        last = tokens[-1].token
        ends = not last or (last.startswith("<") and last.endswith(">") and last not in stops)
        return tokens[:-1] if ends else tokens

    def _spelt(self, ids: Sequence[int], text: str) -> Sequence[int] | None:
        """The action's tokens, with or without the one that ends it, if they spell what the teacher's do."""
        for tokens in (ids, ids[:-1]):
            spelt = "".join(self._texts[token] for token in tokens)
            if BROKEN not in spelt and spelt.lstrip(" ") == text.lstrip(" "):
                return tokens
        return None

    def _same(self, ids: Sequence[int], told: Sequence[TokenChoice]) -> bool:
        texts, given = [self._texts[token] for token in ids], [choice.token for choice in told]
        return bool(texts) and texts[1:] == given[1:] and texts[0].lstrip(" ") == given[0].lstrip(" ")

    def _row(self, token: int, choice: TokenChoice, *, first: bool) -> dict[int, float] | None:
        """Student's id -> log-probability, the likeliest first; None where that is no distribution."""
        row: dict[int, float] = {token: choice.logprob}
        for text, logprob in choice.top:
            known = self._ids.get(text)
            if known is None and first:
                known = self._ids.get(f" {text}")
            if known is not None:
                row.setdefault(known, logprob)
        values = [min(0.0, value) for value in row.values()]
        if any(math.isnan(value) or value > _ROUNDING for value in row.values()) or _mass(values) > 1 + _ROUNDING:
            return None
        finite = {key: value for key, value in zip(row, values, strict=True) if value > -1000}
        return dict(sorted(finite.items(), key=lambda item: -item[1])) or None

    @cached_property
    def _texts(self) -> list[str]:
        return token_texts(self.renderer.tokenizer)

    @cached_property
    def _ids(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for token, text in enumerate(self._texts):
            if text and BROKEN not in text:
                found.setdefault(text, token)
        return found


def load_vocabulary(name: str) -> StudentVocabulary:
    """The vocabulary of a student by its model's name; its weights are not loaded.

    Raises:
        ConfigError: there is no such model.
        DataError: its tokenizer does not load.
    """
    from postgrad.models.load import load_tokenizer
    from postgrad.models.render import Renderer
    from postgrad.models.resolve import resolve_model

    return StudentVocabulary(name, Renderer(load_tokenizer(resolve_model(name))))


def refuse_mismatch(teacher: str, student: str) -> DataError:
    """The error for a teacher whose tokens are not the student's, where that is not to be passed over."""
    return DataError(
        f"teacher {teacher} cuts its answers into other tokens than the student {student}",
        expected="a teacher with the student's tokenizer",
        do="take another teacher, or set distill.mismatch to sequence to learn its answers as they are",
    )


def _mass(logprobs: Sequence[float]) -> float:
    return math.fsum(math.exp(value) for value in logprobs)


def _tail(logprobs: Sequence[float]) -> float:
    left = 1.0 - _mass(logprobs)
    return max(_LEAST_TAIL, math.log(left)) if left > 0 else _LEAST_TAIL
