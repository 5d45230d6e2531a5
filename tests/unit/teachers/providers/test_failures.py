"""Kinds of failure, and how long an endpoint asks to be left alone."""

from __future__ import annotations

import pytest

from postgrad.teachers.providers.failures import OUTSIDE, CallFailed, of_status, retry_after


@pytest.mark.parametrize(
    ("status", "text", "kind"),
    [
        (400, "", "refused"),
        (401, "", "denied"),
        (402, "", "quota"),
        (403, "", "denied"),
        (404, "", "denied"),
        (307, "", "denied"),
        (408, "", "server_error"),
        (409, "", "server_error"),
        (413, "", "refused"),
        (422, "", "refused"),
        (429, "slow down", "rate_limited"),
        (429, "x insufficient_quota", "quota"),
        (500, "", "server_error"),
        (529, "", "server_error"),
    ],
)
def test_statuses(status: int, text: str, kind: str) -> None:
    assert of_status(status, text, {}).kind == kind


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 90.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """The clock stands at 10 seconds after the epoch."""
    assert retry_after(headers, now=10.0) == seconds


def test_what_may_pass_is_tried_again_and_what_was_paid_is_not() -> None:
    times = {kind: CallFailed(kind, "").repeats(5) for kind in ("server_error", "timeout", "truncated", "wrong_model")}
    assert times == {"server_error": 5, "timeout": 1, "truncated": 2, "wrong_model": 0}
    assert CallFailed("timeout", "").repeats(0) == 0


def test_what_the_user_must_change_is_not_the_worlds_fault() -> None:
    assert not {"wrong_model", "refused", "denied"} & OUTSIDE
