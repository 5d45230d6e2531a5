"""A failure seen again with what stands around it: what the model did before, what it did and said next.

A result alone often leaves open whose fault it is. The next step tells: the same call went well without any change (it
was the place), the same call with one word spelt otherwise went well (it was the call), the model says that it was to
fail. A port in use and a server that does not answer are the model's doing where it had started a server itself. Not
covered: failures that the model passes over in silence.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from itertools import islice

import msgspec

from postgrad.core.canonical import canonical_json
from postgrad.core.trace import Step
from postgrad.signals.actions import normal_call
from postgrad.signals.error_sites.asking import NO_PAGE
from postgrad.signals.error_sites.decisions import next_words
from postgrad.signals.error_sites.edits import BROKEN, TEST_FILE, base, edits_before, edits_since_pass, places_in
from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.history import History
from postgrad.signals.error_sites.listings import shown_absent
from postgrad.signals.error_sites.rules import Verdict
from postgrad.signals.error_sites.site import Site
from postgrad.signals.error_sites.slips import miscopied, slipped
from postgrad.signals.error_sites.unchanged import shown_unchanged
from postgrad.signals.shell.commands import edited_files
from postgrad.signals.shell.programs import FORMATTERS, LINTERS, checkers, only_reads
from postgrad.signals.words.admissions import announces, sayings
from postgrad.signals.words.phrases import Phrases

_FAILURES = frozenset({"tool_error", "test_failed", "check_failed", "repro_failed", "no_match", "invalid_call"})
_RUNS = frozenset({"test_failed", "check_failed", "repro_failed"})
_IN_USE = Phrases(
    r"EADDRINUSE|address already in use|server is already running"
    r"|port (?:\S+ )?is (?:already |currently )?(?:in use|allocated|taken|occupied)",
    r"port \S+ (?:is )?already (?:in use|allocated)|only one usage of each socket address|(?:端口"
    r"|ポート).{0,20}(?:占用|使用)",
)
_NO_ANSWER = Phrases(
    r"connection refused|ECONNREFUSED|failed to connect to (?:localhost|127\.)|couldn['’]t connect to server"
    r"|connection reset"
)
_HERE = re.compile(r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1\b")
_CALLS_SERVER = frozenset(
    {"curl", "wget", "http", "nc", "telnet", "xh", "invoke-webrequest", "invoke-restmethod", "ab", "wrk"}
)
_ENDS = re.compile(
    r"\b(?:kill|pkill|killall|fuser -k|(?:docker|podman|pm2|systemctl)\b.{0,30}\b(?:stop|down|rm|kill|delete))\b"
)
_SILENT_REFUSAL = 7  # curl's exit code for "failed to connect"
_IN_BACKGROUND = re.compile(
    r"(?<!&)&\s*(?:$|\n|sleep|echo|disown|\))|\bnohup\b|\b(?:docker|podman)\b.{0,40}\b(?:run|up|start)\b"
    r"|\bpm2 start\b|\bsetsid\b"
    r"|\b(?:npm|yarn|pnpm|bun) (?:run )?(?:dev|start|serve|preview)\b|\b(?:flask|rails|next|vite|uvicorn|gunicorn"
    r"|http\.server|runserver)\b"
)
# What a second try of the same does not mend.
_IN_THE_CALL = re.compile(
    r"\bpars(?:e|ing)\b|\bsyntax\b|\b(?:invalid|unknown|unexpected|unrecogni[sz]ed|missing|required|undefined"
    r"|expected)\b",
    re.I,
)
# `./report.sh --by x; echo "exit=$?"`: how a program of the project refuses is what was asked.
_ASKS_FOR_CODE = re.compile(
    r"\A(?:[^|;\n]*[;\n]\s*)?[^|;\n]*[\w.]/[\w./-]+[^|;\n]*[;\n]\s*(?:echo|printf)\b[^;|&\n]*\$\?[^;|&\n]*\Z"
)
_ASKS_FORMAT = re.compile(r"--(?:check|diff|list-different|dry-run)\b|\s-[lcd]\b")
_QUOTED = re.compile(r"['`‘\"](\w{3,})['`’\"]")
_FIRST_WORDS, _EDGE = 200, 4000
_LATER = 6


def reconsider(history: History, step: Step, evidence: Evidence, site: Site) -> Site:
    """The site with the verdict that its surroundings give."""
    if site.kind not in _FAILURES or site.verdict not in ("real", "benign", "env"):
        return site
    verdict = _verdict(history, step, evidence, site)
    return site if verdict is None else msgspec.structs.replace(site, verdict=verdict)


def _verdict(history: History, step: Step, evidence: Evidence, site: Site) -> Verdict | None:
    if site.kind == "no_match" and shown_unchanged(evidence):
        return "real"
    if site.verdict == "benign" and evidence.kind in ("other", "search") and miscopied(history, step, evidence):
        return "real"
    if site.verdict != "real":
        typed = evidence.kind in ("shell", "read", "edit") and site.kind not in _RUNS
        if not typed:
            return None
        return "real" if slipped(history, step, evidence) or shown_absent(history, step, evidence) else None
    if site.kind == "tool_error" and evidence.line is not None:
        started = _served_before(history, step, evidence)
        if _IN_USE.search(evidence.outcome.output) and not started:
            return "env"
        if _unanswered(evidence) and not started:
            return "benign"
    if NO_PAGE.search(evidence.text[:_FIRST_WORDS]) and _was_given(history, step, evidence):
        return "benign"
    outside = evidence.kind in ("shell", "code") or "url" in (evidence.call.arguments or {})
    if (
        site.kind == "tool_error"
        and outside
        and not _IN_THE_CALL.search(evidence.outcome.output[:_EDGE])
        and _passes_by_itself(history, step, evidence)
    ):
        return "env"
    if site.kind == "tool_error" and _ASKS_FOR_CODE.search(evidence.line or ""):
        return "expected"
    if site.kind != "invalid_call" and (announces(step.action) or _announced_test(history, step, evidence, site)):
        return "expected"
    if site.kind == "check_failed" and _formats_next(history, step, evidence):
        return "benign"
    if site.kind == "check_failed" and _was_there(history, step, evidence):
        return "benign"
    return _as_told(history, step, evidence, site)


def _as_told(history: History, step: Step, evidence: Evidence, site: Site) -> Verdict | None:
    """What the next step's first words make of the failure, where the user did not speak in between."""
    following = history.following(step)
    if following is None or site.kind == "invalid_call" or next_words(history, step, after=-1):
        return None
    said = sayings(following.action)
    if "old" in said:
        return "benign"
    if "expected" in said:
        return "expected"
    if "shown" in said and not _changed(history, step, evidence):
        return "expected"
    if "place" in said and site.kind == "tool_error":
        return "env"
    return "benign" if "fine" in said and site.kind == "tool_error" else None


def _announced_test(history: History, step: Step, evidence: Evidence, site: Site) -> bool:
    """Whether the step before wrote a test and said that it is to fail, and this one runs it without another word."""
    before = next(islice(history.back_from(step), 1, None), None)
    silent = not step.action.text.strip()
    if site.kind != "test_failed" or before is None or not silent or BROKEN.search(evidence.outcome.output):
        return False
    edits = [edit for edit in edits_before(history, step.index) if edit.step == before.index]
    return bool(edits) and all(edit.tests for edit in edits) and announces(before.action)


def _changed(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether the model had changed anything but tests and scripts that show the bug."""
    edits = edits_since_pass(history, step.index, line=evidence.line or "")
    return any(not TEST_FILE.search(edit.path) and "repro" not in edit.path.lower() for edit in edits)


def _passes_by_itself(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether the very same call went well later, and nothing but looking and waiting lies in between."""
    wanted = canonical_json(normal_call(evidence.call))
    for later, other in islice(history.answered(after=step.index), _LATER):
        if canonical_json(normal_call(other.call)) == wanted:
            if history.succeeded(other):
                return True
        elif edited_files(other.call) or not (other.kind in ("read", "search", "wait") or only_reads(other.line or "")):
            return False
        if next_words(history, later, after=-1):
            return False
    return False


def _was_there(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether all findings of a check stand in files that the model did not edit before and does not edit next.

    An edit in one file can break another for a compiler, and then the name that it misses was in the edit.
    """
    output = evidence.outcome.output
    places = {base(path) for path in places_in(output)}
    edited = [edit.name for edit in edits_before(history, step.index)]
    if not places or any(fnmatchcase(place, name) for place in places for name in edited):  # `sed -i s/a/b/ *.ts`
        return False
    if history.following(step) is None or places & _edited_next(history, step):
        return False
    named = set() if checkers(evidence.line or "") & LINTERS else set(_QUOTED.findall(output[:_EDGE]))
    calls = (other.call for _, other in history.answered(before=step.index) if edited_files(other.call))
    return not any(name in call.arguments_raw for call in calls for name in named)


def _formats_next(history: History, step: Step, evidence: Evidence) -> bool:
    """`prettier --check` and then `prettier --write`: the model asked what was to be formatted."""
    asked = checkers(evidence.line or "") & FORMATTERS
    following = history.following(step)
    if not asked or following is None:
        return False
    lines = (other.line or "" for _, other in history.of(following) if other is not None)
    return any(checkers(line) & asked and not _ASKS_FORMAT.search(line) for line in lines)


def _edited_next(history: History, step: Step) -> set[str]:
    """Files that the model edits after a step and before the user speaks again."""
    found: set[str] = set()
    for later, other in history.answered(after=step.index):
        found |= {base(path) for path in edited_files(other.call)}
        if next_words(history, later, after=-1):
            break
    return found


def _was_given(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether an address stood in the context: a link that leads nowhere is no invention of the model's."""
    url = (evidence.call.arguments or {}).get("url")
    if not isinstance(url, str) or not url:
        return False
    messages = (history.trace.messages[key] for key in step.request.messages)
    said = (message for message in messages if message.role != "assistant")
    return any(url in message.text or any(url in result.text for result in message.tool_results) for message in said)


def _unanswered(evidence: Evidence) -> bool:
    """A look whether a server of this machine answers; it does not."""
    asks = any(name in _CALLS_SERVER for name in evidence.programs[-1:])
    silent = evidence.outcome.code == _SILENT_REFUSAL or _NO_ANSWER.search(evidence.outcome.output) is not None
    return asks and silent and _HERE.search(evidence.line or "") is not None


def _served_before(history: History, step: Step, evidence: Evidence) -> bool:
    """Whether the model had started a server before, or does so at the start of this line."""
    runs = False
    for _, other in history.answered(before=step.index):
        line = other.line or ""
        started = max((found.start() for found in _IN_BACKGROUND.finditer(line)), default=-1)
        runs = runs or started >= 0 or _starts_behind(other)
        runs = runs and not any(found.start() > started for found in _ENDS.finditer(line))
    if runs:
        return True
    return _unanswered(evidence) and _IN_BACKGROUND.search(evidence.line or "") is not None


def _starts_behind(evidence: Evidence) -> bool:
    arguments = evidence.call.arguments or {}
    return any(arguments.get(key) in (True, "true") for key in ("run_in_background", "background", "is_background"))
