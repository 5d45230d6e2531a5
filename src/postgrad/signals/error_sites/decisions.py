"""Rules 3 and 10: what the user decided, and what they said about it.

A refusal or a stop is a correction only if the user then speaks about the work, before the next model step; alone,
or followed by a local command, a change of mode or "continue", it is a stop: a negative signal without a lesson. Words
that ask about the matter or open another one are a follow-up (`user_followup`): worth showing, and nothing to learn
from. Words that object to a finished answer correct it without any stop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from postgrad.core.message import Message, Text
from postgrad.core.prefix import common
from postgrad.core.trace import Step
from postgrad.signals.error_sites.corrections import is_local_command, only_goes_on, typed, words_in_refusal
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.outcomes import json_object
from postgrad.signals.error_sites.rules import Verdict, is_wait
from postgrad.signals.shell.commands import kind_of
from postgrad.signals.words.admissions import yields
from postgrad.signals.words.findings import shows_failure
from postgrad.signals.words.followups import goes_on, is_praise
from postgrad.signals.words.objections import objects

STOPS = ("interrupt", "turn_aborted", "abort", "cancel", "stop")
_NO = r"(rejected|denied|declined|cancell?ed|aborted|refused|skipped)"
_ASKED = (
    r"(patch|(exec |shell )?command( execution)?|tool( call| use| execution)?|action|operation|edit|execution"
    r"|exec_command)"
)
_REFUSAL = re.compile(
    rf"\A\W*(error\W+|action rejected\W+)?(the user (doesn't|does not|didn't|did not) (want|approve|allow|grant"
    rf"|confirm)"
    rf"|(the )?user (has )?{_NO}"
    rf"|({_ASKED}( failed)? ?(was |has been )?:? ?)?{_NO} by (the )?(user|operator)|request interrupted by user"
    r"|(the )?user (chose not to|dismissed|wants to clarify)|permission (to .{0,80} )?(was )?denied by (the )?user("
    r"?!['’])"
    r"|(the )?(tool|tool call|tool execution|action) (was )?(interrupted|aborted)\b|(用户|使用者|用戶)(已经?"
    r"|已經)?(拒绝|拒絕|取消|中止)"
    r"|ユーザー(が|によって).{0,20}(拒否|キャンセル|中止)"
    r"|exec_command failed: [^\n]{0,120}rejected by (?:the )?user\b"
    r"|answer questions\?\s*\Z|\[operation cancell?ed\]|user did not (allow|approve|confirm))",
    re.IGNORECASE,
)
# Said in so many words, whatever the flag: Goose tells a refusal with the status "success".
_DECLINED = re.compile(
    r"\A\W*the user has (?:declined|denied|refused|rejected) (?:to run |running )?(?:this|the) "
    r"(?:tool|action|command)\b",
    re.I,
)
_NOTICE = re.compile(
    rf"{_NO}|reject|permission|approv|\A\W*(tool|call|the (tool|call|command|operation|action))\b|[<{{\[]",
    re.IGNORECASE,
)
_ASKED_BACK = re.compile(r"[?？]\W*\Z")
_LONGEST_REASON = 2000  # characters
_STOPPED = re.compile(r"\A\W*request interrupted by user", re.IGNORECASE)


def is_refusal(evidence: Evidence) -> bool:
    """Whether a user said no to the call or stopped it."""
    if evidence.result.status in ("rejected", "interrupted"):
        return True
    if evidence.result.is_error is False:
        return _DECLINED.match(evidence.opening) is not None
    if evidence.flagged and _is_stopped(evidence.outcome.output):
        return True
    return _REFUSAL.match(evidence.opening) is not None or (json_object(evidence.text) or {}).get("status") == "denied"


def _is_stopped(output: str) -> bool:
    """The marker of a stop stands alone, before or behind what the command wrote until then."""
    rows = output.strip().splitlines()
    return any(_STOPPED.match(row[:100]) for row in (*rows[:1], *rows[-1:]))


def verdict_on_refusal(history: History, step: Step, evidence: Evidence, *, record: int) -> tuple[Verdict, str]:
    """The verdict on a refused call, and the user's words."""
    if is_wait(evidence):
        return "benign", ""
    words = words_in_refusal(evidence.text) or _reason(evidence) or next_words(history, step, after=record)
    return verdict_on_words(words)


def _reason(evidence: Evidence) -> str:
    """The user's own words, where the source keeps them as the result of the refused call; a notice is none."""
    text = evidence.text.strip()
    told = evidence.result.status == "rejected" and 0 < len(text) < _LONGEST_REASON
    return text if told and not _REFUSAL.match(text) and not _NOTICE.search(text) else ""


def verdict_on_words(words: str) -> tuple[Verdict, str]:
    """A correction where the words speak about the work, a follow-up where they ask or turn to another matter."""
    if not words or only_goes_on(words):
        return "user_stop", ""
    return ("user_followup" if goes_on(words) else "user_correction"), words


def next_words(history: History, step: Step, *, after: int) -> str:
    """What the user typed after record `after` and before the next model step, "" if nothing."""
    return next(iter(_typed_texts(history, step, after=after)), ("", -1))[0]


def follow_up(history: History, step: Step) -> tuple[str, int] | None:
    """The user's next words, with their record, where they take back what `step` did at the end of a turn."""
    found = next(iter(_typed_texts(history, step, after=-1)), None)
    if found is None:
        return None
    words, following = found[0], history.following(step)
    asked = _ASKED_BACK.search(step.action.text) is not None
    if objects(words, answers=asked) or (shows_failure(words) and _has_worked(history, step)):
        return found
    return found if following is not None and yields(following.action) and not is_praise(words) else None


def _has_worked(history: History, step: Step) -> bool:
    """Whether the model changed or ran anything since the user spoke last, so that a failure may be its own."""
    for earlier in history.back_from(step):
        if any(kind_of(call) in ("edit", "shell", "code", "other") for call in earlier.action.tool_calls):
            return True
        if earlier is not step and next_words(history, earlier, after=-1):
            break
    return False


def _typed_texts(history: History, step: Step, *, after: int) -> Iterable[tuple[str, int]]:
    """Typed texts with their record numbers; a local command ends them: the user turned to something else."""
    events = [event for event in history.events_after(step) if event.kind == "user_text" and event.record > after]
    texts = [(event.text, event.record) for event in events]
    if not texts:
        texts = [pair for message in _new_messages(history, step) for pair in _texts(message, after)]
    for text, record in texts:
        if is_local_command(text):
            return
        if words := typed(text):
            yield words, record


def _new_messages(history: History, step: Step) -> Iterable[Message]:
    """What a context holds that the one before it did not; mostly it goes on from it."""
    following = history.following(step)
    if following is None:
        return ()
    before, now = step.request.messages, following.request.messages
    same = common(before, now)
    seen = set() if same == len(before) else set(before)
    return (history.trace.messages[key] for key in now[same:] if key not in seen)


def _texts(message: Message, after: int) -> list[tuple[str, int]]:
    record = max(message.records, default=-1)
    if message.role != "user" or (message.records and record <= after):
        return []
    return [(block.text, record) for block in message.blocks if isinstance(block, Text)]
