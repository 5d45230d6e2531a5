"""Failures that a tool tells in its answer alone: an error object, or a text that begins as a complaint does.

How much of a text counts depends on what the tool gives back. A reader of files gives what others wrote, so it fails
only where the whole short answer is its own word about the file; a tool that nobody knows speaks for itself. Not
covered: a wrong answer without any word of failure.
"""

from __future__ import annotations

import json
import re

from postgrad.signals.error_sites.evidence import Evidence
from postgrad.signals.error_sites.outcomes import json_object
from postgrad.signals.shell.commands import about_files, path_of
from postgrad.signals.words.database import DATABASE_REFUSAL
from postgrad.signals.words.fault_texts import text_fault
from postgrad.signals.words.wordings import BUSY_OR_LIMITED, ERROR_WORD, NETWORK_DOWN, NO_SUCH_FILE, PERMISSION_DENIED

ANSWERED_ERROR = re.compile(
    rf"\A\W*(?:#+ \w+\W+)?{ERROR_WORD}"
    r"(?:\s?[:：](?!\s*(?:none|null|no|0)\b)|\s+(?:executing|calling|running|reading|while|during|in|at|al|beim|lors)\b)",
    re.I,
)
"""An answer that begins with the word "error", under a headline or without one."""
# An answer that begins with an exception, an HTTP status, or a verb of failing.
_RAISED = re.compile(
    r"\A\W*(?:Traceback \(most recent call last"
    r"|(?:[\w$]+[.:]{1,2})*[A-Z]\w*(?:Error|Exception|Fault|Timeout)\b\s*[:(\n]"
    r"|(?:[a-z_]\w*\.)*(?:errors|exceptions)\.[A-Z]\w+:"
    r"|(?:HTTP(?:/[\d.]+)?\W{0,2}(?:error|status(?: code)?)?\W{0,3})[45]\d\d\b|[45]\d\d (?:client|server) error"
    r"|4\d\d (?i:bad request|unauthorized|forbidden|not found|conflict|gone|unprocessable \w+|method not allowed)\b"
    r"|5\d\d (?i:internal server error|not implemented|bad gateway|service unavailable|gateway time-?out)\b"
    r"|(?:\w+ ){0,3}(?:request|call|query|command) failed\b|\d+ validation errors?\b|(?:\w+: )?\[Errno -?\d+\]"
    r"|(?:api|request|response|server|http) (?:error|returned|responded with)\b.{0,40}\b[45]\d\d\b)",
)
_RAISED_ANY_CASE = re.compile(_RAISED.pattern.replace("[A-Z]", "[A-Za-z]"), re.IGNORECASE)
_UNABLE = re.compile(
    r"\A\W*(?:failed to|unable to|could not(?! find any)|cannot|can't|invalid|missing|unknown|unsupported"
    r"|unrecognized"
    r"|unauthorized|forbidden|access denied|permission denied|bad request)\b[^\n]{0,300}\Z"
    r"|\A[^\n]{0,120}\binput should be (?:a |an )?valid\b"
    r"|\A\W*no \w+ (?:with|has) (?:the |that )?(?:id|name|key|number|code)\b[^\n]{0,200}\Z"
    r"|\A[^\n]{1,120}\b(?:not found|does(?: not|n't) exist|is (?:invalid|not (?:a )?valid)"
    r"|is required)\b[^\n]{0,80}\Z",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\A\W*(?:no|0|zero) \w+\b(?! (?:with|has)\b)|\bno (?:matches|results|records)\b", re.IGNORECASE)
# How editors frame what they could not read, a file each.
_FRAMED_ERROR = re.compile(
    r"\A\s*(?:<files?>\s*)*(?:<file\b[^>]*>\s*)?(?:<path>[^<]*</path>\s*)?<(?:error|error_details)>", re.IGNORECASE
)
# How viewers refuse a range of lines.
_BAD_LOOK = re.compile(r"\A\W*(?:error\W+)?invalid [`'\"]?\w+[`'\"]?(?: parameter)?: [^\n]*\Z", re.IGNORECASE)
_OUTSIDE = (BUSY_OR_LIMITED, NETWORK_DOWN)
_IS_A_FOLDER = re.compile(r"\bis a (?:directory|folder)\b|\bEISDIR\b", re.IGNORECASE)
_ONLY_THE_WORD = re.compile(rf"\W*{ERROR_WORD}\W*")
_ERROR_KEY = re.compile(ERROR_WORD)
_GOOD_CODES = (None, 0, 1, 200, "0", "200", "OK", "ok", "SUCCESS", "success")
_ONLY_ERROR = frozenset({"error", "message", "code", "status", "details", "hint"})
_ERROR_LISTS = ("errors", "errorMessages", "error_messages")
_USER_ERRORS = re.compile(r"\"(?:userErrors|user_errors)\"\s*:\s*\[\s*\{")  # of mutations that changed nothing
_STATUS_KEYS = ("status", "statusCode", "status_code", "code", "cod")
_TELLS_OF_ERRORS = re.compile(
    r"(?:\A|_)(?:logs?|console|errors?|diagnostics|exceptions?|traces?)(?:\Z|_)|[a-z](?:Logs?|Errors?|Diagnostics)\Z"
)
_FEW_ROWS, _FEW_KEYS, _SHORT, _LONGEST_LIST, _LONGEST_REFUSAL = 3, 6, 600, 6000, 6000


def answers_with_failure(evidence: Evidence) -> bool:
    """Whether the answer of a tool that is no shell says by itself that the call failed."""
    if _TELLS_OF_ERRORS.search(evidence.call.name):  # errors are what it was asked for
        return False
    kind = evidence.kind if about_files(evidence.call) else "other"
    value = json_object(evidence.text)
    if value is None and kind in ("other", "search") and _only_errors(evidence.text):
        return evidence.result.is_error is not False
    if value is not None and kind == "other" and _USER_ERRORS.search(evidence.text[:_LONGEST_LIST]):
        return True
    if value is not None:
        by_harness = value.get("status") == "error" and ("message" in value or "error" in value)
        trusted = evidence.result.is_error is False
        ran = kind == "other" and evidence.outcome.code not in (None, 0)
        return ran or by_harness or (kind in ("other", "search") and _error_object(value, trusted=trusted))
    if kind == "other" and _refused_query(evidence):
        return True
    if evidence.result.is_error is False:
        spoken = kind == "other" and len(evidence.text) < _SHORT and ANSWERED_ERROR.match(evidence.opening)
        return bool(spoken) or _FRAMED_ERROR.match(evidence.opening) is not None
    if kind == "read":
        return _cannot_read(evidence)
    said = evidence.text.strip()
    if ANSWERED_ERROR.match(evidence.opening):
        return kind == "other" or len(said) < _SHORT
    if kind != "other":
        return len(said) < _SHORT and (_RAISED.match(said) is not None or _missing(said))
    if len(said) < _SHORT and any(phrases.search(said[:_SHORT]) for phrases in _OUTSIDE):
        return True
    return (_RAISED if "\n" in said else _RAISED_ANY_CASE).match(said) is not None or (
        _UNABLE.match(said) is not None and _NOTHING.search(said) is None
    )


def _refused_query(evidence: Evidence) -> bool:
    """What runs queries seldom knows that one was refused: it hands on the database's words as its answer."""
    return len(evidence.text) < _LONGEST_REFUSAL and DATABASE_REFUSAL.match(evidence.opening) is not None


def _missing(said: str) -> bool:
    rows = [row for row in said.splitlines() if row.strip()]
    return 0 < len(rows) <= _FEW_ROWS and NO_SUCH_FILE.search(rows[0][:300]) is not None


def _cannot_read(evidence: Evidence) -> bool:
    """The short answer is about the file that was asked for, and complains; a log that begins with "Error:" is not."""
    if _FRAMED_ERROR.match(evidence.opening) or _BAD_LOOK.match(evidence.opening[:_SHORT]):
        return True
    said = evidence.text.strip()
    rows = [row for row in said.splitlines() if row.strip()]
    if not rows or len(rows) > _FEW_ROWS or len(said) > _SHORT:
        return False
    complains = _missing(said) or any(words.search(rows[0]) for words in (PERMISSION_DENIED, _IS_A_FOLDER))
    if ANSWERED_ERROR.match(said) or _RAISED.match(said):
        complains = complains or text_fault(said) is not None
    rows = rows[1:] if _ONLY_THE_WORD.fullmatch(rows[0].strip()) else rows
    path = path_of(evidence.call.arguments)
    return complains and (len(rows) == 1 or path is None or re.split(r"[\\/]", path)[-1] in said)


def _error_object(value: dict[str, object], *, trusted: bool) -> bool:
    """`trusted`: the source says that all went well; then only the tool's own plain "no" counts."""
    said_no = any(value.get(key) is False for key in ("success", "ok", "succeeded")) or any(
        value.get(key) is True for key in ("isError", "is_error")
    )
    if trusted or said_no:
        return said_no or (bool(value.get("error")) and value.keys() <= _ONLY_ERROR)
    failed = str(value.get("status", "")).lower() in ("error", "fail", "failed", "failure")
    inner = value.get("content")  # ``{"name": tool, "content": answer}``
    wrapped = isinstance(inner, dict) and value.keys() <= {"name", "content", "tool_call_id", "role"}
    if wrapped and isinstance(inner, dict):
        return _error_object(inner, trusted=False)
    failed = failed or value.get("type") == "error" or _names_error(value) or _lists_errors(value)
    return failed or value.keys() == {"detail"} or _http_error(value)  # web frameworks say what is wrong as `detail`


def _names_error(value: dict[str, object]) -> bool:
    """``{"error": "..."}``, in any language; or a code that is no success, with a message and nothing else."""
    if any(given and _ERROR_KEY.fullmatch(name) for name, given in value.items()):
        return True
    code, given = value.get("code"), {name for name, inner in value.items() if inner not in (None, "", [], {})}
    told = given - {"code", "request_id", "requestId", "details", "field"}
    return code not in _GOOD_CODES and bool(told) and told <= {"message", "msg"}


def _lists_errors(value: dict[str, object]) -> bool:
    """``{"errors": [...], "data": null}``: beside the errors the object gives nothing."""
    listed = [name for name in _ERROR_LISTS if value.get(name)]
    rest = (given for name, given in value.items() if name not in (*_ERROR_LISTS, *_STATUS_KEYS, "message"))
    return any(isinstance(value[name], list | dict) for name in listed) and not any(rest)


def _only_errors(text: str) -> bool:
    """``[{"errorCode": "MALFORMED_QUERY", "message": "..."}]``: a list of nothing but errors."""
    if not text.lstrip().startswith("[{") or len(text) > _LONGEST_LIST:
        return False
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return False
    named = ("errorCode", "error_code", "error", "code")
    return all(isinstance(row, dict) and "message" in row and any(row.get(key) for key in named) for row in rows)


def _http_error(value: dict[str, object]) -> bool:
    """A status of 400 to 599, beside which the object says little: that of a page is part of the answer."""
    codes = (str(value.get(key, "")) for key in _STATUS_KEYS)
    return len(value) <= _FEW_KEYS and any(re.fullmatch(r"[45]\d\d", code) for code in codes)
