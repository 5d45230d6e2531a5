"""What a failed result's own words say is wrong with the call: the wordings of many agents and tools, by kind.

Each is matched only in a result that failed, or at the start of an edit tool's result; the first kind that is named
decides. What a tool's schema says about a call: `faults`.
"""

from __future__ import annotations

import re

from postgrad.signals.words.faults import Fault, FaultKind
from postgrad.signals.words.phrases import Phrases

_TEXTS: tuple[tuple[FaultKind, tuple[str, ...]], ...] = (
    (
        "patch_mismatch",
        (r"apply_?patch verification failed(?!.{0,200}no such file)",),
    ),
    (
        "edit_not_found",
        (
            r"(string|text|content|snippet|code)\b.{0,40}\bto (replace|edit|search for)\b.{0,40}\b(not"
            r"|n't) (found|appear|exist|match)",
            r"(old[_ ]?(str|string|text|content)|search (block|text|string|content|pattern)|target content"
            r"|context lines?)\b.{0,400}?(did not appear|did not match"
            r"|not found|no match|does not match|doesn't match|not in (the )?(file|content)|could not be found)",
            r"no replacement (was )?(performed|made)",
            r"no (exact|sufficiently similar) match(es)? found",
            r"no match(es)? (was |were )?found (for|in)",
            r"(could not|couldn't|failed to|unable to) (find|locate|match) .{0,60}(string|text|block|lines?"
            r"|context|snippet|hunk|content to (replace|edit))",
            r"0 (occurrences|matches|replacements)( found| of| made|\b)",
            r"searchreplacenoexactmatch",
            r"zeichenfolge.{0,40}nicht gefunden",
            r"未找到(要)?替换",
            r"找不到要替换",
            r"找不到(原|旧|指定)?(文本|字串|字符串)",
            r"置換対象.{0,20}見つかりません",
        ),
    ),
    (
        "edit_not_unique",
        (
            r"found \d+ matches of the string",
            r"(text|string|content|block|it) (occurs|appears|was found|is found) ((?!1\b)\d+|several|multiple) times",
            r"multiple (occurrences|matches)( of| found|\b)",
            r"(is )?not unique",
            r"matches? (in )?(multiple|several)",
            r"found multiple",
            r"ambiguous (match|edit|search)",
            r"expected \d+ (occurrences?|replacements?) but found \d+",
            r"more than one (match|occurrence)",
        ),
    ),
    (
        "file_not_read",
        (
            r"file has not been read yet",
            r"must (first )?(be )?read .{0,60}\b(before|first)",
            r"modified since (it was )?(last )?read",
            r"unexpectedly modified",
            r"(you )?must read (the )?file",
            r"has been modified since",
        ),
    ),
    (
        "too_large",
        (
            r"exceeds maximum allowed",
            r"exceeds the maximum",
            r"too (large|long|big) to (read|open|display|edit)",
            r"exceeds .{0,40}(limit|size)\b",
            r"(file|content|input|output|response) (is )?too (large|long|big)",
            r"maximum (context|allowed) .{0,20}(length|tokens|size)",
        ),
    ),
    (
        "empty_patch",
        (
            r"empty patch",
            r"patch (is|was) empty",
            r"no (hunks|changes|edits) (in|were found in) (the )?patch",
            r"no diff (blocks? )?found",
        ),
    ),
    (
        "patch_mismatch",
        (
            r"(invalid|malformed|corrupt) (patch|hunk|diff)",
            r"patch (does not apply|failed|rejected)",
            r"failed to apply (the )?(patch|diff|edit|hunk)",
            r"hunk #?\d+ (failed|rejected)",
            r"invalid (context|add file line|update file line)",
            r"context mismatch",
            r"not a valid (patch|diff)",
        ),
    ),
    (
        "bad_edit",
        (
            r"edit has introduced (new )?(syntax|lint)\w* error",
            r"your (proposed )?(edit|changes?) (has|have) not been applied",
            r"e\d{3} (indentation|syntax)error",
        ),
    ),
    (
        "no_change",
        (
            r"no edit history",
            r"no changes? (to (make|apply)|were made|made|detected|needed)",
            r"(are|is) (exactly )?(the same|identical)\b.{0,60}",
            r"would (result in|make) no changes?",
            r"old_?str(ing)? and new_?str(ing)?.{0,40}(same|identical|different)",
            r"applied 0 (of|edits|changes|hunks)",
        ),
    ),
    (
        "bad_range",
        (
            r"invalid .{0,30}(view_range|range|line number|offset|insert_line)",
            r"(line|offset|range|index|position).{0,60}(out of (range|bounds)|beyond|exceeds|past the end"
            r"|greater than|smaller than the number|shorter than)",
            r"start .{0,30}must be (less|smaller|before)",
            r"file has only \d+ lines",
        ),
    ),
    (
        "missing_file",
        (
            r"(file|path|directory|folder) .{0,200}does(n't| not) exist",
            r"no such (file|directory)",
            r"enoent",
            r"(file|path|directory|folder) (was )?not found",
            r"cannot find (the )?(file|path)",
            r"could not find (the )?(file|path)",
            r"(file|path|directory|folder) .{1,200} (was |is )?not found",
            r"non-?existent (file|path|directory|folder)",
        ),
    ),
    (
        "unknown_tool",
        (
            r"no such (tool|function)",
            r"(unknown|unsupported|unrecognized|undefined) (tool|function|call)",
            r"(tool|function) .{0,80}(not found|not available|does not exist|is not (defined|registered"
            r"|supported|available)|isn't available)",
            r"not found in registry",
            r"is not a valid (tool|function)",
            r"model tried to call unavailable tool",
            r"unsupported call",
        ),
    ),
    (
        "missing_argument",
        (
            r"required (parameter|argument|property|field)",
            r"missing \d* ?(required|value|parameter|argument)",
            r"(is|was) (missing|required)\b",
            r"field required",
            r"without (a )?value for",
            r"must (have required property|provide)",
            r"must be provided",
            r"required for command",
        ),
    ),
    (
        "unexpected_argument",
        (
            r"unexpected (parameter|keyword|argument|property)",
            r"unrecognized key",
            r"additional ?properties",
            r"extra (inputs|fields) (are )?not",
            r"unknown (parameter|argument|field)",
        ),
    ),
    (
        "wrong_type",
        (
            r"expected (type )?\W?(string|number|integer|boolean|array|object)",
            r"is not of type",
            r"invalid(_| )type",
            r"must be (a |an |of type )?(string|number|integer|boolean|array|object|absolute)",
            r"(should be|is not) a valid",
            r"validation error",
            r"inputvalidationerror",
        ),
    ),
    (
        "bad_value",
        (
            r"is expected to be one of",
            r"(file|path) .{0,200}already exists",
            r"(cannot (create|overwrite)|attempted to create).{0,60}(exists|create)",
            r"exists.{0,80}cannot (create|overwrite)",
            r"must be one of",
            r"(is )?not (one of|a valid (choice|option|value))",
            r"invalid (option|enum|value|parameter|argument|choice)",
            r"not allowed in a regex",
            r"invalid (regex|pattern|regular expression)",
            r"failed to parse (regex|pattern)",
            r"-3260[0-3]",
        ),
    ),
    (
        "malformed_json",
        (
            r"invalid json",
            r"json ?parse",
            r"failed to parse",
            r"could not be parsed",
            r"jsondecodeerror",
            r"unterminated string",
            r"parsing (error|failed)",
            r"you did not use a tool",
            r"did not (use|call|include) (a|any) (tool|function|action)",
            r"format ?error",
            r"malformed",
            r"(解析|parse).{0,10}失败",
            r"JSON.{0,6}(错误|錯誤|エラー)",
        ),
    ),
)
_PATTERNS = tuple((kind, Phrases(*phrases, flags=re.IGNORECASE | re.DOTALL)) for kind, phrases in _TEXTS)


def text_fault(text: str) -> Fault | None:
    """The fault that a failed result's own words name, if any."""
    for kind, pattern in _PATTERNS:
        if pattern.search(text):
            return Fault(kind, first_words(text))
    return None


def first_words(text: str, *, limit: int = 600) -> str:
    """The text without the tags some agents put around it, cut to `limit` characters."""
    bare = re.sub(r"</?tool_use_error>", "", text).strip()
    return bare if len(bare) <= limit else bare[: limit - 1].rstrip() + "…"
