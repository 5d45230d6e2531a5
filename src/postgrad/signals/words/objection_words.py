"""The words of objections, by what they do and by language: a table that `objections` searches with.

What a user says against finished work does one of a few things in any language: it blames ("you deleted"), says that
things are as before ("still", "the same error"), or what is missing now, or asks in disbelief. What is wanted instead
is in `demand_words`. Words of one class stand together, so that a language that lacks them is seen. Latin and Cyrillic
words are matched whole; Chinese and Japanese have no bounds to ask for.
"""

from __future__ import annotations

BLAMES: dict[str, tuple[str, ...]] = {
    "en": (
        r"you(?:['’]ve| have) (?:changed|modified|altered|touched|broken)|you(?:['’]ve| have| just|r)? (?:forgot\w*"
        r"|missed|broke\w*|removed|deleted|ignored|dropped|lost|skipped"
        r"|overw\w+|hard-?coded|hallucinated|invented|made (?:that|it|this) up|confus\w+|mixed|messed|screwed"
        r"|duplicated|misread|misunder\w+|misspelled|assumed|guessed|overcomplicat\w+|over-?engineer\w+|reverted"
        r"|renamed|replaced|rewrote|commented|hid|truncated|repeated|contradict\w+|reintroduced|undid|swapped"
        r"|reversed|copied|left (?!off|it))(?! (?:it|this|that)?,? (?:good|great|nicely))",
        r"you \w+ed [^.?!\n]{1,60}, but (?!now|can|could|please|also|what|how)|(?:shows?|says|reads|is|are|was"
        r"|were) [^.?!\n]{1,40}, not (?!only|just|sure)\S",
        r"you(?:['’]re| are|r| were) (?:\w+ ){0,3}?(?:skipp|confus|mix|overcomplicat|overengineer|ignor|miss|forget"
        r"|assum|guess|repeat|break|us|call|contradict|hallucinat|overthink|go)ing",
        r"you(?:['’]re| are) (?:still |completely |totally |just )?(?:wrong|mistaken|not (?:listening|following"
        r"|reading|using))",
        r"you (?:did|have|were|are|do|had)(?: not|n['’]?t)(?! (?:need|have to|mention|worry|been|yet))|you (?:only"
        r"|just) (?!need|have to|want)\w+(?:ed|t)\b",
        r"you (?:used|put|added|changed|created|called|edited|set|made|named|placed|moved|counted|picked|took"
        r"|pushed|committed|installed) (?:\w+ ){0,4}(?:wrong|without|twice|instead|although|even though|again|but"
        r"|when i|which i)",
        r"(?:the )?(?:\w+ ){0,2}you (?:added|wrote|made|created|put|introduced|changed) (?:is|are|was|were|does|do"
        r"|did|has|have|fails?|breaks?)",
        r"(?:it|that|this|your (?:change|code|fix|edit|script|version)) (?:just |now )?(?:deleted|removed|overwrote"
        r"|broke|wiped|killed|ruined|messed|dropped|lost|duplicated|doubled|hid)|(?<=\A)you (?:\w+ly )?(?!said"
        r"|mentioned|suggested|proposed|recommended|asked|told|offered|listed|described|found|explained|noted|need"
        r"|indeed)(?:\w+ed|put|made|did|took|wrote|gave|got|left (?!off)\w+|set|went|ran|used|built|kept|sent|cut"
        r"|translated)|you said (?:\w+ ){1,12}but",
        r"you(?:['’]re| are) (?!doing|going to|getting (?:there|close)|asking|looking for|thinking|trying"
        r"|working)\w+ing (?:the"
        r"|an?|my|our|it|this|that)|did you (?:even|actually|really|forget|miss|check|test)\b|have you (?:even"
        r"|actually)"
        r"|who (?:told|asked) you",
    ),
    "de": (
        r"kann (?:so |doch )?nicht (?:stimmen|sein|richtig sein)|(?:du hast|sie haben) [^.?!\n]{1,60}, aber|(?:das"
        r"|es) (?:macht|hat) .{0,40}kaputt|das ist (?:doch |ja |noch )?(?:nicht der|nicht die|nicht das"
        r"|die alte|der alte|das alte|ein ander\w+|der falsche|die falsche)",
        r"(?:du|ihr) (?:hast|habt|bist) .{0,60}?(?:falsch\w*|vergessen|gelöscht|entfernt|übersehen|überschrieben"
        r"|ignoriert|kaputt\w*|vertauscht|verwechselt|doppelt|umbenannt|weggelassen|missverstanden|nicht)",
        r"(?:hast|habt) (?:du|ihr) .{0,40}(?:überhaupt|wirklich)|das war nicht (?:gefragt|gewünscht|der auftrag"
        r"|gemeint)",
    ),
    "fr": (
        r"(?:tu as|vous avez) [^.?!\n]{1,60}, mais|n['’]est pas possible|(?:tu|vous) (?:l['’])?(?:as|avez|es"
        r"|êtes) .{0,40}?(?:oublié|supprimé|effacé|cassé|enlevé|ignoré"
        r"|mauvais\w*|tromp\w+|écrasé|confondu|mal \w+|changé|modifié|inventé)",
        r"(?:tu|vous) n['’](?:en |y )?(?:as|avez)|ça (?:casse|a cassé|supprime|a supprimé)",
    ),
    "es": (
        r"no (?:has|ha|habéis|han) (?:\w+ado|\w+ido|visto|hecho|leído|dicho|puesto)|(?:has|ha) \w+(?:ado"
        r"|ido) [^.?!\n]{1,60}, pero|no puede ser|(?:esto|eso) (?:rompe|rompió|borra|borró)",
        r"(?:(?:te|se|lo|la) )?(?:has|ha|habéis|han) .{0,40}?(?:olvidado|borrado|eliminado|roto|quitado|ignorado"
        r"|equivocad\w+|cambiado|confundido|inventado|duplicado)",
        r"(?:olvidaste|borraste|eliminaste|rompiste|quitaste|ignoraste|cambiaste|confundiste|inventaste"
        r"|te equivocaste)",
    ),
    "it": (
        r"(?:questo|ciò) (?:rompe|ha rotto|cancella)",
        r"(?:hai|ti sei|avete) .{0,40}?(?:dimenticat\w+|cancellat\w+|rimoss\w+|rott\w+|tolt\w+|ignorat\w+"
        r"|sbagliat\w+|cambiat\w+|confus\w+|inventat\w+|duplicat\w+)",
    ),
    "pt": (
        r"(?:você|vc) \w+(?:ou|eu|iu) [^.?!\n]{1,60}, mas|acho que (?:você|vc) \w+(?:ou|eu|iu)|não pode ser"
        r"|isso (?:quebra|quebrou|apaga|apagou)",
        r"(?:você|tu|vc) (?:\w+ )?(?:esqueceu|apagou|removeu|quebrou|tirou|ignorou|errou|mudou|trocou|confundiu"
        r"|inventou|duplicou|deletou)",
        r"(?:esqueceu|apagou|quebrou|errou)",
    ),
    "ru": (
        r"(?:ты|вы) (?:\w+ )?(?:забыл|удалил|сломал|убрал|изменил|проигнорировал|перепутал|ошиб|поменял"
        r"|переименовал|не)\w*",
        r"(?:зачем|почему) (?:ты|вы)|не (?:тот|ту|то|те|там|туда|так)",
    ),
}
AS_BEFORE: dict[str, tuple[str, ...]] = {
    "en": (
        r"(?:still|again|exact|exactly|the|get|got|gives?|getting)? ?(?:the )?same (?:\w+ )?(?:errors?|issues?"
        r"|problems?|results?|thing|behaviou?r|failures?|bug|exception)(?! (?:for|in|with|as|on"
        r"|handling|way))",
        r"still (?!need|want|have to|would|works?\b|passes|good|fine|think|like|one more|open question|to do"
        r"|possible|ok\b|use\b)\w+",
        r"(?:it|this|that|he|she|they) (?:keeps?|kept) \w+ing|no (?:changes?|difference|effect|luck|dice|joy)"
        r"|nothing (?:has |was |is )?(?:changed|happens?|happened|works?|improved|shows?)|(?:same|again) here",
        r"(?:error|bug|problem|issue|warning|failure|crash)s? (?:is|are|was)? ?(?:back|again|remains?|persists?"
        r"|still)",
    ),
    "de": (
        r"(?:immer noch|noch immer|weiterhin|nach wie vor|schon wieder|wieder) (?:\w+ )?(?:nicht|kein\w*|der|die"
        r"|das|den|falsch|kaputt|fehler\w*|gleiche\w*|derselbe|dieselbe|leer)|(?:der|den|die|das) ?(?:gleiche"
        r"|selbe)\w* (?:fehler|problem)\w*|derselbe fehler",
        r"(?:es|da) (?:hat sich|passiert|ändert sich) (?:\w+ )?nichts|keine änderung",
    ),
    "fr": (
        r"toujours (?:pas|l['’]anci\w+|la même|le même|une? |des |en |aussi)|encore (?:la même|le même"
        r"|une? (?:erreur|problème))|la même erreur|le même problème",
        r"rien n['’](?:a changé|est)|rien ne (?:se passe|change|marche)",
    ),
    "es": (
        r"sigue\w* (?:sin|\w+ndo|igual|ahí|apareciendo|el|la)|(?:el|la|los) mism[oa]s? (?:error|problema|fallo)"
        r"|(?:todavía|aún) (?:no|falla|da|hay|sale)",
        r"ya no \w+|no \w+ (?:a )?(?:ning\w+|nada)|no (?:ha )?cambi(?:a|ó|ado) nada|no (?:pasa|hace) nada",
    ),
    "it": (
        r"(?:ancora|sempre) (?:non|lo stesso|la stessa|\w*errore)|lo stesso (?:errore|problema)|non \w+ più"
        r"|non (?:è )?cambia(?:to)? (?:niente|nulla)|non succede (?:niente|nulla)",
    ),
    "pt": (
        r"(?:ainda|continua) (?:não|dá|dando|com|o|a|sem|apare\w+|falh\w+|quebrad\w+)|não \w+ mais|o mesmo (?:erro"
        r"|problema)|não mudou nada|nada mudou",
    ),
    "ru": (
        r"(?:всё|все) (?:ещё|равно)|все еще|по-прежнему|опять|снова (?:не|та|то|ошиб\w+)|та же (?:самая )?ошибка"
        r"|то же самое(?! (?:для|с|и)\b)|ничего не (?:изменилось|происходит|поменялось)",
    ),
}
LACKS: dict[str, tuple[str, ...]] = {
    "de": (
        r"(?:da|es|in \w+) (?:ist|sind|gibt es) (?:\w+ )?(?:ein|noch|zwei) (?:\w+ ){0,2}\w*fehler",
        r"(?:fehlt|fehlen)(?! nur)|(?:ist|sind) (?:\w+ ){0,3}(?:weg|kaputt|leer|falsch|verschwunden|abgeschnitten"
        r"|doppelt|verrutscht|nicht (?!schlimm|dringend|nötig|eilig))",
        r"(?:funktioniert|geht|läuft|laufen|erscheint|kompiliert|lädt|stimmt|stimmen|passt|klappt|öffnet|startet|baut"
        r"|greift|zeigt|sieht|tut|schlägt|schlagen) (?:\w+ ){0,3}?(?:nicht|fehl|nichts)|nicht mehr|stürzt ab"
        r"|wirft (?:\w+ ){0,3}fehler|gibt (?:es )?(?:\w+ )?fehler",
        r"(?:das|es|so) (?:sieht|ist) (?:\w+ )?(?:nicht (?!schlimm|dringend|nötig|eilig)|falsch|komisch|zu )",
    ),
    "fr": (
        r"il y a (?:une?|des|encore) (?:\w+ )?(?:fautes?|erreurs?|problèmes?|bugs?)",
        r"(?:il )?manque(?:nt)?|a disparu|ont disparu|(?:est|sont) (?:\w+ )?(?:vide|cassée?s?|fau(?:x|sse)"
        r"|coupée?s?|absente?s?|incorrecte?s?|mal )",
        r"n(?:e |['’])(?:[\w'’]+ ){1,3}(?:pas|plus|rien)|c['’]est pas|plante|échouent?|(?:donne|affiche|lève"
        r"|renvoie) (?:\w+ ){0,2}(?:erreur|exception)",
    ),
    "es": (
        r"hay (?:un|una|varios|algún|dos) (?:\w+ )?(?:error|errores|fallos?|problemas?|erratas?)",
        r"faltan?|desapareció|ha desaparecido|(?:está|están|sale|salen|queda) (?:\w+ )?(?:vací[oa]s?|rot[oa]s?|mal"
        r"|cortad[oa]s?|en blanco|duplicad[oa]s?)",
        r"(?<!si )(?<!cuando )(?:ya )?no (?:compila|aparece|carga|funciona|anda|arranca|muestra|guarda|abre"
        r"|se (?:ve|muestra|guarda|abre|actualiza)|es (?!necesario|urgente|nada|problema)|está|coincide)",
        r"fallan?|da (?:un )?error|lanza (?:un )?(?:error|excepción)|se (?:rompe|rompió|cae|cuelga)",
    ),
    "it": (
        r"(?:c['’]è|ci sono) (?:un|ancora|degli|due) (?:\w+ )?(?:error[ei]|problem[ai]|refus[oi])",
        r"mancan?[oa]?|è sparit\w+|(?:è|sono|risulta) (?:\w+ )?(?:vuot\w+|rott\w+|sbagliat\w+|tagliat\w+"
        r"|duplicat\w+)",
        r"non (?:compila|compare|appare|carica|funziona|va\b|parte|mostra|salva|si (?:vede|apre|aggiorna)"
        r"|è (?!necessario|urgente|un problema|male)|era)|dà errore|fallisc\w+|si blocca",
    ),
    "pt": (
        r"(?:há|tem) (?:um|uma|vários|dois) (?:\w+ )?(?:erros?|problemas?|falhas?)",
        r"falta(?:m|ndo|ram)?|faltou|sumi(?:u|ram)|desapareceu|(?:está|estão|ficou|veio) (?:\w+ )?(?:vazi[oa]s?"
        r"|quebrad[oa]s?|errad[oa]s?|cortad[oa]s?|em branco|duplicad[oa]s?)",
        r"não (?:compila|aparece|carrega|funciona|abre|salva|mostra|roda|é (?!necessário|urgente|problema)|está|era"
        r"|foi)\w*|dá erro|deu erro|falh(?:a|ou|am)|trava",
    ),
    "ru": (
        r"не \w+(?:ется|ится|ются|ятся)(?!\w)|не (?:работа|отобража|компилир|показыва|запуска|открыва|сохраня|загружа"
        r"|обновля|видно|появля|собира"
        r"|проход|совпада|хвата|соответств)\w*",
        r"пропал\w*|исчез\w*|(?:пуст(?:о|ой|ая|ое)|сломан\w*|обрезан\w*)|пада(?:ет|ют)|неверн\w+|неправильн\w+"
        r"|выда[её]т ошибку|с ошибкой|больше не",
    ),
}
DISBELIEVES: dict[str, tuple[str, ...]] = {
    "en": (
        r"why (?:did|have|had|are|were|would|do|don['’]?t) you (?!choose|chosen|pick|prefer|recommend|suggest|think"
        r"|decide|go with)|why (?:is|are|was) (?:there|it|this|that|the \w+) (?:\w+ ){0,4}(?:still|now|gone|missing"
        r"|empty|so|not|n['’]t|new|different|again|broken|wrong|twice|here)|why (?:is|are) there|why so \w+"
        r"|why (?:did|have|has|were|was) (?:the|my|all|our|these|those|it|that)|why (?:is|are|does|do|was"
        r"|were) [^.?!\n]{1,80}\?\W+(?:it|that|this|they|these|we|please|use|make|the \w+) \w+|why (?:is"
        r"|are) [^.?!\n]{1,40} hard-?\s?coded|why not (?:just|simply)",
        r"(?:is|are|was|were|should|would|does|do|did|has|have)n['’]?t (?:this|that|it|the|these|those|you|he"
        r"|they)(?! (?:be )?(?:nice|great|cool))",
        r"are you (?:sure|certain|serious|kidding)|where (?:did|is|are|has|have) (?:the|my|all"
        r"|our) (?!.{1,40} (?:stored|defined|located|used|set"
        r"|saved|kept|configured|handled|documented)\b).{1,40}(?: go"
        r"| gone|\?)|what happened to|what(?:['’]s| is) (?:this|that|with)|(?:really|seriously|wtf|wth|huh)\?",
        r"what (?:about|if) .{1,80}(?:throws?|crash\w*|fails?|breaks?|error)|how (?:do|can|could) you know",
    ),
    "de": (
        r"(?:warum|wieso|weshalb) (?:hast|habt|ist|sind|steht|fehlt|wird|machst|nicht|denn)|bist du (?:dir )?sicher"
        r"|(?:müsste|sollte|ist) (?:das|es|die|der) nicht|wo ist (?:der|die|das|mein)",
    ),
    "fr": (
        r"pourquoi (?:as-tu|tu as|avez-vous|vous avez|est-ce que tu|tu|c['’]est)|(?:es-tu|tu es|t['’]es) sûr"
        r"|où (?:est|sont) (?:passée?s? )?(?:le|la|les|mon)",
    ),
    "es": (r"por qué (?:has|\w+ste|no|está|hay|se)|¿?estás segur[oa]|dónde (?:está|quedó)|no debería",),
    "it": (r"perché (?:hai|non|è|c['’]è|ci sono)|(?:ne )?sei sicur[oa]|dov['’]è|non dovrebbe",),
    "pt": (r"por ?qu?e (?:você|vc|não|está|tem|mudou|apagou)|tem certeza|cadê|não deveria",),
    "ru": (
        r"почему (?:\w+ ){0,3}(?:не|удал\w+|пропал\w+|измен\w+|пуст\w+)|(?:почему|зачем) (?:ты|вы|не|тут|здесь"
        r"|удал\w+|измен\w+|убра\w+)|ты уверен\w*|вы уверены|куда (?:делся|делась|пропал\w*)|разве",
    ),
}
