"""Does a training set overlap with a benchmark? Names, shared word sequences, near-duplicate requests.

Three kinds of overlap, each with the pairs of ids:

- name: a training task offers a tool that the benchmark offers;
- sequence: `ngram` words in a row of one request stand in the other (numbers are kept: shared ones are evidence). A
  request shorter than that counts when it stands in the other as a whole, if it has at least four words;
- near: the sets of word triples, numbers masked, have a Jaccard similarity of at least `near`: one template with
  other values.

Only requests (user messages) are compared. Tool descriptions are left out: many APIs are described in like words, and
the text of the tools would drown that of the requests. Not covered: translations and paraphrases.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from postgrad.core.errors import ConfigError
from postgrad.core.task import Task

Kind = Literal["name", "sequence", "near"]
Gram = tuple[str, ...]
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+")
_SHORTEST = 4
_SHINGLE = 3


class Overlap(msgspec.Struct, frozen=True):
    """One finding: ids of the training and the benchmark task, and the shared text or the similarity."""

    kind: Kind
    training: str
    benchmark: str
    evidence: str


class OverlapReport(msgspec.Struct, frozen=True):
    """What was compared and what was found; `clean` when nothing was."""

    training: int
    benchmark: int
    ngram: int
    near: float
    findings: tuple[Overlap, ...]

    @property
    def clean(self) -> bool:
        """No finding of any kind."""
        return not self.findings

    @property
    def counts(self) -> dict[str, int]:
        """Training tasks concerned, per kind."""
        concerned = {(finding.kind, finding.training) for finding in self.findings}
        return {"name": 0, "sequence": 0, "near": 0} | Counter(kind for kind, _ in concerned)


def overlap(training: Sequence[Task], benchmark: Sequence[Task], *, ngram: int = 8, near: float = 0.7) -> OverlapReport:
    """Compare every training task with every benchmark task, by inverted indices.

    Raises:
        ConfigError: `ngram` or `near` is out of range.
    """
    if ngram < _SHORTEST or not 0 < near <= 1:
        expected = f"ngram >= {_SHORTEST} and 0 < near <= 1"
        raise ConfigError("overlap settings are out of range", got=(ngram, near), expected=expected)
    names = _names(training, benchmark)
    sequences = _sequences(training, benchmark, ngram)
    nears = _near(training, benchmark, near)
    return OverlapReport(len(training), len(benchmark), ngram, near, (*names, *sequences, *nears))


def _names(training: Iterable[Task], benchmark: Iterable[Task]) -> Iterable[Overlap]:
    owner = {tool.name: task.id for task in benchmark for tool in task.tools}
    for task in training:
        for tool in task.tools:
            if tool.name in owner:
                yield Overlap("name", task.id, owner[tool.name], tool.name)


def _sequences(training: Iterable[Task], benchmark: Sequence[Task], ngram: int) -> Iterable[Overlap]:
    """At most one finding per pair of tasks, with the first shared sequence."""
    words = {task.id: _words(task) for task in benchmark}
    pieces = _index((name, _pieces(text, ngram)) for name, text in words.items())
    wholes = _index((name, _wholes(text, ngram)) for name, text in words.items())
    for task in training:
        own = _words(task)
        found: dict[str, str] = {}
        for grams, index in ((_wholes(own, ngram), pieces), (_pieces(own, ngram), wholes)):
            for gram in grams:
                for other in index.get(gram, ()):
                    found.setdefault(other, " ".join(gram))
        yield from (Overlap("sequence", task.id, other, text) for other, text in found.items())


def _near(training: Iterable[Task], benchmark: Sequence[Task], near: float) -> Iterable[Overlap]:
    shingles = {task.id: _shingles(task) for task in benchmark}
    index = _index(shingles.items())
    for task in training:
        own = _shingles(task)
        shared = Counter(other for gram in own for other in index.get(gram, ()))
        for other, count in shared.items():
            similarity = count / (len(own) + len(shingles[other]) - count)
            if similarity >= near:
                yield Overlap("near", task.id, other, f"{similarity:.2f}")


def _index(texts: Iterable[tuple[str, Iterable[Gram]]]) -> dict[Gram, list[str]]:
    """Gram -> the ids whose text holds it."""
    index: dict[Gram, list[str]] = defaultdict(list)
    for name, grams in texts:
        for gram in set(grams):
            index[gram].append(name)
    return index


def _wholes(words: Sequence[str], ngram: int) -> list[Gram]:
    """What must stand in the other text: the n-grams, or the whole of a short text."""
    return _grams(words, min(ngram, len(words))) if len(words) >= _SHORTEST else []


def _pieces(words: Sequence[str], ngram: int) -> list[Gram]:
    """All that such a sequence can match."""
    return [gram for length in range(_SHORTEST, ngram + 1) for gram in _grams(words, length)]


def _shingles(task: Task) -> set[Gram]:
    """Word triples with numbers masked."""
    return set(_grams([_NUMBER.sub("0", word) for word in _words(task)], _SHINGLE))


def _words(task: Task) -> list[str]:
    text = " ".join(message.text for message in task.messages if message.role == "user")
    return _WORD.findall(text.lower())


def _grams(words: Sequence[str], length: int) -> list[Gram]:
    return [tuple(words[i : i + length]) for i in range(len(words) - length + 1)]
