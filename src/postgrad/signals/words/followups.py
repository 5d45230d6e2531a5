"""What a user says after finished work that is no objection: thanks, "no more", a question, the next wish.

They veto what single words would say: "no, that's all", "how do I undo a commit?", "there is another bug: it crashes",
"looks good. Add a test that fails".
"""

from __future__ import annotations

import re

from postgrad.signals.words.phrases import one_of

_FIRST_WORDS = 200
# A question about the matter takes nothing back, whatever its words: "How do I undo a commit?"
_ASKS = re.compile(
    r"\A\W*(?:how (?:do|can|does|would|to)|what (?:is|does|are|would|happens|if)|is (?:it|there)|does)\b", re.IGNORECASE
)
_STILL = re.compile(r"\b(?:still|again|wrong|broken)\b", re.IGNORECASE)
# "No" and its like with which nothing is refused.
_CLOSES = re.compile(
    r"\A\W*(?:no|nope|nah|nein|non|nee|нет|não|いいえ|不)?\W{0,3}(?:(?:stop\W+)?(?:on arrête|das (?:war|wär)['’]?s"
    r"|das reicht|es todo|basta così|é só isso|всё на сегодня)\b|就这样|以上です|we(?:['’]re| are) (?:done|good|fine"
    r"|finished)\b"
    r"|that(?:['’]?s| is| will be| was) (?:all|it|fine"
    r"|ok(?:ay)?|good|enough|everything)|thanks?\b|thank you|thx|i(?:['’]?m| am) (?:good|fine|ok|done)|(?:it['’]?s"
    r"|all) (?:fine|good|ok(?:ay)?)\b(?!,? but)|go ahead|not (?:now|yet)\b|(?:that|this|it)(?:['’]s| is"
    r"| was) (?:exactly|just|precisely) (?:what|it|right)|all good|nicht nötig|danke\b|passt so|pas (?:besoin"
    r"|la peine|nécessaire)|merci\b|(?:no )?hace falta|no es (?:necesario|urgente)|gracias\b|non (?:serve|occorre"
    r"|importa)|grazie\b|não (?:precisa|é necessário)|obrigad[oa]\b|(?:не )?(?:нужно|надо|стоит),? спасибо|спасибо"
    r"|не (?:нужно|надо)\b|用了|用谢|必了|用改|急|客气|谢谢|要紧|大丈夫|結構です|問題(?:あり|ない))",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:but|however|except|though|aber|allerdings|jedoch|mais|par contre|sauf|cependant|pero|sin embargo|salvo"
    r"|ma|però|tranne|mas|porém|но|однако)"
    r"\b(?!,? (?:can|could|would|please|also|let))|但是?|不过|可是|ですが|けど",
    re.IGNORECASE,
)
# How to do a thing is a question about the matter, in any language.
_ASKS_HOW = re.compile(
    r"\A\W*(?:wie (?:kann|mache?|funktioniert|geht)|comment (?:ça|puis|je|faire|on|est)|cómo (?:puedo|se|hago"
    r"|funciona)|come (?:posso|si|faccio|funziona)|como (?:posso|se|faço|isso|funciona)|как (?:мне|можно|это"
    r"|сделать|работает)|怎么(?:样|用|做|才能|回滚|撤销|实现|运行)|如何|どうやって|どのように|怎樣)",
    re.IGNORECASE,
)
_NEW_MATTERS = (
    r"(?:(?:also|ok(?:ay)?|next|now|and|oh|one more thing)\W+)?(?:there(?:['’]?s| is| are)"
    r"|i (?:also )?(?:found|noticed|have|got)|we (?:also )?have) (?:also )?(?:another|a (?:new|different|second"
    r"|separate)|one more|one other)",
    r"(?:(?:also|ok(?:ay)?|next|now|and|oh)\W+)?(?:the |my )?(?:next|second|third|other|new) (?:task|issue|bug|ticket"
    r"|question|problem|thing|step|one)\b",
    r"(?:(?:great|perfect|nice|good|thanks|cool)\W+)?one (?:last|more|other) thing\b",
    r"(?:the )?(?:requirements?|user story|task|spec|ticket|goal|context|background|example)s?\s*[:：]",
    r"(?:the |our |a |one of (?:the|our) )?(?:customers?|users?|clients?|qa|support|ci|pipeline|build server"
    r"|monitoring)"
    r"\b[^?\n]{1,80}\b(?:investigate|look into|find out|figure out|debug (?:it|this))\b",
)
_NEW_MATTER = re.compile(rf"\A\W*{one_of(*_NEW_MATTERS)}", re.IGNORECASE)
# A plain request, after words of praise or without.
_WISHES = re.compile(
    r"\A\W*(?:(?:great|perfect|nice|cool|good|awesome|super|excellent|lgtm|love it|thanks?|thank you|(?:it |that "
    r"|this )?(?:looks|works) \w+)[^.!?\n]{0,30}[.!,]+\s*)?(?:(?:ok(?:ay)?|now|next|then|also|and|please|so|alright"
    r"|yes|thanks)\W+){0,4}(?:(?:can|could|would|will) you (?:also |please |now )?(?!explain why)\w+|let['’]?s"
    r"|(?:the )?(?:users?|admins?|customers?|visitors?|people|everyone) should|i['’]?d (?:also )?like"
    r"|we should (?:also )?|add|create|implement|write|build|generate|extend|document|deploy|publish|translate"
    r"|summari[sz]e|explain|describe|list|show me|schreib\w*|formulier\w*|erklär\w*|übersetz\w*|escrib\w*|explíca\w*"
    r"|redact\w*|écri\w*|expliqu\w*|rédige\w*|scriv\w*|spiega\w*|escrev\w*|(?:me )?expliqu\w*|напиши\w*|объясни\w*"
    r"|переведи\w*|составь\w*)\b(?!,?\s+(?:is|are|was|were|fails?|failed|does|has|breaks?|still"
    r"|now)\b|\()(?!.{0,60}\bback\b)",
    re.IGNORECASE,
)
_PRAISES = re.compile(
    r"\A\W*(?:great|perfect|nice|awesome|excellent|thanks?|thank you|thx|love|cool|works|good|super|lgtm|danke"
    r"|merci|gracias|grazie|obrigad[oa]|спасибо|谢谢|ありがとう)(?!\w)",
    re.IGNORECASE,
)
_ASKS_WHETHER = re.compile(
    r"\W*(?:\w+[,.!]\s*)?(?:is|are|do|does|did|will|would|can|could|has|have)\b[^?]*\?", re.IGNORECASE
)


def goes_on(opening: str) -> bool:
    """Whether a user's first words end the matter, ask about it, or open another."""
    if _ASKS_HOW.match(opening) or (_ASKS.match(opening) and not _STILL.search(opening)):
        return True
    closes = _CLOSES.match(opening) is not None and _BUT.search(opening[:_FIRST_WORDS]) is None
    return closes or _NEW_MATTER.match(opening) is not None


def wishes(opening: str) -> bool:
    """Whether the words are a plain request, after words of praise or without."""
    return _WISHES.match(opening) is not None


def asks_whether(opening: str) -> bool:
    """Whether the words are a question to be answered with yes or no."""
    return _ASKS_WHETHER.match(opening) is not None


def is_praise(text: str) -> bool:
    """Whether a user's words begin with praise or thanks."""
    return _PRAISES.match(text.lstrip()[:_FIRST_WORDS]) is not None
