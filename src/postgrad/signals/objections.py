"""The plain ways to say "not that" about a finished answer (rule 10), in ten languages.

A cheap pattern of low confidence: its sites are shown and never learnt from by themselves. Four sorts of words are
told apart: a refusal at the very start ("no, ..."), an objection anywhere in the first sentences ("you forgot the
header"), a finding ("the link 404s": `findings`) and a request to take work back ("undo that"). A refusal that answers
the model's own question objects to nothing, and a question about the matter takes nothing back. Not covered: irony, and
words that only say what is wanted.
"""

from __future__ import annotations

import re

from postgrad.signals.findings import finds
from postgrad.signals.phrases import one_of

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
    r"아니(?:요|오|야)?",
    r"いいえ",
    r"nee",
    r"nie",
    r"hayır",
    r"não",
)
_HALTS = (
    r"oh no(?!\W+(?:then|ok|alright|too bad)\b)",
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
        r"(?:that|this|it)(?:'?s| is| was) not(?! (?:bad|urgent|necessary|needed|important|a problem))",
        r"(?:that|this|it)(?:'?s| is| was) (?:wrong|incorrect|broken)",
        r"(?:that|this|it) (?:is|was)n['’]?t (?:what|right|correct|working|it|how)",
        r"(?:is|was|are|looks?|still) (?:wrong|incorrect|broken|failing)",
        r"still (?:not|does ?n[o'’]t|fails?|breaks?|crash(?:es|ing)?|throws?|hangs?|errors?|shows?|happen(?:s|ing))",
        r"still (?:the same|getting|see|gives?|returns?|says|prints?|there|empty|missing)",
        r"does ?n[o'’]t (?:work|help|compile|run)|(?:is|are) ?n[o'’]t working",
        r"did ?n[o'’]t (?:work|help|fix|ask)",
        r"you (?:forgot|missed|broke|removed|deleted|ignored|should(?:n['’]t| not) have|were supposed)",
        r"you (?:dropped|lost|skipped|overwrote|left (?!off|it|me)|mixed up|messed|screwed|duplicated|misread)",
        r"(?:this|that|it)(?:['’]s| is) [^.!?\n]{1,60}[.!,;] (?:but )?i (?:need|want|asked|meant|said)\b",
        r"(?:that|this) was (?:only |just )?(?:half|part) of|you (?:counted|never)|you (?:only|just) (?!need)\w+ed",
        r"i think you(?:['’]ve| have)? (?!need|want)(?:\w+ed|forgot|meant|left|took|made|put)",
        r"you (?:did|have)(?: not|n['’]?t)(?! (?:need|have to|mention|been))|you could (?:simply |just |easily )?have",
        r"you were(?: not|n['’]?t| never) (?:asked|told|supposed)|(?:nobody|no one|i never) (?:asked|told|said|wanted)",
        r"next time,? (?:please |just )?(?:leave|ask|do|don|keep|use|wait|check|tell|make|stick|stop|read)",
        r"(?:that|this|it) can(?:['’]?t|not) be (?:right|correct|true)",
        r"(?:close|almost|nearly|not quite)(?: there)?,? but",
        r"why are you \w+ing|no\W+not (?:the|that|this|these|those)|, we (?:always|never|do(?: not|n['’]?t))",
        r"(?:delete|remove|drop) (?:that|this|it|them) and",
        r"(?:it|that|this|the \w+) still (?!works|passes|holds|applies|compiles|runs)\w+s",
        r"why (?:is|are|do|does) .{1,30} still",
        r"(?:do|post|write|make|format|test|fix|name|spell|sort|handle) (?:it|that|this|them) (?:properly|correctly)",
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
        r"das fehlt|fehl(?:t|en) (?:noch|immer|aber|jetzt)",
        r"das sollte(?! (?:reichen|passen|gehen|genügen|klappen|stimmen))",
        r"(?:das|es) ist (?:noch )?(?:kein\w* (?!problem|thema|ding)|nicht (?!schlimm|dringend|nötig|eilig))",
        r"warum hast du|leider (?:nicht|falsch)|ich sehe .{1,40} nicht|(?:gehört|muss|sollte) (?:natürlich|doch)",
    ),
    "French": (
        r"ce n'est pas (?:ça|correct|ce que)|c'est faux|je voulais dire|ne (?:marche|fonctionne) (?:toujours )?pas",
        r"échouent?|tu as oublié|vous avez oublié|annule|au lieu de|plutôt que",
        r"il (?:reste|manque) (?:encore|toujours|plein|des)|pourquoi (?:as-tu|avez-vous)",
        r"tu n['’](?:en )?as|vous n['’](?:en )?avez",
    ),
    "Spanish": (
        r"eso no|no es (?:eso|correcto|lo que)|(?<!no )está mal|quería decir|no funciona",
        r"sigue (?:sin|fallando|dando)|(?:todavía|aún) (?:no|falla|da)",
        r"fallan|olvidaste|deshaz|en lugar de|en vez de",
        r"equivocad[oa]s?|te equivocaste|se equivocó|no era (?:eso|lo)|por qué (?:borraste|cambiaste|quitaste)",
    ),
    "Portuguese": (r"não (?:é|está|funciona)|errad[oa]s?|ainda não|esqueceu|faltou|desfaça|em vez de",),
    "Italian": (
        r"non (?:è|va|funziona)|sbagliato|ancora non|annulla|invece di|hai (?:dimenticato|cancellato|rimosso)",
    ),
    "Dutch": (r"klopt niet|(?:dat|het) is (?:fout|niet)|werkt (?:nog )?niet|nog steeds|je bent .{0,40}vergeten",),
    "Polish": (r"źle|nie działa|to nie (?:to|tak)|zapomniał[ea]ś|zmienił[ea]ś .{0,60}zamiast|nadal nie",),
    "Turkish": (r"yanlış|çalışmıyor|hâlâ|unuttun",),
}
# Scripts in which words have no bounds that an expression could ask for.
_UNBOUND = (
    r"это не то|\A\W*не то|неправильно|не работает|всё ещё|все еще|ты забыл|вы забыли|отмени|верни|вместо"
    r"|не хватает|пропал|зачем ты|почему ты (?:удалил|изменил|убрал)",
    r"不对|不對|是错|是錯|不是这|不是這|还是不|還是不|仍然|没有用|沒有用|不起作用|忘了|忘记|忘記|撤销|撤銷|恢复|恢復|而不是|错误的|錯誤的"
    r"|(?:理解|搞|弄)错|(?:理解|搞|弄)錯|重新(?:写|寫|做|来|來|改)|改回|漏了|少了|不见了|不見了|为什么(?:删|改|还)|怎么还",
    r"違います|違う|そうじゃな|ではなく|まだ(?:動|でき|直)|動きません|動かない|間違(?:って|い|え)|忘れて|元に戻|やり直|抜けて|消えて|足りません|おかしい",
    r"아니라|틀렸|여전히|했잖아|안 ?돼|안 ?됩|되돌려|잊었|빠졌|잘못",
)
_PLEASE = r"(?:please|pls|now|just|ok(?:ay)?|can you|could you|and|then)"
_BACK = r"(?:undo|revert|redo|roll(?:ing)? ?back)"


_REFUSES = re.compile(rf"\A\W*{one_of(*_REFUSALS)}(?=[\s,.!:;，。、！–—]|-(?!\w)|\Z)", re.IGNORECASE)
_HALTS_WORK = re.compile(
    rf"\A\W*(?:\w{{1,5}}\W+)?{one_of(*_HALTS)}(?=\s*[,.!:;—–-])|\A\W*(?:still |the )?(?:wrong|incorrect)\b"
    r"|\A\W*(?:(?:it'?s|that'?s|way|far) )*too (?!bad|kind|good|easy)\w+",
    re.IGNORECASE,
)
_OBJECTS = re.compile(
    rf"\b{one_of(*(phrase for phrases in _OBJECTIONS.values() for phrase in phrases))}\b"
    rf"|{one_of(*_UNBOUND)}|[.!?,;]\s+wrong\b",
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
    return refuses or finds(opening) or any(words.search(opening) for words in (_HALTS_WORK, _OBJECTS, _TAKES_BACK))
