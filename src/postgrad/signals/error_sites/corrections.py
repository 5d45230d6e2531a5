"""Words of the user: did somebody type them, do they speak about the work, and where do they stand in a refusal?

Texts in the user's role are often the application's: stop markers, notices, environment blocks, local commands. What
is left is the user's. Whether the words take back a finished answer is said by `objections`.
"""

from __future__ import annotations

import re

from postgrad.signals.error_sites.outcomes import json_object
from postgrad.signals.words.phrases import one_of

# How applications begin what they say in the user's role.
_NOTICES = (
    r"\[request interrupted|\[task resumption|\[(?:system|error)\]|\[?background (?:task|process)",
    r"<(?!user_?message|feedback|user_?query|task>)[a-z][\w:-]*[-_][\w:-]+[\s>]|<environment",
    r"caveat:|this session is being continued|# context from my ide|unknown (?:slash )?command",
    r"(?:\w+ )?hook (?:feedback|additional context|success|blocking error)|# agents\.md instructions|\[image: "
    r"|base directory for this skill|please continue working on|implement the following plan|launching skill",
    r"your (?:previous (?:response|command|action)|command ran successfully)|tokens: [\d.,]+k? sent",
    r"i ran this command:\s*\n|# fix any errors below",
    r"(?:observation|execution result of \[[^\]]*\]|tool result|output):\s*\n",
)
_NOTICE = re.compile(rf"\A\s*{one_of(*_NOTICES)}", re.IGNORECASE)
# A local command (`/model`, `/mcp`): the user stopped the model to do something else.
_LOCAL_COMMAND = re.compile(
    r"\A\s*(<(command-name|command-message|local-command-stdout|bash-input|bash-stdout)>|/[a-z][\w:-]*(\s|\Z)|![a-z])"
)
_IDE_CONTEXT = re.compile(r"\A\s*# Context from my IDE.*?## My request for Codex:\s*", re.IGNORECASE | re.DOTALL)
# Words that only let the model go on, each of which may stand alone or beside others of them.
_EXCUSES = (
    r"sorry|oops|whoops|my (?:bad|mistake)|mis-?click(?:ed)?|wrong (?:key|button)|(?:by|was an?) (?:accident"
    r"|mistake)",
    r"(?:entschuldigung|versehentlich|pardon|désolée?|perdón|lo siento|извини(?:те)?|抱歉|不好意思|すみません)",
)
_LEAVES = (
    r"continue|go on|go ahead|go|proceed|resume|carry on|keep going|do (?:it|that|so)|try again|retry|run it",
    r"yes|yep|yeah|y|sure|fine|ok(?:ay)?|alright|with (?:it|that)|then|now|this|that",
    r"weiter(?:machen)?|mach (?:weiter|es|das)|fahre? fort|ja|los",
    r"continuez?|vas-y|allez-y|oui|continúa|continua(?:r|re)?|sigue|prosigue|adelante|hazlo|sí|sim|avanti",
    r"продолжай(?:те)?|да|继续|繼續|请继续|执行吧|好的?|可以|続けて(?:ください)?|はい|どうぞ|계속(?:해)?",
)
_PAUSES = (
    r"(?:wait|hold on|hang on|stop|one (?:sec(?:ond)?|moment|minute)|just a (?:sec(?:ond)?|moment|minute)|brb|afk"
    r"|(?:i(?:'ll| will)? be |be )?(?:right )?back (?:in (?:an? )?\w+(?: min(?:ute)?s?)?|soon|later)(?:\W+\w+)?"
    r"|moment(?: mal)?|chwila|espera|un momento|attends|un instant|aspetta|wacht(?: even)?|подожди(?:те)?"
    r"|等一下|等等|ちょっと待って|잠깐만?)"
    r"(?:\W+(?:let me|i(?:'ll| (?:need|have|want|must)(?: to)?)|ich muss|je dois|tengo que|muszę|мне (?:надо|нужно)"
    r"|我)"
    r"\W?\w+(?: (?:something|that|first|etwas|was|quelque chose|algo|coś|\w+)){0,2})?"
)
_MANNERS = (
    r"please|pls|thanks|thank you|bitte|danke|por favor|gracias|s'il (?:te|vous) pla[iî]t|merci|пожалуйста|谢谢|请"
    r"|請",
)
_GO_ON = re.compile(
    rf"\A\W*(?:(?:i )?{one_of(*_EXCUSES, *_MANNERS)}\W*)*{one_of(*_LEAVES, _PAUSES)}"
    rf"(?:\W+{one_of(*_LEAVES, *_MANNERS)})*\W*\Z",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"<(feedback|user_message|user_feedback)>\s*(?P<words>.*?)\s*</\1>", re.DOTALL)
_SAID = re.compile(
    r"(?:the user said|user'?s? (?:feedback|reason|message|response)|with the (?:following )?(?:feedback|reason"
    r"|message)"
    r"|reason for rejection|rejection reason|(?:rejected|denied|declined|cancell?ed) [^:\n]{0,60}?(?:with )?reason"
    r"|rejected your plan)\s*[:：]\s*(?P<words>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_AFTERWORD = re.compile(r"\n\s*Note: The user's next message.*\Z", re.DOTALL)
_WANTS_TO_ASK = re.compile(r"\s*The user wants to clarify", re.IGNORECASE)
_USER_EDIT = re.compile(
    r"\A.{0,300}?the user (?:has )?(?:made|applied) the following (?:updates|edits|changes"
    r"|modifications)\b[^\n]*\n(?P<words>.*)"
    r"|\A[^\n]{0,400} User modified the [^\n]{0,60}content`? to be: ?(?P<modified>.*)"
    r"|<user_?edits?>\s*(?P<tagged>.*?)\s*</user_?edits?>",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST = 8000  # characters of a text that are looked at


def is_local_command(text: str) -> bool:
    """Whether the user ran a command of the application instead of speaking to the model."""
    return _LOCAL_COMMAND.match(text.lstrip()[:100]) is not None


def typed(text: str) -> str:
    """What the user typed, "" where the application wrote the text; an IDE's context block is taken off."""
    bare = _IDE_CONTEXT.sub("", text.lstrip()[:_LONGEST])
    tagged = _TAGGED.search(bare)
    if tagged is not None:
        return tagged["words"].strip()
    return "" if _NOTICE.match(bare) or is_local_command(bare) else bare.strip()


def only_goes_on(text: str) -> bool:
    """Whether the words say nothing against the work: "continue", "go on"."""
    return len(text) < 100 and _GO_ON.match(text) is not None


def words_in_refusal(text: str) -> str:
    """What the user said with a refusal, where the application puts it into the result."""
    text = text[:_LONGEST]
    value = json_object(text) or {}
    said = next(
        (value[key] for key in ("feedback", "reason", "rejection_reason") if isinstance(value.get(key), str)), ""
    )
    found = _TAGGED.search(text) or _SAID.search(text)
    words = said or (_AFTERWORD.sub("", found["words"]) if found else "")
    return "" if _WANTS_TO_ASK.match(words) else words.strip()


def user_edit(text: str) -> str:
    """The changes that the user made to an edit before accepting it, "" if none."""
    found = _USER_EDIT.search(text[:_LONGEST])
    return (found["words"] or found["modified"] or found["tagged"] or "").strip() if found else ""
