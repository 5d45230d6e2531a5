"""Objections that only tell what the user found: "the link 404s", "it prints undefined", "I get an error".

A finding is a statement that begins with its subject and says something that nobody wants. A condition in it ("when the
list is empty"), an imperative ("show an error"), a question or praise ("great, it returns None now") says nothing of
the work. English only; what objects in other languages is in `objections`. Not covered: what is wrong by the user's
measure alone ("the date is in US format").
"""

from __future__ import annotations

import re

from postgrad.signals.phrases import one_of

# What the user saw that the work does now: a subject and one of these, in a statement without a condition.
_FINDINGS = (
    r"404s",
    r"(?:gives?|returns?|shows?|says|prints?|throws?|raises?|outputs?|displays?|gets?|getting|got)"
    r" (?:(?:me|us|just|only|an?|the|back|out) ){0,3}\W?"
    r"(?:[45]0\d|undefined|null|none|nan|nothing|empty|blank|garbage|exceptions?|traceback|\w*errors?)",
    r"(?:is|are|was|were|comes? (?:up|out|back)|looks?|went|goes|stays?)"
    r" (?:(?:now|just|all|completely|totally|always|only) ){0,2}"
    r"(?:blank|empty|missing|gone|garbled|cut off|undefined|unreadable|misaligned|unstyled|invisible|unchanged"
    r"|down|crashing|offline|unreachable|frozen|duplicated|upside down|backwards|reversed|swapped)",
    r"(?:is|are) (?:(?:now|still|all) )?(?:off|red)|(?:looks?|is|are|does) (?:exactly )?the same|the wrong \w+",
    r"(?:has|have|had) no(?! (?:problem|issue|objection|idea|preference|question|hurry|need))",
    r"(?:has |have )?(?:disappear(?:s|ed)|vanish(?:es|ed))",
    r"(?<!\bi )(?<!\bwe )(?<!\byou )(?:does|do|did)(?: not|n['’]?t) (?!matter|need|have|hurt|mean|worry|bother)\w+",
    r"there(?:['’]s| is| are) no(?! (?:rush|hurry|need|more|other|further|problem|worries|questions?|reason))",
    r"(?:crashes|hangs|freezes|fails)|breaks (?:the|my|our|on|for|with|when|all|every|\w+s)",
    r"(?:is|are|was|were)(?: not|n['’]?t) (?!sure|urgent|necessary|needed|important|required|bad|a |an |my |the )\w+",
    r"(?:the|your) (?:old|previous|original) (?:code|version|one|script|behaviou?r) (?:\w+ed|did|was|had|kept|gave)",
    r"stopped (?!here|there|at|by)\w+ing",
    r"(?:returns?|gives?|shows?|prints?|opens?|goes|gets|sends?|sorts?) .{1,40} instead of",
    r"(?:is|are|has|have|shows?|says|uses?|goes|looks?|includes?|contains?) "
    r".{0,100}[,;:.…—-]+ (?:(?:they|those|these|there) should"
    r"|it should (?:say|show|read|use|have|be (?!done|ready|fine|ok)))",
)
_OPENERS = r"(?:h+m+|ok(?:ay)?|well|but|now|and|uh+|um+|actually|sorry|so|oh)"
_SUBJECTS = (
    r"(?:the|a|an|it|this|that|these|those|there|all|both|every|my|your|our|page|tests?|nothing|everything|console|some"
    r"|half|most|none|one|two|many"
    r"|\w+\(|(?!what|who|which|where|how|why|if|when)[\w.-]+(?= (?:is|are|was|were)(?: |n['’]?t )))"
)
_WHERE = r"(?:on|in|with|for|at|under) (?:the )?\w+(?: \w+)?,? "
_CONDITIONS = r"(?:if|when|whenever|whether|unless|until|should|would|must|can|could|will|so that|in case|where)"
_FINDS = re.compile(
    rf"(?:\A|[.!?\n])\W*(?:{_OPENERS}\W+){{0,3}}(?:{_WHERE})?(?={_SUBJECTS}(?!\w))"
    rf"(?:(?!{_CONDITIONS}\b)[^\s.!?]+\s+){{0,7}}?{one_of(*_FINDINGS)}\b",
    re.IGNORECASE,
)
_SEES = re.compile(
    rf"\A\W*(?:{_OPENERS}\W+)*(?:it should (?:only|not|still)|nothing (?:has |was )?(?:chang\w+|happen\w+|works?))\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:i (?:(?:now|just|only|keep) )?(?:get|see)|getting|seeing|(?:i )?got)\b"
    r"[^.!?\n]{0,40}?(?:\w*error|exception|traceback|warning|[45]0\d|blank|nothing|undefined|null|none)\b"
    r"|(?:\A|[.!?] )i (?:(?:see|find) no|(?:can['’]?t|cannot|do(?: not|n['’]?t)) (?:see|find))\b"
    r"|\A\W*(?:h+m+|but|wait)\W+(?:the|my|our)\b[^.!?\n]{1,60}?\b(?:says|shows|gives)\b"
    r"|\buncaught \w*(?:error|exception)\b",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"\A\W*(?:great|perfect|nice|awesome|excellent|thanks?|thank you|thx|love it|cool|works|good|super|lgtm)\b",
    re.IGNORECASE,
)
_ASKS_ON = re.compile(r"[^.!?\n]*\?")


def finds(opening: str) -> bool:
    """Whether the first sentences of a user tell of something that went wrong."""
    if _PRAISE.match(opening):
        return False
    found = (words.search(opening) for words in (_FINDS, _SEES))
    return any(match is not None and not _ASKS_ON.match(opening[match.end() :]) for match in found)
