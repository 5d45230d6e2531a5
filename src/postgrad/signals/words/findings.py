"""Objections that only tell what the user found: "the link 404s", "it prints undefined", "I get an error".

A finding is a statement that begins with its subject and says something that nobody wants. A condition in it ("when the
list is empty"), an imperative ("show an error"), a question or praise ("great, it returns None now") says nothing of
the work. English only; what objects in other languages is in `objections`. Not covered: what is wrong by the user's
measure alone ("the date is in US format").
"""

from __future__ import annotations

import re

from postgrad.signals.words.followups import is_praise
from postgrad.signals.words.phrases import Phrases, one_of

# What the user saw that the work does now: a subject and one of these, in a statement without a condition.
_FINDINGS = (
    r"(?:is|are) nowhere|404s|never \w+s\b|(?:me|us|it|them|goes|leads|points|redirects|links|sends|opens) (?:to|in"
    r"|on|at"
    r"|into) the wrong \w+",
    r"(?:gives?|returns?|shows?|show as|says|prints?|throws?|raises?|outputs?|displays?|gets?|getting|got) (?:(?:me"
    r"|us|just"
    r"|only|an?|the|back|out) ){0,3}\W?(?:[45]0\d|undefined|null|none|nan|nothing|empty|blank|garbage|exceptions?"
    r"|traceback|\w*errors?)",
    r"(?:is|are|was|were|comes? (?:up|out|back)|looks?|went|goes|stays?) (?:(?:now|just|all|completely|totally"
    r"|always|only|way|far|much|a bit|a little) ){0,2}(?:blank|empty|missing|gone|garbled|cut off|undefined"
    r"|unreadable|misaligned|unstyled|invisible|unchanged|down|crashing|offline|unreachable|frozen|duplicated"
    r"|upside down|backwards|reversed|swapped|dead|stale|outdated|obsolete|deprecated|unmaintained|weird|odd"
    r"|strange|awful|terrible|unnatural|nonsense|inaccurate|incomplete|useless|unused|ugly|confusing|failing|stuck"
    r"|slow|inconsistent|misspell?ed|misspelt|spelled wrong|outdated|too (?!bad)\w+|not \w+ed)",
    r"(?:is|are|looks?) (?:\w+ )?(?:garbage|gibberish|nonsense|over-?engineered|overkill|over-?complicated|a mess)",
    r"(?:is|are) (?:(?:now|still|all) )?(?:off|red)|(?:looks?|is|are|does) (?:exactly )?the same|the wrong \w+",
    r"(?:has|have|had) no(?! (?:problem|issue|objection|idea|preference|question|hurry|need))",
    r"(?:has |have )?(?:disappear(?:s|ed)|vanish(?:es|ed))",
    r"(?<!\bi )(?<!\bwe )(?<!\byou )(?:does|do|did)(?: not|n['’]?t) (?!matter|need|have|hurt|mean|worry|bother)\w+",
    r"there(?:['’]s| is| are) (?:an? |some |still |two |many |several |\d+ )(?:\w+ )?(?:typos?|mistakes?"
    r"|duplicates?|errors?)",
    r"(?:has|have) nothing to do with|too (?:much|many|few|little)|sounds (?:un\w+|weird|wrong|off|odd|strange"
    r"|like an? )",
    r"(?:must|may)(?: not|n['’]?t) (?!be (?:needed|necessary))\w+|(?:won['’]?t|will not) (?!be (?:needed|necessary)"
    r"|need|matter|hurt|change|take)\w+",
    r"(?:is|are|has|have|takes?|gets?|goes) (?:[^\s.!?]+ ){1,6}now(?=\W*(?:\Z|[,.!]))",
    r"(?:that|this|it)(?:['’]s| is) (?:\w+ )?(?:an? |the )?(?:different|other|old|previous|same|another|wrong"
    r"|opposite|unrelated)",
    r"there(?:['’]s| is| are) no(?! (?:rush|hurry|need|more|other|further|problem|worries|questions?|reason))",
    r"blows up|points? to the (?:staging|wrong|old|test|local)\b|went (?:up|down) instead",
    r"(?:crash|hang|freeze|fail)(?:e?s)?(?! (?:gracefully|safe|fast|over))|(?:broke|kills|killed) (?:the|my|our|all"
    r"|every|it)|breaks (?:the|my|our|on|for|with|when|all|every|\w+s)",
    r"(?:is|are|was|were)(?: not|n['’]?t) (?!sure|urgent|necessary|needed|important|required|bad|a |an |my |the )\w+",
    r"(?:the|your) (?:old|previous|original) (?:code|version|one|script|behaviou?r) (?:\w+ed|did|was|had|kept|gave)",
    r"(?:leaves? out|misses|lacks|omits|ignores|overlaps?|contradicts?|duplicates|repeats|overflows|flickers|leaks"
    r"|cuts off|loses|drops)",
    r"(?:has|have|contains?|gives?|shows?) (?:\w+ )?(?:duplicates?|errors?|typos?|gaps|holes|mistakes|warnings)",
    r"(?:docs?|spec|readme|rfc|ticket|design|documentation|instructions) (?:\w+ )?says?",
    r"(?:more|other) (?:places|occurrences|usages|spots|instances|callers|files)",
    r"\w+s (?:out |off |on )?(?:forever|twice|endlessly)|stopped (?!here|there|at|by)\w+ing",
    r"(?:returns?|gives?|shows?|prints?|opens?|goes|gets|sends?|sorts?) .{1,40} instead of",
    r"(?:is|are|has|have|shows?|says|uses?|goes|looks?|includes?|contains?) .{0,100}[,;:.…—-]+ (?:(?:they|those"
    r"|these|there) should|it should (?:say|show|read|use|have|be (?!done|ready|fine|ok)))",
)
_OPENERS = r"(?:h+m+|ok(?:ay)?|well|but|now|and|uh+|um+|actually|sorry|so|oh)"
_SUBJECTS = (
    r"(?:the|a|an|it|this|that|these|those|there|all|both|every|my|your|our|page|tests?|nothing|everything|console"
    r"|some|half|most|none|one|two|many|\w+\("
    r"|(?!what|who|which|where|how|why|if|when)[\w.-]+(?: and [\w.-]+)?(?= (?:is|are|was|were)(?: |n['’]?t )))"
)
_WHERE = r"(?:on|in|with|for|at|under) (?:the )?\w+(?: \w+)?,? "
_CONDITIONS = r"(?:if|when|whenever|whether|unless|until|should|would|must|can|could|will|so that|in case|where)"
_FINDS = re.compile(
    rf"(?:\A|[.!?\n])\W*(?:{_OPENERS}\W+){{0,3}}(?:{_WHERE})?(?={_SUBJECTS}(?!\w))(?:(?!{_CONDITIONS}\b)[^\s.!?]+\s"
    rf"+){{0,7}}?{one_of(*_FINDINGS)}\b",
    re.IGNORECASE,
)
_SEES = re.compile(
    rf"\A\W*(?:{_OPENERS}\W+)*(?:the|my|your|this|that|it|an?) (?:\w+ ){{0,4}}\w+s (?:as soon as|every time|each time"
    rf"|whenever)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*your (?!\w+ (?:works?|looks|is|are|makes?|helps?|helped|sounds"
    rf"|was)\b)\w+ (?:\w+ ){{0,2}}?\w+s\b(?! \w+ed\b)"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:this|that|it)(?: \w+)? would (?:also )?(?:drop|delete|break|remove|overwrite|lose"
    rf"|leak|expose|kill|crash|fail|block|wipe)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*it(?:['’]s| is) (?!work|look|go|gett|compil|pass|runn|do|com|rain|noth|someth"
    rf"|morn)\w+ing (?:the|an?|my|our|all|every)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:missing (?!required)\w+ (?:on|in|at|after|before)\b|i need (?:it|this|that"
    rf"|the \w+) (?:in|as|with|without)\b)|\b(?:what"
    rf"|as) i (?:already )?had before\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:fails|crashes|breaks|hangs|freezes|errors out|throws) (?:on|in|with|when|at|for"
    rf"|an?)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*only (?:half|one|two|some|part|\d+) (?:of )?[^.?!\n]{{1,50}} (?:is|are|was|were|got"
    rf"|came|show\w*)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:it|this|that) (?:now |just |only )?(?:says|complains|prints|outputs|reports)\W"
    r"(?!.{0,20}\b(?:ok(?:ay)?|success\w*|passed|works?|done)\b)"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:it should (?:only|not|still)|nothing (?:has |was )?(?:chang\w+|happen\w+"
    rf"|works?))\b|\A\W*(?:{_OPENERS}\W+)*(?:i (?:(?:now|just|only|keep) )?(?:get|see)|(?:(?:i['’]?m"
    rf"|we['’]re) )?(?:now |still )?(?:getting|seeing)"
    r"|(?:i )?got)\b[^.!?\n]{0,40}?(?:\w*error|exception|traceback|warning|[45]0\d|blank|nothing|undefined|null"
    r"|none)\b|(?:\A|[.!?] )i (?:(?:see|find) no|(?:can['’]?t|cannot|do(?: not|n['’]?t)) (?:see|find))\b"
    r"|\A\W*(?:h+m+|but|wait)\W+(?:the|my|our)\b[^.!?\n]{1,60}?\b(?:says|shows|gives)\b|\buncaught \w*(?:error"
    r"|exception)\b"
    rf"|\A\W*(?:{_OPENERS}\W+)*(?:i|we) (?:see|get|have) (?:\w+ ){{1,5}}now\b|\A\W*(?:{_OPENERS}\W+)*(?:i"
    rf"|we) (?:can(?:['’]?t|not)|could ?n['’]?t) (?!wait|decide|remember|think|tell|thank|believe|find out)\w+"
    rf"|\A\W*(?:{_OPENERS}\W+)*now (?:the|it|my|our|everything|all|nothing) (?:\w+ ){{0,3}}(?:is|are|takes?|has"
    rf"|have|does|shows?|gets?|looks?|can)\b|\A\W*(?:{_OPENERS}\W+)*(?!(?:users?|we|you|i|what|how|which|why|where"
    rf"|when|if|who|people|everyone|admins?)\b)(?:[\w'-]+ ){{1,5}}should (?:be|say|read|use|return|show|only|not"
    rf"|still|go|have)\b|\A\W*(?:{_OPENERS}\W+)*(?:that|this)(?:['’]s| is) (?:the|a|an|our) [^.!?\n]{{1,40}}!",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"\A\W*(?:great|perfect|nice|awesome|excellent|thanks?|thank you|thx|love it|cool|works|good|super|lgtm)\b",
    re.IGNORECASE,
)
_PASTED = Phrases(
    r"^Traceback \(most recent call|^(?:E\s+)?(?:\w+\.)*[A-Z]\w*(?:Error|Exception): "
    r"|^(?:Uncaught )?(?:\w+\.)*[A-Z]\w+Error\b.*$|^npm (?:ERR!|error)",
    r"^FAILED |\b[1-9]\d* (?:failed|failing|errors?)\b|^error(?:\[\w+\])?: |\berror TS\d+|^panic: |^fatal: "
    r"|^\s*at .{1,200}:\d+:\d+\)?$",
    r"BUILD FAILED|Build failed|command not found|exit(?:ed with)? (?:code|status) [1-9]|Segmentation fault"
    r"|^\s+File \"[^\"]+\", line \d+|\.\w+:\d+:\d+: error",
    flags=re.MULTILINE,
)
_LONGEST_PASTE = 6000
_FALLS = re.compile(r"\W{0,2}\?")  # "the header is gone?": a statement in disbelief
_ASKS_ON = re.compile(r"[^.!?\n]*\?")


def finds(opening: str) -> bool:
    """Whether the first sentences of a user tell of something that went wrong."""
    if _PRAISE.match(opening):
        return False
    if (found := _FINDS.search(opening)) is not None:
        return _FALLS.match(opening[found.end() :]) is not None or not _ASKS_ON.match(opening[found.end() :])
    seen = _SEES.search(opening)
    return seen is not None and not _ASKS_ON.match(opening[seen.end() :])


def shows_failure(text: str) -> bool:
    """Whether the user pasted what a program says that failed."""
    return not is_praise(text) and _PASTED.search(text[:_LONGEST_PASTE]) is not None
