"""`trace_json`: a trace as JSON, written piece by piece, the same as if it were written at once (`encoded`).

A trace of a gigabyte, taken apart as a whole, would be there three times over: as it is, as structs that stand in for
its texts, and as text. Here only some hundred messages or steps are taken apart at a time. Which form the text has is
known at its end: null may stand for NaN, a lone surrogate cannot be said in UTF-8, and then all of it is in another
form. So what gives the pieces is called once for every form that is tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from postgrad.core.canonical import holds_null, plain_json
from postgrad.core.message import Message
from postgrad.core.trace import Step, Trace

T = TypeVar("T")

_TOGETHER = 256  # messages or steps in a piece


class _OtherFormError(Exception):
    """This form cannot say the value."""


class _Form(NamedTuple):
    """A way to write JSON, and the punctuation that it uses."""

    write: Callable[[object], bytes]
    comma: bytes
    colon: bytes


def encoded(value: object) -> str:
    """JSON of structs and plain data, from which `packed.decoded` gives an equal value."""
    try:
        return _fast(value).decode()
    except _OtherFormError:
        return plain_json(msgspec.to_builtins(value))


def trace_json(
    trace: Trace, messages: Callable[[], Iterable[tuple[str, Message]]], steps: Callable[[], Iterable[Step]]
) -> bytearray:
    """What `encoded` gives, as UTF-8, for `trace` with other messages and steps in the place of its own."""
    bare = msgspec.structs.replace(trace, messages={}, steps=())
    for form in _FORMS[:-1]:
        try:
            return _written(form, bare, messages(), steps())
        except _OtherFormError:
            pass
    return _written(_FORMS[-1], bare, messages(), steps())


def _written(form: _Form, bare: Trace, messages: Iterable[tuple[str, Message]], steps: Iterable[Step]) -> bytearray:
    write, comma, colon = form
    text = bytearray(write(bare))
    empty = b'"messages"%b{}%b"steps"%b[]' % (colon, comma, colon)
    at = text.index(empty)  # inside a string its quotes have backslashes, and the source before it is all strings
    after = text[at + len(empty) :]
    del text[at:]
    text += b'"messages"%b{' % colon
    _join(text, comma, (write(dict(some)) for some in _pieces(messages)))
    text += b'}%b"steps"%b[' % (comma, colon)
    _join(text, comma, (write(some) for some in _pieces(steps)))
    text += b"]"
    text += after
    return text


def _join(text: bytearray, comma: bytes, pieces: Iterable[bytes]) -> None:
    """Add the insides of lists or objects, one behind the other."""
    for place, piece in enumerate(pieces):
        if place:
            text += comma
        text += memoryview(piece)[1:-1]


def _pieces(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, _TOGETHER)):
        yield some


def _fast(value: object) -> bytes:
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raise _OtherFormError from None
    if holds_null(data):  # msgspec writes NaN and infinities as null
        raise _OtherFormError
    return data


def _plain(value: object) -> bytes:
    try:
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _OtherFormError from None


def _escaped(value: object) -> bytes:
    return json.dumps(msgspec.to_builtins(value)).encode()


_FORMS = (_Form(_fast, b",", b":"), _Form(_plain, b", ", b": "), _Form(_escaped, b", ", b": "))
"""In the order in which they are tried; the last one can say everything."""
