"""The plain ways to say "not that" about a finished answer (rule 10), in ten languages.

A cheap pattern of low confidence: its sites are shown and never learnt from by themselves. Three sorts of words are
told apart: a refusal at the very start ("no, ..."), an objection anywhere in the first sentences ("you forgot the
header"), and a request to take work back ("undo that"). A refusal that answers the model's own question objects to
nothing, and a question about the matter takes nothing back. Not covered: irony, and words that only say what is wanted.
"""

from __future__ import annotations

import re

_OPENING = 400  # characters: the first sentences

# "no" and "not" open many polite sentences, too: "no problem", "not bad".
_REFUSALS = (
    r"no(?! (?:problem|worries|need|rush|hurry|thanks|thank you|questions?|objections?|further|more|other|idea"
    r"|comments?|changes?|issues?|doubt|wonder|está mal|hay|te preocupes)\b)",
    r"not(?! (?:bad|yet|sure|only|really|at all|necessarily|a problem|to worry|that i)\b)",
    r"nope",
    r"nein",
    r"non",
    r"нет",
    r"不对|不對|不是|不行|错了|錯了",
    r"いや|違い?ます?|違う",
    r"아니",
    r"não",
)
_HALTS = (
    r"oh no",
    r"stop",
    r"wait",
    r"hold on",
    r"hang on",
    r"oops",
    r"halt",
    r"moment mal",
    r"attends",
    r"espera",
    r"стой",
)
_OBJECTIONS: dict[str, tuple[str, ...]] = {
    "English": (
        r"not (?:that|what i)",
        r"you misunder(?:stood|stand)|u misunder(?:stood|stand)",
        r"(?:that|this|it)(?:'?s| is| was) (?:not(?! bad)|wrong|incorrect|broken)",
        r"(?:that|this|it) (?:is|was)n['’]?t (?:what|right|correct|working|it|how)",
        r"(?:is|was|are|looks?|still) (?:wrong|incorrect|broken|failing)",
        r"still (?:not|does ?n[o'’]t|fails?|breaks?|crash(?:es|ing)?|throws?|hangs?|errors?|shows?|happen(?:s|ing))",
        r"still (?:the same|getting|see)",
        r"does ?n[o'’]t (?:work|help|compile|run)|(?:is|are) ?n[o'’]t working",
        r"did ?n[o'’]t (?:work|help|fix|ask)",
        r"you (?:forgot|missed|broke|removed|deleted|ignored|should(?:n['’]t| not) have|were supposed)",
        r"you(?:'ve| have)? (?!want|need|think|find|see)\w+ (?:\w+ ){0,3}(?:to |in |from |at |for )?the wrong",
        r"are you sure|i['’]?a?m (?:pretty |quite |fairly )?sure (?:it|that|this)",
        r"(?:should have been|was meant (?:for|to)|supposed to be)|nothing happens|i (?:do ?n[o'’]t|did ?n[o'’]t) like",
        r"i (?:said|meant|asked|told|only wanted|only asked)",
        r"why did you (?:delete|remove|change|drop|break|overwrite|touch|ignore|skip|rename|add)",
        r"(?:don['’]?t|do not|never) (?:do|use|change|touch|remove|delete|add)",
        r"instead(?=[.!]|\s*\Z)",
        r"try again",
        r"(?:put|change|move) (?:it|them|that|this) back|leave .{1,40} alone",
    ),
    "German": (
        r"das ist falsch|ich meinte|stimmt (?:so )?nicht|nicht das|immer noch|stattdessen|sondern",
        r"(?:funktioniert|geht) (?:immer noch )?nicht",
        r"du hast .{0,40}vergessen",
        r"mach das rückgängig|rückgängig|schl(?:ägt|agen) fehl|ist (?:falsch|kaputt)",
    ),
    "French": (
        r"ce n'est pas (?:ça|correct|ce que)|c'est faux|je voulais dire|ne (?:marche|fonctionne) (?:toujours )?pas",
        r"échouent?|tu as oublié|vous avez oublié|annule|au lieu de|plutôt que",
    ),
    "Spanish": (
        r"eso no|no es (?:eso|correcto|lo que)|(?<!no )está mal|quería decir|no funciona",
        r"sigue (?:sin|fallando|dando)|(?:todavía|aún) (?:no|falla|da)",
        r"fallan|olvidaste|deshaz|en lugar de|en vez de",
    ),
    "Portuguese": (r"não (?:é|está|funciona)|está errado|ainda não|esqueceu|desfaça|em vez de",),
    "Italian": (r"non (?:è|va|funziona)|sbagliato|ancora non|annulla|invece di",),
}
# Scripts in which words have no bounds that an expression could ask for.
_UNBOUND = (
    r"это не то|\A\W*не то|неправильно|не работает|всё ещё|все еще|ты забыл|вы забыли|отмени|верни|вместо",
    r"不对|不對|是错|是錯|不是这|不是這|还是不|還是不|仍然|没有用|沒有用|不起作用|忘了|忘记|忘記|撤销|撤銷|恢复|恢復|而不是|错误的|錯誤的"
    r"|(?:理解|搞|弄)错|(?:理解|搞|弄)錯|重新(?:写|寫|做|来|來|改)|改回",
    r"違います|違う|そうじゃな|ではなく|まだ(?:動|でき|直)|動きません|動かない|間違(?:って|い|え)|忘れて|元に戻|やり直",
    r"아니라|틀렸|여전히|안 ?돼|안 ?됩|되돌려|잊었",
)
_PLEASE = r"(?:please|pls|now|just|ok(?:ay)?|can you|could you|and|then)"
_BACK = r"(?:undo|revert|redo|roll(?:ing)? ?back)"


def _one_of(*patterns: str) -> str:
    return "(?:" + "|".join(patterns) + ")"


_REFUSES = re.compile(rf"\A\W*{_one_of(*_REFUSALS)}(?=[\s,.!:;，。、！–—]|-(?!\w)|\Z)", re.IGNORECASE)
_HALTS_WORK = re.compile(
    rf"\A\W*(?:\w{{1,5}}\W+)?{_one_of(*_HALTS)}(?=\s*[,.!:;—–-])|\A\W*(?:still |the )?(?:wrong|incorrect)\b"
    r"|\A\W*(?:(?:it'?s|that'?s|way|far) )*too (?!bad|kind|good|easy)\w+",
    re.IGNORECASE,
)
_OBJECTS = re.compile(
    rf"\b{_one_of(*(phrase for phrases in _OBJECTIONS.values() for phrase in phrases))}\b"
    rf"|{_one_of(*_UNBOUND)}|[.!?,;]\s+wrong\b",
    re.IGNORECASE,
)
# To take back what was done, and not a feature of that name: "make sure undo works".
_TAKES_BACK = re.compile(
    rf"(?:\A|[.!?,;:\n])\W*(?:{_PLEASE}\W+)*{_BACK}(?!\w)"
    rf"|\b{_BACK} (?:that|this|it|these|those|them|your|all|the (?:last|change))\b",
    re.IGNORECASE,
)
# A question about the matter takes nothing back, whatever its words: "How do I undo a commit?"
_ASKS = re.compile(
    r"\A\W*(?:how (?:do|can|does|would|to)|what (?:is|does|are|would|happens|if)|is (?:it|there)|does)\b", re.IGNORECASE
)
_STILL = re.compile(r"\b(?:still|again|wrong|broken)\b", re.IGNORECASE)


def objects(text: str, *, answers: bool = False) -> bool:
    """Whether a user's words negate, redo or take back what was done; judged by the first sentences.

    `answers`: the model had asked something, so a plain "no" at the start is an answer.
    """
    opening = text.lstrip()[:_OPENING]
    if _ASKS.match(opening) and not _STILL.search(opening):
        return False
    refuses = not answers and _REFUSES.match(opening) is not None
    return refuses or any(words.search(opening) for words in (_HALTS_WORK, _OBJECTS, _TAKES_BACK))
