"""`Site`: one place where an action was wrong, or looked wrong."""

from __future__ import annotations

import msgspec

from postgrad.signals.error_sites.rules import Verdict

LEARNABLE: tuple[Verdict, ...] = ("real", "user_correction")
"""The verdicts to learn from."""


class Site(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place where an action was wrong, or looked wrong.

    Attributes:
        trace: id of the trace.
        step: index of the step whose action is to blame; a hint belongs before it.
        kind: tool_error, no_match, invalid_call, test_failed, check_failed, hook_block, reject, interrupt, correction,
            undo, user_edit, no_effect, repaired, repro_failed, cascade, or a verifier's error kind.
        verdict: whose fault it is; see `LEARNABLE`.
        rule: name and version of the rule that decided.
        record: raw record number of the evidence, -1 where the source has none.
        text: the evidence; for a user correction the user's words.
        call: id of the call, None where the action as a whole was wrong.
        repeat_of: step of the first site with the same call and the same kind.
        recovery_step: first later step at which the same sort of tool succeeded on the same target.
        outcome: how the whole run ended, 0 to 1, where the source says so.
    """

    trace: str
    step: int
    kind: str
    verdict: Verdict
    rule: str
    record: int = -1
    text: str = ""
    call: str | None = None
    repeat_of: int | None = None
    recovery_step: int | None = None
    outcome: float | None = None
