"""What users want in place of what was done, by language: a table that `objections` searches with.

They tell what had been wanted, want things back as they were, or contrast ("this, not that"). Words of one class stand
together, so that a language that lacks them is seen; they are matched whole. What users say of the work itself:
`objection_words`.
"""

from __future__ import annotations

HAD_WANTED: dict[str, tuple[str, ...]] = {
    "en": (
        r"i (?:said|meant|asked|told|only wanted|only asked|specifically|clearly|explicitly)"
        r"|i (?:had )?wanted(?! to (?:ask|say|know|thank|check|let))",
        r"we should (?:be|have been) \w+ing",
        r"i (?:did ?n[o'’]t|do ?n[o'’]t|never) (?:ask|want|say|mean|like|request)(?! (?:to|any .{1,30} next))\w*"
        r"|i(?:['’]d| had)? expected|we (?:agreed|decided|discussed)(?! to (?:add|use))|i (?:only|just) (?:want"
        r"|need|wanted|needed)\b|not what (?:i|we)|as i (?:said"
        r"|asked)",
        r"(?:the )?(?:task|spec|ticket|issue|docs?|documentation|readme|instructions?|requirements?|design|mock-?up"
        r"|rfc|guidelines?|prompt) (?:clearly |explicitly )?(?:says?|said|states?|stated|asks?|asked|requires?"
        r"|shows?) ",
    ),
    "de": (
        r"du solltest doch|(?:die|der|das|den) falschen? \w+|(?:das )?hatte ich (?:\w+ )?(?:gesagt|geschrieben)"
        r"|du solltest (?:\w+ )?(?:nur|nicht)"
        r"|ich (?:wollte(?! (?:fragen|wissen|sagen|danke))|meinte|hatte|habe) (?:\w+ ){0,6}?(?:gesagt|gebeten"
        r"|gemeint|gewollt|geschrieben|nicht|nur|auf|kein\w*)",
        r"ich meinte|ich wollte (?!fragen|wissen|sagen|mich)\w+|sollte doch|wie gesagt|so war das nicht",
    ),
    "fr": (
        r"je ne vois (?:\w+ )?(?:pas|plus|aucun\w*|rien)|je voulais(?! (?:savoir|dire merci|demander))|j['’]ai (?:dit"
        r"|demandé|précisé)|je (?:t['’]|vous )(?:ai"
        r"|avais) (?:dit|demandé)|j['’]avais (?:dit|demandé)|ce n['’]est pas ce que",
    ),
    "es": (
        r"(?:yo )?quería(?! (?:saber|preguntar|dar))|(?:te |le )?(?:pedí|dije)|me refería|no (?:es|era) (?:eso"
        r"|lo que)|había (?:pedido|dicho)",
    ),
    "it": (
        r"(?:io )?volevo(?! (?:sapere|chiedere|ringraziare))|(?:ti )?(?:ho|avevo) (?:chiesto|detto)|intendevo"
        r"|non (?:è|era) (?:quello|ciò) che",
    ),
    "pt": (r"(?:eu )?(?:queria(?! saber)|pedi|disse|quis dizer|tinha pedido)|não (?:é|era|foi) (?:isso|o que)",),
    "ru": (r"я (?:же )?(?:просил|имел\w* в виду|хотел|говорил|сказал|писал)\w*|это не то|не то,? что",),
}
TAKES_BACK: dict[str, tuple[str, ...]] = {
    "en": (
        r"(?:put|change|move|bring|switch|turn|set|get) (?:it|them|that|this|the \w+(?: \w+)?) back|back to (?:how"
        r"|what|the way) it was|(?:go|went|going) back to the (?:old|previous|original|last|first)|(?:as|like"
        r"|how) it (?:was|used to be)(?: before)?|restore (?:the|my|it|that|this|what)|leave .{1,40} alone",
        r"(?:remove|delete|drop|get rid of|undo|revert) (?:\w+ ){0,5}(?:you|that you|you['’]ve) (?:\w+ )?(?:added"
        r"|made|wrote|created|introduced|put|did|changed)",
        r"(?:and )?(?:do|start) (?:it )?(?:again|over)(?! (?:if|when|later|for|with|on|in)\b)",
    ),
    "de": (
        r"mach(?:e|t)? (?:\w+ ){0,3}?rückgängig|(?:stell|setz|nimm|mach)\w* (?:\w+ ){0,3}?(?:wieder her|zurück)"
        r"|wie (?:es )?(?:vorher|zuvor|davor)(?: war)?|lass (?:\w+ ){0,4}(?:so|drin|in ruhe|wie)",
    ),
    "fr": (
        r"(?:annule|reviens|remets?|rétablis|restaure)[rsz]?|comme (?:avant|c['’]était)|laisse .{1,30}(?:tel|comme"
        r"|tranquille)",
    ),
    "es": (
        r"(?:deshaz|revierte|restaura|devuelve|vuelve a (?:poner|dejar))(?:lo|la)?|como (?:estaba|antes)|déjal[oa]",
    ),
    "it": (
        r"(?:annulla|ripristina|rimetti|torna a)\w*|com['’]era(?: prima)?|come prima|lascia\w* (?:\w+ )?(?:com|così)",
    ),
    "pt": (
        r"(?:desfaz|desfaça|reverte|reverta|restaura|restaure)r?|(?:volta|deixa|deixe|volte) (?:\w+ ){0,2}como"
        r"|como (?:estava|era|antes)",
    ),
    "ru": (r"(?:верни|откати|отмени|восстанови)\w*|как было|оставь (?:как|так)",),
}
CONTRASTS: dict[str, tuple[str, ...]] = {
    "en": (
        r"(?:use|do|call|put|make|keep|take|try|write|return|show|say|have|pick|name|import) .{1,60} (?:instead of"
        r"|rather than)",
        r"(?:should|must|needs? to|has to|ought to|was supposed to|is supposed to)(?: have)? .{1,60},? (?:not"
        r"|instead of|rather than)\b|should have (?:been|used|gone|had|said)|(?:was|were|is|are) supposed to",
        r"(?:it|that|this|those|these)(?:['’]s| is| are)(?: \w+){1,5}, not (?:a |an |the )?\w+|(?:wanted|meant"
        r"|asked for|need) .{1,60}, not \w+|instead(?=[.!,]|\s*\Z)",
        r"\w+ing (?:instead of|rather than) \w+",
        r"(?:the )?other way (?:a?round)|swap (?:them|these|those|the two)|(?:it|they)(?:['’]s|['’]re| is"
        r"| are) (?:\w+ )?(?:reversed|backwards|inverted|upside down|swapped)",
        r"actually,? (?:it|that|this|the|we|there|i|you|no|don|use|make|let)\b",
    ),
    "de": (
        r"\w+ \w+, nicht (?!wahr|mehr|nur|schlimm|nötig)\w+|umgekehrt|andersrum",
        r"(?:nicht|kein\w*) .{1,60} sondern|(?:statt|anstatt|stattdessen|anstelle)|lieber (?:so|das|die|den|mit"
        r"|ohne)|(?:es|das|die|der)(?: \w+)? müssten?\b|(?:es|das|die|der) (?:muss|sollte|soll) .{1,40} (?:sein"
        r"|heißen|stehen|lauten)(?! (?:können"
        r"|lassen))|nimm (?:bitte )?(?:die|das|den) ander\w+",
    ),
    "fr": (
        r"(?:doit|doivent|devrait|devait|devraient) (?:être|avoir|utiliser|aller|rester)|\w+ \w+, pas (?!mal|besoin"
        r"|la peine)\w+|c['’]est l['’]inverse|le contraire",
        r"au lieu (?:de|d['’])|plutôt (?:que|qu['’]|le|la|avec)|(?:il faut|il fallait|ça devrait|ce devrait"
        r"|il faudrait) (?:utiliser|être|mettre|que)",
    ),
    "es": (
        r"\w+ \w+, no (?:en|el|los|las|al|un|una|con|por|inglés|español)|al revés|lo contrario",
        r"en (?:lugar|vez) de|(?:debería|tendría que|tiene que|debe) (?:ser|estar|decir|usar|haber)|sino (?:que|el"
        r"|la|con)|más bien",
    ),
    "it": (
        r"\w+ \w+, non (?!c['’]è|ti|è|serve)\w+|il contrario|invece (?:di|che)|anziché|piuttosto che|(?:dovrebbe"
        r"|deve|doveva) (?:essere|dire|usare)|bensì",
    ),
    "pt": (
        r"\w+ \w+, não (?!é|precisa|tem)\w+|o contrário|em vez de|ao invés de|(?:deveria|tem que|tinha que"
        r"|deve) (?:ser|estar|usar|dizer)|e sim ",
    ),
    "ru": (r"вместо|наоборот|а не |(?:должн[оаы]?|должен|нужно|надо) (?:было|быть)|лучше (?:бы|так)",),
}
