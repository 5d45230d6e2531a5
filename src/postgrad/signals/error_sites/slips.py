"""Names that the model wrote wrongly, as far as the session itself shows how they are right.

The next call is the same but for a word, and works; an earlier call or its answer has the name, with a letter or two
otherwise or with its parts in another order; the user's message has the number, with its digits mixed up. What nobody
had told was no slip. Programs and keywords that everybody knows: `shell.misspelt`.
"""

from __future__ import annotations

import re
from itertools import islice

from rapidfuzz.distance import OSA

from postgrad.core.trace import Step
from postgrad.signals.error_sites.edits import base
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.shell.commands import path_of, simple_commands
from postgrad.signals.words.wordings import NO_SUCH_FILE, NOT_FOUND

_ID = re.compile(r"[\w-]*\d[\w-]*")
_STREAMED = re.compile(r"[<>]\s*([\w./~-]+)")
_FILE = re.compile(r"[\w.-]*\w\.[A-Za-z]\w{0,9}\b")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_EDGE = 4000  # characters
_SHORTEST, _FARTHEST, _SOON = 4, 2, 2


def slipped(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether what the call names is a thing that the session knows under another spelling."""
    return _respelt(history, step, evidence) or _knew_better(history, step, evidence)


def _respelt(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether one of the next calls is the same but for one word, spelt a little otherwise, and went well."""
    words = _words(evidence)
    for later, other in islice(history.answered(after=step.index), _SOON):
        if other.call.name == evidence.call.name and history.succeeded(other) and _is_slip(words, _words(other)):
            return later.index > step.index
    return False


def _knew_better(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether what is not there is a thing that the model had named before, or a file that it was told of, misspelt."""
    said = evidence.outcome.output[:_EDGE]
    if not NO_SUCH_FILE.search(said) and not NOT_FOUND.search(said):
        return False
    earlier = {name for _, other in history.answered(before=step.index) for name in _things(other)}
    missing = [name for name in _things(evidence) if name not in earlier and name in said]
    if any(_is_slip([name], [known]) for name in missing for known in earlier):
        return True
    turned = {_turned(name) for name in missing if len(_turned(name)) > 1}
    told = (other.text[:_EDGE] for _, other in history.answered(before=step.index) if turned)
    return any(_turned(file) in turned and file not in missing for text in told for file in _FILE.findall(text))


def _turned(name: str) -> tuple[str, ...]:
    """The parts of a file's name in one order: `TestPrice.java` and `PriceTest.java` have the same."""
    return tuple(sorted(part.lower() for part in _PARTS.findall(name)))


def miscopied(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether a number or an id that was looked up in vain is one of the user's with its characters mixed up."""
    given = [value for value in (evidence.call.arguments or {}).values() if isinstance(value, str | int)]
    messages = [history.trace.messages[key] for key in step.request.messages]
    said = " ".join(message.text for message in messages if message.role == "user")
    known = {word for word in _ID.findall(said) if len(word) >= _SHORTEST}
    return any(
        value not in said
        and any(sorted(value) == sorted(word) and OSA.distance(value, word) <= _FARTHEST for word in known)
        for value in (word for text in given for word in _ID.findall(str(text)))
    )


def _things(evidence: Evidence) -> list[str]:
    """What a call names: a file, or the words of a shell line; each without its folders."""
    if evidence.line is None:
        path = path_of(evidence.call.arguments)
        return [] if path is None else [base(path)]
    words = (word for command in simple_commands(evidence.line[:_EDGE]) for word in command[1:])
    files = _STREAMED.findall(evidence.line[:_EDGE])
    return [base(word) for word in (*words, *files) if not word.startswith("-")]


def _words(evidence: Evidence) -> list[str]:
    if evidence.line is not None:
        return [word for command in simple_commands(evidence.line) for word in command]
    return [
        f"{key}={value}" for key, value in sorted((evidence.call.arguments or {}).items()) if isinstance(value, str)
    ]


def _is_slip(one: list[str], other: list[str]) -> bool:
    """One word differs, by a letter or two; a number, a plural or another suffix is another name and no slip."""
    if len(one) != len(other):
        return False
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    if len(pairs) != 1:
        return False
    a, b = pairs[0]
    near = min(len(a), len(b)) >= _SHORTEST and OSA.distance(a.lower(), b.lower(), score_cutoff=_FARTHEST) <= _FARTHEST
    differing = {x for x, y in zip(a, b, strict=False) if x != y} | {y for x, y in zip(a, b, strict=False) if x != y}
    return near and a.isascii() and a[-1] == b[-1] and a[0] == b[0] and all(letter.isalpha() for letter in differing)
