"""`Redactor`: secrets out, before anything leaves the machine or becomes training data; personal data on request.

Secrets are found by betterleaks (gitleaks' rules, run in process) and by our rules (`rules`), personal data by
`pii`. A find is replaced by ``<secret:RULE:N>`` or ``<pii:KIND:N>``: the kind stays readable, the same find
always gets the same mark, and what was found once is replaced everywhere in the value at hand, also where nothing
around it gives it away. Arguments of tool calls stay valid JSON and agree with their raw string. Text without finds
comes back unchanged.

N counts from 1. With a `key` it is made from the find itself instead (8 digits of a keyed hash): whoever has the key
gives the same find the same mark, in whatever order, process or run it comes, and nobody else learns anything from it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import betterleaks
import msgspec

from postgrad.core.actor import Ask
from postgrad.core.message import ToolCall
from postgrad.core.prefix import Renaming
from postgrad.core.trace import Request, Trace
from postgrad.traces.pool import MessagePool
from postgrad.traces.redaction import pii
from postgrad.traces.redaction.rules import CREDENTIAL_KEYS, MARK, RULES, benign
from postgrad.traces.redaction.sieve import SCANNER, suspected

ValueT = TypeVar("ValueT")

_SURROGATE = re.compile("[\x00\ud800-\udfff]")
_BOOKKEEPING = frozenset(
    {"records", "role", "is_error", "status", "index", "fidelity", "missing", "chosen", "kind", "time"}
)
_NO_TEXT = frozenset({type(None), bool, int, float})
_REMEMBERED = 1 << 15  # texts of which it is known that they were scanned; some 4 MB
_SHORTEST = 8  # no rule finds a secret in less text
_EVERYWHERE = 12  # shorter secrets are ordinary words elsewhere: they are replaced only where they were found


class Redactor:
    """Keeps what it has found, so use one for everything that belongs together. `counts`: replacements by rule.

    Args:
        key: makes the marks' numbers, see above.
        also: what to take out beside secrets: "pii" (addresses and numbers), "names" (of persons).

    Raises:
        MissingDependency: "names" without the library that knows them.
    """

    def __init__(self, *, key: bytes | None = None, also: Iterable[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._key = key
        self._finders = [_secrets, *(pii.finder(kind) for kind in also)]
        self._marks: dict[str, str] = {}
        self._plain: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._known: re.Pattern[str] | None = None
        self._scanned: set[bytes] = set()

    @property
    def finds(self) -> int:
        """How many different finds it knows; what was redacted before the number grew may hold one."""
        return len(self._marks)

    def ask(self, ask: Ask) -> Ask:
        """An ask as it may leave the machine."""
        return self.redact(ask)

    def redact(self, value: ValueT) -> ValueT:
        """`value` without secrets: text, plain JSON data, or any struct of the core (Message, Record, Trace, ...)."""
        for text in _texts(value):
            self._learn(text)
        if self._known is None:
            return value
        clean: ValueT = self._walk(value)
        return clean

    def _learn(self, text: str) -> None:
        """Note every secret in `text`. The same text again (a message in many contexts) is not scanned again."""
        if len(text) < _SHORTEST:
            return
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._scanned:
            return
        if len(self._scanned) >= _REMEMBERED:
            self._scanned.clear()
        self._scanned.add(digest)
        new = False
        scanned = MARK.sub(" ", text) if "<" in text else text
        for rule, secret in (find for finder in self._finders for find in finder(scanned)):
            if secret not in self._marks and secret in text:
                self._marks[secret] = self._mark_for(rule, secret)
                new = True
        if new:
            longest_first = sorted(self._marks, key=len, reverse=True)
            self._known = re.compile("|".join(_bounded(secret) for secret in longest_first))

    def _mark_for(self, rule: str, secret: str) -> str:
        """The mark of a new find. A key with its line ends written as backslash-n is the key that has real ones."""
        plain = secret.replace("\\r", "").replace("\\n", "\n").replace("\r", "")
        if plain not in self._plain:
            kind, _, name = rule.rpartition(":")
            self._numbers[rule] += 1
            number = self._numbers[rule] if self._key is None else _keyed(self._key, plain)
            self._plain[plain] = f"<{kind or 'secret'}:{name}:{number}>"
        return self._plain[plain]

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, ToolCall):
            return self._call(value)
        if isinstance(value, Trace):
            return self._trace(value)
        if isinstance(value, msgspec.Struct):
            fields = {name: self._walk(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        if isinstance(value, dict):
            return {self._walk(key): self._walk(item) for key, item in value.items()}
        return type(value)(self._walk(item) for item in value) if isinstance(value, list | tuple) else value

    def _text(self, text: str) -> str:
        # Looking for every find by itself is many times faster than the expression, which only few texts need.
        if self._known is None or not any(secret in text for secret in self._marks):
            return text
        return self._known.sub(self._mark, text)

    def _mark(self, match: re.Match[str]) -> str:
        mark = self._marks[match.group()]
        self.counts[mark.split(":")[1]] += 1
        return mark

    def _call(self, call: ToolCall) -> ToolCall:
        """Redact the parsed arguments; the raw string keeps its bytes where that gives the same object."""
        call = msgspec.structs.replace(call, id=self._text(call.id))  # as in its result, or the two part
        if call.arguments is None:
            return msgspec.structs.replace(call, arguments_raw=self._text(call.arguments_raw))
        arguments = self._walk(call.arguments)
        if arguments == call.arguments:
            return call
        before = self.counts.copy()
        raw = self._text(call.arguments_raw)
        self.counts = before  # the same secrets, counted in the object already
        try:
            same = json.loads(raw) == arguments
        except ValueError:
            same = False
        if not same:
            raw = json.dumps(arguments, ensure_ascii=False)
        return msgspec.structs.replace(call, arguments=arguments, arguments_raw=raw)

    def _trace(self, trace: Trace) -> Trace:
        """Messages are kept by content id, so changed ones get new ids and the steps follow."""
        pool = MessagePool()
        ids = {old: pool.add(self._walk(message)) for old, message in trace.messages.items()}
        renaming = Renaming(ids.__getitem__)
        steps = []
        for step in trace.steps:
            params = {"tools": self._walk(step.request.tools), "params": self._walk(step.request.params)}
            request = msgspec.structs.replace(step.request, messages=renaming.of(step.request.messages), **params)
            others = {name: self._walk(getattr(step, name)) for name in ("candidates", "results", "feedback")}
            steps.append(msgspec.structs.replace(step, request=request, **others))
        others = {name: self._walk(getattr(trace, name)) for name in ("events", "orphans", "environment")}
        return msgspec.structs.replace(trace, messages=pool.messages, steps=tuple(steps), **others)


def _keyed(key: bytes, plain: str) -> str:
    digest = hmac.digest(key, plain.encode("utf-8", "surrogatepass"), "sha256")
    return f"{int.from_bytes(digest[:8], 'big') % 10**8:08d}"


def _bounded(secret: str) -> str:
    """A short secret counts only as a whole word, or behind an option that it is glued to (`mysql -pSECRET`)."""
    word = re.escape(secret)
    return word if len(secret) >= _EVERYWHERE else rf"(?:(?<![A-Za-z0-9])|(?<=\s-p)){word}(?![A-Za-z0-9])"


def _texts(value: Any) -> Iterable[str]:
    """Every string to scan, each once.

    A dict's entry is scanned as ``key = "value"``: the key is half of the evidence.
    """
    found: dict[str, None] = {}
    _collect(value, found, set())
    return found


def _collect(value: Any, found: dict[str, None], seen: set[int]) -> None:
    """Add the strings in `value`. A message that stands in many places is one object: `seen` knows those."""
    if isinstance(value, str):
        found[value] = None
        return
    inner: Sequence[Any]
    if isinstance(value, dict):
        inner = values = []
        for key, item in value.items():
            if isinstance(key, str) and isinstance(item, str):
                found[f'{"authorization" if key.lower() in CREDENTIAL_KEYS else key} = "{item}"'] = None
            else:
                values.append(item)
    elif isinstance(value, list | tuple):
        inner = value
    elif isinstance(value, msgspec.Struct) and id(value) not in seen:
        seen.add(id(value))
        inner = _scanned(type(value))(value)
    else:
        return
    for item in inner:
        if type(item) is str:
            found[item] = None
        elif item and type(item) not in _NO_TEXT:
            _collect(item, found, seen)


@lru_cache(maxsize=64)
def _scanned(kind: type[msgspec.Struct]) -> Callable[[Any], Sequence[Any]]:
    """Gives the fields that can hold a secret; those of a trace beside its content say where it comes from."""
    names = [name for name in kind.__struct_fields__ if name not in _BOOKKEEPING]
    if kind is Trace:
        names = ["messages", "steps", "events", "orphans", "environment"]
    if kind is Request:
        names = ["tools", "params"]  # its messages are ids, and as many again for every step
    return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]


def _secrets(text: str) -> Iterator[tuple[str, str]]:
    """Rule and secret of every find, our rules first: they name the kind more exactly than a generic one."""
    held = suspected(text)
    lower = text.lower() if held is None else ""
    for number, (rule, words, pattern) in enumerate(RULES):
        if any(word in lower for word in words) if held is None else number in held:
            for match in pattern.finditer(text):
                if not benign(rule, match["secret"]):
                    yield rule, match["secret"]
    if held is not None and SCANNER not in held:
        return
    # The engine reads a C string in UTF-8: a NUL would end the scan, a lone surrogate cannot be passed.
    for find in betterleaks.scan_string(_SURROGATE.sub(" ", text)):
        secret = find.secret
        quoted = f'"{secret}' in text or f"'{secret}" in text
        secret = secret if quoted else secret.rstrip(".,:;?")  # what ends the sentence is none of it
        if secret and secret in text and not benign(find.rule_id, secret, confidence=find.confidence, quoted=quoted):
            yield find.rule_id, secret
