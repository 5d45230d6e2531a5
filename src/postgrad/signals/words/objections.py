"""The plain ways to say "not that" about a finished answer (rule 10), in seven languages, and some words of eight more.

Words are looked for by what they do (`objection_words`, `demand_words`, `reminders`): a refusal at the very start
("no, ..."), blame, "as before", what is missing, what had been wanted, a request to take work back, disbelief, a
contrast, a concession ("better, but"). English findings ("the link 404s") are in `findings`. What ends the matter, asks
about it or wishes for more vetoes them (`followups`). A refusal that answers the model's own question objects to
nothing. Not covered: irony, and words that only say what is wanted.
"""

from __future__ import annotations

import re

from postgrad.signals.words import demand_words, objection_words
from postgrad.signals.words.findings import finds
from postgrad.signals.words.followups import asks_whether, goes_on, wishes
from postgrad.signals.words.phrases import one_of
from postgrad.signals.words.reminders import reminds

_OPENING = 250  # characters: the first sentences

# "no" and "not" open many polite sentences, too: "no problem", "not bad".
_REFUSALS = (
    r"no(?! (?:problem|worries|need|rush|hurry|thanks|thank you|questions?|objections?|further|more|other|idea"
    r"|preference|opinion|strong|particular|comments?|changes?|issues?|doubt|wonder|está mal|hay|te preocupes|tengo"
    r"|necesito|s[eé]|puedo)\b"
    r"|\W{1,2}(?:i|we) (?:do(?: not|n['’]?t)) (?:have|know|need|remember|think so|mind)\b|\W{1,2}(?:that|it)(?:['’]s"
    r"| is) not (?:necessary|needed|required|urgent)\b)",
    r"not(?! (?:bad|yet|sure|only|really|at all|necessarily|a problem|to worry|that i)\b)",
    r"nope|не совсем|nicht ganz|pas tout à fait|no (?:exactamente|del todo)|não (?:exatamente|bem assim)|non proprio",
    r"nein",
    r"non",
    r"нет",
    r"不对|不對|不是|不行|错了|錯了|不完全是",
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
    r"halt|stopp|arr[êe]te[sz]?|alto|ferma(?:ti)?|pare|стоп",
    r"moment mal",
    r"attends",
    r"espera",
    r"стой",
)
_OBJECTIONS: dict[str, tuple[str, ...]] = {
    "English": (
        r"not (?:that|what i)",
        r"you misunder(?:stood|stand)|u misunder(?:stood|stand)",
        r"(?<!\w )(?:that|this|it)(?:'?s| is| was) not(?! (?:bad|urgent|necessary|needed|important|a problem))",
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
        r"you (?:did|have)(?: not|n['’]?t)(?! (?:need|have to|mention|been))|you could (?:simply |just "
        r"|easily )?have",
        r"you were(?: not|n['’]?t| never) (?:asked|told|supposed)|(?:nobody|no one|i never) (?:asked|told|said"
        r"|wanted)",
        r"next time,? (?:please |just )?(?:leave|ask|do|don|keep|use|wait|check|tell|make|stick|stop|read)",
        r"(?:that|this|it) can(?:['’]?t|not) be (?:right|correct|true)",
        r"(?:close|almost|nearly|not quite)(?: there)?,? but",
        r"why are you \w+ing|no\W+not (?:the|that|this|these|those)|, we (?:always|never|do(?: not|n['’]?t))",
        r"(?:delete|remove|drop) (?:that|this|it|them) and",
        r"(?:it|that|this|the \w+) still (?!works|pass\b|passes|holds|applies|compiles|runs)\w+s",
        r"why (?:is|are|do|does) .{1,30} still",
        r"(?:do|post|write|make|format|test|fix|name|spell|sort|handle) (?:it|that|this|them) (?:properly|correctly)",
        r"you(?:'ve| have)? (?!want|need|think|find|see)\w+ (?:\w+ ){0,3}(?:to |in |from |at |for )?the wrong",
        r"are you sure|i['’]?a?m (?:pretty |quite |fairly )?sure (?:it|that|this)",
        r"(?:should have been|was meant (?:for|to)|supposed to be)|nothing happens|i (?:do ?n[o'’]t"
        r"|did ?n[o'’]t) like",
        r"i (?:said|meant|asked|told|only wanted|only asked)",
        r"why did you (?:delete|remove|change|drop|break|overwrite|touch|ignore|skip|rename|add)",
        r"(?:don['’]?t|do not|never) (?:do|use|change|touch|remove|delete|add)",
        r"instead(?=[.!]|\s*\Z)|nowhere (?:in|to be|on)",
        r"(?<![.!?,;] )try again",
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
    # Chinese: wrong, as before, missing, had wanted, back, disbelief, contrast, broken
    r"不对|不對|不是这|不是這|不是我|是错|是錯|错了|錯了|错误的|錯誤的|(?:改|删|用|写|理解|搞|弄|选|看|填|放)(?:错"
    r"|錯)|有误|不正确|不正確|不符合",
    r"还是(?!可以|很|挺|不错)|還是(?!可以|很)|仍然|依然|依旧|仍旧|同样的(?:错误|问题)|又(?:报错|出错|错|失败|坏)"
    r"|没有?(?:任何)?(?:变化|效果|反应|改变)|沒有(?:任何)?變化|没反应",
    r"没有?(?:用|生效|效果|改|按|显示|出现|保存|更新)(?!过)|沒有(?:用|生效|效果)|不(?:生效|起作用|工作|显示|顯示"
    r"|能用|行了|见了|見了)|(?:打|用|点|进|连|看|登|跑)不(?:开|到|了|上|动|通)|不(?:通过|能用|行)了"
    r"|不是.{1,12}[，,](?:而)?是|报错|出错了|崩溃|空白|丢了|丢失|漏了|漏掉|少了|缺了|缺少(?!的话)|多了",
    r"我(?:说|說|要|想要|指|问|問)的(?:是|不是)|我(?:没|沒)(?:让|讓|说|說|要)|我的意思|谁(?:让|叫|要)你|誰(?:讓|叫)你|忘了|忘记|忘記|不是(?:让|叫"
    r"|要)你|[你它]把.{1,12}(?:删|刪|改|弄|去掉|覆盖|覆蓋|换|換|移)(?:了|掉)|反了|你(?:没|沒)有?(?!关系|关注)|我要求|我(?:明明|已经说)",
    r"撤销|撤銷|恢复(?!正常)|恢復|还原|還原|回滚(?!的)|改回|退回|(?:改|变|弄|放)回(?:去|来|原)|重新(?:写|寫|做|来"
    r"|來|改)|别动|不要动|别改|不要改|不要(?:用|加|写|删)|别(?:用|加|写|删)",
    r"为什么(?:要?(?:删|改|加|用|动)|还|没|不|又|会)|為什麼(?:刪|改|還|沒)|怎么(?:还|又|没|不|把|会)|怎麼(?:還|又"
    r"|沒|把)|你确定|确定吗|真的吗",
    r"而不是|不应该|不應該|应该是|應該是|应该(?:用|改|为)(?!吗)|太(?:长|短|复杂|慢|大|小|多)了",
    # Japanese
    r"違い?ます|違う(?!.{0,3}(?:ページ|方法|言語|もの)[をに]追加)|そうじゃな|そうではな|ではなく|じゃなくて"
    r"|間違(?:って|い|え)|おかしい|正しくな",
    r"まだ(?:エラー|動|でき|直|表示|同じ|残|ダメ|だめ)|(?:[けせれえべめて]|なり|合い|足り)ません(?!か|でしょう)"
    r"|なくなりました|なくなった|同じエラー|変わ(?:りません|らない|っていない|ってない)|エラーが(?:出|発生|表示)"
    r"|反応し(?:ません|ない)|余計な|崩れ(?:て|ました)|失敗し(?:ます|ました|た)|落ちます|クラッシュ",
    r"(?:動|動作|表示|起動|反映|保存|コンパイル|機能|見え|でき|開き)(?:し|さ|され)?(?:き|え|れ|か)?(?:ません"
    r"|ない(?!よう|場合|とき|なら))|抜けて|消えて|足りません|足りない|なくなっ|空白|二重",
    r"頼んで(?:い)?(?:ません|ない)|と言(?:い|っ)(?:まし)?た|と言いました|ほしかった|欲しかった|忘れて",
    r"元に戻|戻して|やり直|取り消し|(?:使わ|変え|変更し|消さ|追加し|触ら)ないで|なぜ(?:消|変|削|追加|使)"
    r"|どうして(?:消|変|削)|本当(?:です)?(?:か|に\?)|べきで(?:す|は|し)|すぎ(?:ます|です|る)",
    # Korean, in the commonest words
    r"아니라|틀렸|여전히|했잖아|안 ?돼|안 ?됩|되돌려|잊었|빠졌|잘못|말고",
)
_TOO_MUCH_OF = {
    "de": r"(?:das ist |viel |noch )*zu (?:lang|kurz|kompliziert|groß|klein|viel|langsam)\w*",
    "fr": r"(?:c['’]est |beaucoup )*trop \w+",
    "es": r"(?:es |está )*demasiado \w+",
    "it": r"(?:è )*troppo \w+",
    "pt": r"(?:está |ficou |é )*(?:muito (?:longo|grande|pequeno|complicado|curto)|demais)",
    "ru": r"слишком \w+",
}

_PLEASE = r"(?:please|pls|now|just|ok(?:ay)?|can you|could you|and|then)"
_BACK = r"(?:undo|revert|redo|roll(?:ing)? ?back)"


_REFUSES = re.compile(rf"\A\W*{one_of(*_REFUSALS)}(?=[\s,.!:;，。、！–—]|-(?!\w)|\Z)", re.IGNORECASE)
_HALTS_WORK = re.compile(
    rf"\A\W*(?:\w{{1,5}}\W+)?{one_of(*_HALTS)}(?=\s*[,.!:;—–-]| (?:where|why|what|that|this|no|we|you|i)\b)"
    rf"|\A\W*(?:still |the )?(?:wrong|incorrect)\b"
    r"|\A\W*(?:(?:it'?s|that'?s|way|far) )*too (?!bad|kind|good|easy)\w+",
    re.IGNORECASE,
)
_OBJECTS = re.compile(
    rf"\b{one_of(*(phrase for phrases in _OBJECTIONS.values() for phrase in phrases))}\b"
    r"|[.!?,;]\s+wrong\b",
    re.IGNORECASE,
)
# To take back what was done, and not a feature of that name: "make sure undo works".
_TAKES_BACK = re.compile(
    rf"(?:\A|[.!?,;:\n])\W*(?:{_PLEASE}\W+)*{_BACK}(?!\w)|\b{_BACK} (?:that|this|it|these|those|them|your|all"
    rf"|the (?:last|change))\b",
    re.IGNORECASE,
)
_CONDITIONS = re.compile(
    r"\b(?:wenn|falls|ob|sobald|sodass|damit|dass|si|quand|lorsqu\w*|cuando|que|se|quando|qualora|если|когда|чтобы"
    r"|whether|if|when)\b|如果|当|是否|假如|若|場合|とき|なら|かどうか|ように",
    re.IGNORECASE,
)
_CONCEDES = re.compile(
    r"\A\W*(?:(?:(?:that|this|it)(?:['’]?s| is| looks?)?|much|looks?|works?|getting|almost|nearly|not bad|fine"
    r"|ok(?:ay)?|good|better|nice|great|cool|close|thanks?|perfect|there|schon|besser|gut|fast|presque|mieux|bien"
    r"|mejor|casi|meglio|quasi|bene|melhor|quase|лучше|почти|хорошо)\W+){1,5}(?:but|however|except|though|only|aber"
    r"|nur|mais|sauf|pero|ma|tranne|mas|но|только)\b(?!\W*(?:can|could|would|will|please|also|let|now|next|first"
    r"|before|one more|i['’]d|we|what|how|why|when|where|who|is|are|do|does|did)\b)|\A\W*(?:almost|nearly|not quite"
    r"|close|better|fast|presque|casi|quasi|quase|почти)\b[^.!?\n]{0,12}[,.:;!—-]+ \w+|\A[^。！？\n]{0,12}(?:但是?"
    r"|不过|可是|でも|けど|ですが)",
    re.IGNORECASE,
)
_NEGATES_FIRST = re.compile(
    r"\A\W*(?:(?:please|pls|but|and|ok(?:ay)?|also|bitte|s['’]il te plaît|por favor"
    r"|пожалуйста)\W+){0,2}(?:don['’]?t (?!worry|bother|need|forget|you|we|think|know|have|mind|care)"
    r"|do not (?!worry|bother|need|forget|you|we)|never (?!mind)|stop \w+ing|no (?:more )?(?!changes|preference|problem"
    r"|need|worries|idea|rush|hurry|further|other|questions?|one)\w+s?[.!]?\s*\Z|avoid |(?:can|could"
    r"|would) you (?:please )?(?:stop|not|undo|revert)\b|(?:nimm|mach) (?:\w+ ){0,4}(?:raus|weg|zurück)|(?:keep"
    r"|leave|respect|follow|stick to|stay) |only (?:change|touch|edit|do|use)|just (?:use|do|the)\b"
    r"|ne (?:\w+ )?(?:pas|touche|change|fais)|n['’]\w+ pas|keine? \w+|nicht \w+|kein |non (?:usare|toccare|cambiare"
    r"|aggiungere|fare)|não (?:use|mexa|mude|adicione|faça|toque)|no (?:uses|toques|cambies|añadas|hagas|borres"
    r"|pongas|lo|la)|не (?:трогай|меняй|добавляй|удаляй|используй|надо|делай|нужно было))",
    re.IGNORECASE,
)
_WRONG_FIRST = re.compile(
    r"\A\W*(?:(?:ugh|hm+|nein|non|no|não|нет|sorry|das ist|c['’]est|está|è|eso es|isso está|это"
    r"|so)\W+){0,2}(?:wrong|incorrect|false|falsch|verkehrt|quatsch|faux|incorrecte?|mauvais\w*|mal\b|incorrecto"
    r"|sbagliato|scorretto|errado|incorreto|неверно|неправильно|ошибка)(?!\w)",
    re.IGNORECASE,
)


def _of(table: dict[str, tuple[str, ...]]) -> re.Pattern[str]:
    """One expression for a class of words in all languages that have bounds."""
    return re.compile(
        rf"(?<!\w){one_of(*(phrase for phrases in table.values() for phrase in phrases))}(?!\w)", re.IGNORECASE
    )


_ACCUSES = (_of(objection_words.BLAMES), _of(demand_words.TAKES_BACK), _of(objection_words.DISBELIEVES))
# What answers to a question of the model's say, too.
_COMPARES = (_of(objection_words.AS_BEFORE), _of(demand_words.HAD_WANTED), _of(demand_words.CONTRASTS))
_LACKS = _of(objection_words.LACKS)
_NO_BOUNDS = re.compile("|".join(_UNBOUND))
_TOO_MUCH = re.compile(rf"\A\W*{one_of(*_TOO_MUCH_OF.values())}", re.IGNORECASE)
# "get not post": little more than a thing, and the other thing that stands there.
_THIS_NOT_THAT = re.compile(
    r"\A\W*(?:[^\s.!?]+ ){1,8}not (?!found|sure|now|yet|only|just|too|at all)[^\s!?]+(?: [^\s!?]+)?\W*\Z", re.IGNORECASE
)
_NOT_A_THING = re.compile(
    r"\b(?:is|are|do|does|did|was|were|if|could|can|should|would|may|might|has|have|whether|will|why|or|and"
    r"|must) not\b",
    re.I,
)
# "What is missing?" says of nothing that it is; nor does a sentence that ends in a question of Japanese.
_ASKS_WHAT = re.compile(
    r"\W*(?:what|which|was|welche\w*|qu['’]est-ce|que(?:l\w*)?|qué|cuál\w*|cosa|che|quale|o que|qual|что|какой"
    r"|какие)(?!\w)[^?]*\?|[^。！？?]*(?:什么|哪些|哪个|吗)[^。！]*[?？]|[^。！？]*か[。?？]*\s*\Z",
    re.IGNORECASE,
)
# A text to work on: what it says is not said about the work.
_HANDS_OVER = re.compile(
    r"\A\W*(?:(?:now|then|next|please|bitte|por favor)\W+){0,2}(?:rate|translate|summari[sz]e|classify|proofread"
    r"|rewrite|paraphrase|explain|analy[sz]e|evaluate|grade|judge|score|extract|answer|übersetze|bewerte|fasse|traduis"
    r"|résume|traduce|resume|traduza|traduci|переведи|оцени|翻译|總結|总结|翻訳|要約)\w*\b[^\n]{0,120}[:：]\s*\n",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?\n;。！？]")


def objects(text: str, *, answers: bool = False) -> bool:
    """Whether a user's words negate, redo or take back what was done; judged by the first sentences.

    `answers`: the model had asked something, so a plain "no" at the start is an answer.
    """
    opening = text.lstrip()[:_OPENING]
    if goes_on(opening) or _HANDS_OVER.match(opening):
        return False
    if not answers and (_REFUSES.match(opening) or _NEGATES_FIRST.match(opening)):
        return True
    if _THIS_NOT_THAT.match(text.strip()[:_OPENING]) and not _NOT_A_THING.search(opening):
        return True
    if reminds(opening):
        return True
    plain = (_WRONG_FIRST, _TOO_MUCH, _CONCEDES)
    if any(words.match(opening) for words in plain) or _TAKES_BACK.search(opening):
        return True
    if wishes(opening):  # "Can you fix that? You removed the header."
        rest = _SENTENCE.split(opening, maxsplit=1)[1:]
        return any(words.search(more) for more in rest for words in (*_ACCUSES[:2], _COMPARES[0]))
    if finds(opening) or any(words.search(opening) for words in (_HALTS_WORK, *_ACCUSES)) or _lacks(opening):
        return True
    return not answers and not asks_whether(opening) and any(words.search(opening) for words in _COMPARES)


def _lacks(opening: str) -> bool:
    """Something is missing or does not work, in a statement without a condition and no question."""
    found = next((match for words in (_OBJECTS, _LACKS, _NO_BOUNDS) if (match := words.search(opening))), None)
    if found is None:
        return False
    start = max((end.end() for end in _SENTENCE.finditer(opening, 0, found.start())), default=0)
    asks = _ASKS_WHAT.match(opening[start:]) is not None
    return not asks and _CONDITIONS.search(opening[start : found.start()]) is None
