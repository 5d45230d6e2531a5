"""From the bytes of a call to what they say: content codings undone, JSON read, a stream folded.

What cannot be read stays what it is: an answer that is no JSON is kept as its text, because a gateway's HTML page with
status 502 is evidence too. A stream that was cut gives what had come.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import zstandard

from postgrad.core.canonical import too_deep
from postgrad.serve.recording.answers import FOLDS
from postgrad.serve.recording.upstreams import Api
from postgrad.traces.formats.openai_chat.stream import is_stream

READABLE_CODINGS = ("gzip", "deflate", "zstd", "identity")
"""Content codings that can be undone here; a client's wish for others is not passed on for recorded calls."""
_LONGEST_TEXT = 100_000  # characters kept of an answer that is no JSON


def decoded(data: bytes, coding: str) -> bytes:
    """Undo the content codings of a body, as far as it came; codings that are not known leave it as it is."""
    for one in reversed([part.strip().lower() for part in coding.split(",")]):
        if one in ("gzip", "x-gzip"):
            data = _inflated(data, zlib.MAX_WBITS | 16)
        elif one == "deflate":
            # Some servers send a raw stream under this name: the first byte of a zlib header says which it is.
            data = _inflated(data, zlib.MAX_WBITS if data[:1] == b"\x78" else -zlib.MAX_WBITS)
        elif one == "zstd":
            data = _unpacked(data)
    return data


def _inflated(data: bytes, window: int) -> bytes:
    parts = []
    while data:  # gzip bodies may have several members
        engine = zlib.decompressobj(window)
        try:
            parts.append(engine.decompress(data))
        except zlib.error:
            break
        data = engine.unused_data
    return b"".join(parts)


def _unpacked(data: bytes) -> bytes:
    engine = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    try:
        return engine.decompress(data)
    except zstandard.ZstdError:
        return b""


def read_object(data: bytes) -> dict[str, Any] | None:
    """A JSON object, None for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not too_deep(value) else None


def is_event_stream(content_type: str, text: str) -> bool:
    """Whether an answer is a stream of events; some servers say so only by what they send."""
    return "event-stream" in content_type or is_stream(text)


def read_answer(api: Api, data: bytes, *, content_type: str) -> dict[str, Any]:
    """A response body as the object that a plain call gives."""
    value = read_object(data)
    if value is not None:
        return value
    text = data.decode("utf-8", "replace")
    if is_event_stream(content_type, text):
        return FOLDS[api](text)
    return {"error": {"message": text[:_LONGEST_TEXT], "type": "no_json"}} if text.strip() else {}
