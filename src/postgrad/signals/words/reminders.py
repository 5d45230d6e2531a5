"""How users remind of what they asked, or of what holds here: "I already told you", "we use tabs here", "in English".

A reminder names no fault, and says that there is one: what was asked was not done. Each pattern is a whole opening of a
text. Not covered: rules that are told for the next step ("from now on, ...").
"""

from __future__ import annotations

import re

from postgrad.signals.words.phrases import one_of

_ONCE_MORE = (
    r"(?:again|once (?:more|again)|for the (?:\w+|\d+\w\w) time|like i said|as (?:i )?(?:said|mentioned"
    r"|told)(?: before)?"
    r"|noch ?mal|zum (?:\w+|\d+\.?) mal|wie gesagt|encore une fois|comme je l['’]ai dit|otra vez|como (?:te )?dije"
    r"|de novo|como eu disse|ancora una volta|ещ[её] раз|я же говорил\w*|再说一遍|再說一次|もう一度言い)\s*[,:;—–-]",
    r"i (?:have |had |'ve )?already (?:told|said|asked|mentioned|explained|specified|showed|gave)",
    r"(?:how (?:many|often)|do i (?:have|need) to) .{0,20}(?:times|tell you|repeat)",
    r"(?:ich hab\w* (?:es |dir )?(?:doch |schon |bereits )+(?:gesagt|geschrieben)|je (?:t['’]"
    r"|vous )?(?:l['’])?ai déjà dit"
    r"|ya (?:te )?(?:lo )?(?:dije|he dicho)|já (?:te )?(?:disse|falei)|te l['’]ho già detto"
    r"|我(?:已经|已經)?说过|前にも言)",
)
_HERE = (
    r"we (?:use|prefer|write|have|keep|follow|never|always|do(?: not|n['’]?t)) [^.?!\n]{1,60} (?:here"
    r"|in this (?:repo\w*"
    r"|project|code ?base|team|house))\b",
    r"(?:wir (?:verwenden|benutzen|nehmen|schreiben) .{1,40} hier|hier (?:verwenden|benutzen|nehmen) wir|ici on|aquí"
    r" (?:usamos|se usa)|aqui (?:usamos|a gente usa)|qui usiamo|у нас (?:тут|здесь|принято)|我们这里|我們這裡)",
)
_LANGUAGES = one_of(
    r"english|german|french|spanish|italian|portuguese|russian|chinese|japanese|korean|dutch|polish|turkish",
    r"englisch|deutsch|französisch|spanisch|anglais|allemand|français|espagnol|inglés|español|alemán|francés|inglês",
    r"português|italiano|inglese|tedesco|английском|русском|немецком",
)
_IN_MY_LANGUAGE = (
    rf"(?:(?:answer|reply|respond|speak|talk|antworte\w*|réponds?|répondez|responde?\w*|rispond\w*"
    rf"|отвечай\w*) )?(?:me |mir )?"
    rf"(?:in|auf|en|em|на) {_LANGUAGES}(?: (?:please|pls|bitte|por favor|antworten|s['’]il (?:te|vous) pla[iî]t"
    rf"|only))*\W*\Z",
    r"(?:请|請)?用?(?:中文|英文|繁體中文|简体中文)(?:回答|回复|回覆|写|寫)?(?:谢谢|謝謝)?\W*\Z|по-русски\W*\Z|日本語で(?:お願いします|答えて\w*)?\W*\Z",
)
_TO_THE_POINT = (
    r"(?:that|this)(?:['’]s| is) (?:a lot of|(?:very |quite |pretty |really )?(?:odd|weird|strange|suspicious"
    r"|annoying))\b",
    r"(?:just |please )*answer (?:the|my) question|stick to (?:the|my)|read (?:the|my) (?:\w+ )?(?:again|properly"
    r"|carefully"
    r"|first|request|prompt|instructions?|question)",
    r"(?:simpler|shorter|smaller|bigger|larger|cleaner|less verbose|more concise|kürzer|einfacher|plus (?:court|simple)"
    r"|más (?:corto|simple|sencillo)|mais (?:curto|simples)|più (?:breve|semplice)|короче|проще|短一点|简单点"
    r"|短くして)(?:,? (?:please|pls|bitte|por favor))?\W*\Z",
)
_LEADS = r"(?:(?:and|but|please|pls|no|hm+|ok(?:ay)?|hey|sorry|bitte|por favor)\W+){0,3}"
_REMINDS = re.compile(rf"\A\W*{_LEADS}{one_of(*_ONCE_MORE, *_HERE, *_IN_MY_LANGUAGE, *_TO_THE_POINT)}", re.IGNORECASE)


def reminds(opening: str) -> bool:
    """Whether a user's first words remind of something that had been asked or goes without saying."""
    return _REMINDS.match(opening) is not None
