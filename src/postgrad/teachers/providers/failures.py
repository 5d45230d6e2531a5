"""What can go wrong with a call, in few kinds, and what to do about each.

Kind by kind, and whether the call is made again:

    rate_limited   429: wait as told (Retry-After), then again
    server_error   5xx, 408, 409, 425: again, later each time
    connection     no connection was made, so nothing can have been billed: again
    cut            the connection ended after the request left, before an answer began: twice more, for whoever read the
                   request may bill it
    timeout        no whole answer in time: once more, for the provider may bill what it went on to write
    truncated      the connection ended inside an answer: twice more
    invalid_reply  an answer that is no JSON, or no completion: twice more
    wrong_model    another model answered than was asked for: never again, it was paid for
    refused        400, 413, 422: this request cannot be answered (too long, filtered); others can
    denied         401, 403, 404, a redirect: key, model or address are wrong
    quota          402, or a 429 that says that the money is used up
    down           not asked any more, because the endpoint failed again and again
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Literal

Kind = Literal[
    "rate_limited",
    "server_error",
    "connection",
    "cut",
    "timeout",
    "truncated",
    "invalid_reply",
    "wrong_model",
    "refused",
    "denied",
    "quota",
    "down",
]
OUTSIDE: frozenset[str] = frozenset(
    ("rate_limited", "server_error", "connection", "cut", "timeout", "truncated", "invalid_reply", "quota", "down")
)
"""Kinds that are the world's fault: the same command later may get an answer."""
UNREACHED: frozenset[str] = OUTSIDE - {"truncated", "invalid_reply"}
"""Those in which nobody said anything."""
MAYBE_BILLED: frozenset[str] = frozenset(("cut", "timeout", "truncated", "invalid_reply"))
"""Kinds after which the provider may charge for an answer that nobody got."""
_FEW: Mapping[str, int] = {"timeout": 1, "cut": 2, "truncated": 2, "invalid_reply": 2}
_NEVER = frozenset(("wrong_model", "refused", "denied", "quota", "down"))


class CallFailed(Exception):
    """One try failed. `wait` is how many seconds the endpoint asked to be left alone, None if it did not say."""

    def __init__(self, kind: Kind, detail: str, *, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail = " ".join(detail.split())[:300]
        self.status = status
        self.wait = wait

    def repeats(self, allowed: int) -> int:
        """How often a call that failed like this may be made again, of at most `allowed`."""
        return 0 if self.kind in _NEVER else min(allowed, _FEW.get(self.kind, allowed))


def of_status(status: int, detail: str, headers: Mapping[str, str]) -> CallFailed:
    """What an HTTP status other than 200 means."""
    told = f"{status} {detail}"
    if status in (402, 429):
        spent = status == 402 or "insufficient_quota" in detail
        return CallFailed("quota" if spent else "rate_limited", told, status=status, wait=retry_after(headers))
    if status in (408, 409, 425) or status >= 500:
        return CallFailed("server_error", told, status=status, wait=retry_after(headers))
    denied = status in (401, 403, 404) or 300 <= status < 400
    return CallFailed("denied" if denied else "refused", told, status=status)


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that `retry-after-ms` or `retry-after` (seconds, or an HTTP date) asks for; None without or unreadable.

    Args:
        headers: of the response, in lower case or case-insensitive.
        now: Unix time, by default the clock's.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError):
            return None
    return None if seconds is None else max(0.0, seconds)


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) != float("inf") else None
