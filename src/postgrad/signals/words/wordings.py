"""The words of shells, compilers and tools for what can go wrong, in the languages that they speak.

A table of meaning -> pattern. Programs say the same few things everywhere (GNU and Windows translate them), so
knowing the handful of phrases per language finds failures in logs of any locale. Not covered: languages outside the
table; free text. Codes (`error TS2304`, `CS1002`) need no language.
"""

from __future__ import annotations

import re

from postgrad.signals.words.phrases import Phrases

COMMAND_NOT_FOUND = Phrases(
    r"command not found",
    r"^\S+: (?:line )?\d+: .{1,80}: not found$",
    r"is not recognized as (?:an internal|(?:a|the) name of a)",
    r"(?:Kommando|Befehl) nicht gefunden",
    r"commande (?:introuvable|inconnue)",
    r"n'est pas reconnu",
    r"no se encontró la orden",
    r"(?:orden|comando) no encontrad[ao]",
    r"no se reconoce como",
    r"comando não encontrado",
    r"não é reconhecido como",
    r"comando non trovato",
    r"non è riconosciuto come",
    r"команда не найдена",
    r"не распознано как",
    r"не является внутренней или внешней",
    r"未找到命令|找不到命令|找不到指令|無法辨識 ?'|无法将.{1,80}识别为|不是内部或外部命令|不是內部或外部命令",
    r"コマンドが見つかりません|として認識され(?:ません|ていません)",
    r"명령(?:어)?를 찾을 수 없|명령을 찾을 수 없|내부 또는 외부 명령",
    r"nie znaleziono polecenia",
    r"opdracht niet gevonden",
    r"komut bulunamadı",
    r"wurde nicht als Name eines Cmdlet|entweder falsch geschrieben oder",
    flags=re.IGNORECASE | re.MULTILINE,
)

NO_SUCH_FILE = Phrases(
    r"no such (?:file|directory|path)",
    r"does(?: not|n't) exist",
    r"cannot (?:access|stat|find (?:the )?(?:path|file))",
    r"(?:file|path|directory) (?:was )?not found",
    r"could not find (?:the )?(?:file|path)",
    r"unable to find (?:the )?(?:file|path)",
    r"\bENOENT\b|non-?existent (?:file|directory|path)|(?:file|path|directory) .{1,300} (?:was )?not found",
    r"Datei oder Verzeichnis nicht gefunden|kann (?:der|die) (?:Pfad|Datei).{0,120}nicht (?:finden|gefunden)"
    r"|Pfad.{0,200}(?:nicht gefunden|nicht vorhanden)|existiert nicht",
    r"aucun fichier ou (?:dossier|répertoire)|impossible de trouver (?:le|la) (?:chemin|fichier)|n'existe pas",
    r"no existe el (?:archivo|fichero|directorio)|no se (?:encuentra|puede encontrar|encontró) (?:la|el) (?:ruta"
    r"|archivo)",
    r"(?:arquivo|ficheiro) ou (?:diretório|directoria|diretoria) inexistente|não é possível localizar o caminho"
    r"|não existe",
    r"file o directory non esistente|impossibile trovare il (?:percorso|file)|non esiste",
    r"нет такого файла|не удается найти (?:путь|указанный файл)|не существует",
    r"没有那个文件或目录|沒有此一檔案或目錄|找不到路径|找不到路徑|找不到檔案|找不到文件|文件不存在|檔案不存在"
    r"|系统找不到指定的",
    r"そのようなファイルやディレクトリは|パス.{0,200}(?:が)?見つかりません|ファイルが見つかりません|存在しません",
    r"그런 파일이나 디렉터리가 없|경로.{0,100}찾을 수 없|파일을 찾을 수 없|존재하지 않",
    r"nie ma takiego pliku|bestand of map bestaat niet|böyle bir dosya ya da dizin yok",
)

NOT_FOUND = Phrases(
    r"\bnot[ _]found\b|\bno (?:such )?\w+ (?:was |were )?found\b"
    r"|\bno (?:\w+ ){1,3}(?:with|for|by|named|matching)\b|nicht gefunden|introuvable|no encontrad|não encontrad"
    r"|non trovat|не найден|未找到|找不到|見つかりません|찾을 수 없",
)

NO_RULE = Phrases(
    r"no rule to make target|Keine Regel|aucune règle pour fabriquer|pas de règle pour fabriquer",
    r"no hay ninguna regla para construir|nessuna regola per generare|не найдено правила|нет правила для сборки",
    r"没有规则可制作目标|沒有規則可製作目標|を make するルールがありません|sem regra para processar",
)

PERMISSION_DENIED = Phrases(
    r"permission denied|access (?:is |was )?denied|operation not permitted|\bEACCES\b|\bEPERM\b",
    r"keine berechtigung|zugriff verweigert|permission non accordée|accès refusé|permiso denegado|acceso denegado",
    r"permissão negada|acesso negado|permesso negato|accesso negato|отказано в доступе",
    r"权限不够|權限不足|拒绝访问|存取被拒|許可がありません|アクセスが拒否|허가 거부|액세스가 거부",
)

ERROR_WORD = (
    r"(?i:error|fatal(?: error)?|fehler|schwerwiegend|erreur|errore|erro|error al \w+|ошибка|фатальная ошибка"
    r"|错误|錯誤|致命错误|エラー|오류|fout|błąd|hata)"
)
"""The word that opens a complaint in each language; a fragment for patterns."""

FAILED_WORD = (
    r"(?i:failed|failing|failures?|fehlgeschlagen(?:e[nrs]?)?|gescheitert|échoué(?:e?s)?|échecs?|en échec|fall(?:ó"
    r"|aron|idos?|os?)"
    r"|falh(?:ou|aram|as?)|fallit[oiae]|неудачно|не пройден[оы]?|провален[оы]?|сбо[йяев]|失败|失敗|실패)"
)
"""The word with which test runners count what went wrong; a fragment for patterns."""

NOTHING_TO_DO = Phrases(
    r"nothing to commit|nothing added to commit|already exists|no such process"
    r"|(?:cannot create directory|failed to create (?:symbolic|hard) link) .{1,300}: File exists"
    r"|mkdir: .{1,300}: File exists"
    r"|already up[- ]to[- ]date|no changes added to commit|no stash entries found|no local changes to save"
    r"|no process found|needed a single revision|\balready_(?!in_use)\w+",
    r"nichts zu committen|existiert bereits|bereits aktuell|rien à valider|existe déjà|déjà à jour",
    r"nada para (?:hacer commit|enviar|confirmar)|ya existe|já existe|esiste già|нечего коммитить|уже существует",
    r"无文件要提交|無檔案要提交|没有要提交|已存在|已经存在|已經存在"
    r"|既に存在|すでに存在|コミットするものがありません|이미 존재",
)

NETWORK_DOWN = Phrases(
    r"could not resolve (?:host|proxy)|network is unreachable|no route to host|name or service not known",
    r"connect to host \S+ port \d+: |(?:temporary failure in|failure in) name resolution|getaddrinfo (?:failed"
    r"|enotfound|eai_again)|\bENOTFOUND\b"
    r"|\bEAI_AGAIN\b",
    r"\b(?:ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b|connection (?:timed out|reset by peer|aborted)",
    r"failed to (?:fetch|establish a new connection)|unable to (?:connect to|access) (?:the )?(?:'?https?://|remote"
    r"|server)",
    r"network-related or instance-specific error"
    r"|remote name could not be resolved|unable to verify the (?:first|leaf) certificate|GOPROXY=off"
    r"|lost connection to|server has gone away|connection (?:was )?(?:lost|closed|dropped)\b|upstream connect error"
    r"|socket hang up|connection unexpectedly closed|(?:server|remote)_?disconnected|error (?:when "
    r"|while )?(?:performing|making|sending) (?:the |a )?request",
    r"\b(?:api|service|server|cluster|endpoint|backend) (?:is )?(?:not|currently not) (?:available|reachable"
    r"|ready)\b",
    r"\A\W*(?:error\W+)?not connected\W*\Z|\b(?:browser|profile|device|simulator) is already in use"
    r"|tls handshake|ssl(?:error| certificate problem|_error)|certificate verify failed|proxy ?error"
    r"|max retries exceeded|certificate (?:has expired|is not (?:yet )?valid)|self[- ]signed certificate",
    r"unable to locate package|some index files failed to download|unable to fetch some archives",
    r"is the server running (?:locally|on)|(?:could not|can(?:not|'t)) connect to (?:server|host|the|\w+ server"
    r"|(?:local|remote) \w+ server|\w+ at |[\w.-]+\.[a-z]{2,}\b)|cannot connect to the docker daemon"
    r"|\bdial (?:tcp|udp|unix)\b|\bi/o timeout\b|: no such host\b|net::ERR_(?!FILE|ABORTED|BLOCKED|INVALID)\w+"
    r"|is the docker daemon running|connection to the server .{1,80} was refused|actively refused",
    r"Name oder Dienst nicht bekannt|Netzwerk ist nicht erreichbar|Nom ou service inconnu"
    r"|Le réseau n'est pas accessible",
    r"Nombre o servicio desconocido|La red es inaccesible|Имя или служба не известны|Сеть недоступна",
    r"未知的名称或服务|網路無法|网络不可达|无法连接|無法連接|ネットワークに到達できません|名前またはサービスが不明",
)

BUSY_OR_LIMITED = Phrases(
    r"(?:status(?: code)?|http(?:/\d(?:\.\d)?)?|error|code|returned error)\W{0,3}(?:429|5\d\d)\b",
    r"\b(?:429 too many requests|50[0234] (?:internal|bad gateway|service|gateway))",
    r"overloaded\W{1,3}529\b|\b529\b.{0,20}overloaded|too[ _]?many[ _]?requests|overloaded_error"
    r"|rate[ _-]?limit(?:ed|ing)?\b.{0,40}(?:exceed|reach|hit|error|retry)"
    r"|quota (?:exceeded|exhausted)",
    r"\b(?:hit|reached|exceeded) your (?:\w+ ){0,2}limit\b|due to an api error"
    r"|rate_limit_(?:error|exceeded)|\brate_?limited\b|resource_exhausted|service[ _]unavailable|\bconflict_error\b"
    r"|server (?:is )?overloaded"
    r"|encountered an (?:unexpected|internal) (?:condition|error)"
    r"|insufficient_quota",
    r"请求过于频繁|請求過於頻繁|速率限制|リクエストが多すぎます",
)

TIMED_OUT = Phrases(
    r"(?:command|execution|tool|process|request|operation|script|cell|call|it) (?:has )?timed[ -]?out"
    r"|timed out after \d",
    r"execution timed out|timeout (?:exceeded|expired|reached|of \d+)|exceeded the (?:time limit|timeout)"
    r"|no new output after",
    r"timed out (?:and|while|waiting)|exceed(?:ed|ing) (?:the )?(?:\w+ ){0,2}time ?(?:out|limit)|\bread timed out"
    r"|(?:Read|Connect|Pool)Timeout",
    r"deadline exceeded|context deadline exceeded|TimeoutExpired|Zeitüberschreitung|délai d'attente dépassé",
    r"tiempo de espera agotado|время ожидания истекло|超时|逾時|タイムアウト|시간 초과",
)

OUT_OF_SERVICE = Phrases(
    r"\b(?:under|down for|scheduled) maintenance|\Wmaintenance\W|temporarily (?:unavailable|offline|disabled|out of)"
    r"|(?:session|token|login|licen[cs]e) (?:has |is |was )?expired|\btimed? ?-?out\b|did not respond in time",
    r"Wartung(?:sarbeiten)?\b|vorübergehend nicht|nicht rechtzeitig|Zeitlimit"
    r"|(?:Token|Sitzung|Anmeldung|Lizenz) (?:ist |wurde )?abgelaufen",
    r"en maintenance|temporairement (?:indisponible|hors)|délai (?:d'attente )?dépassé|(?:session|jeton) expirée?",
    r"en mantenimiento|temporalmente (?:no disponible|fuera)|no está disponible temporalmente"
    r"|tiempo de espera|(?:sesión|token) (?:ha )?(?:expirad[ao]|caducad[ao])",
    r"em manutenção|temporariamente (?:indisponível|fora)|tempo (?:limite )?(?:de espera )?(?:esgotado|excedido)"
    r"|(?:sessão|token) expirad[ao]",
    r"in manutenzione|temporaneamente non disponibile|(?:sessione|token) scadut[ao]",
    r"на обслуживании|временно недоступ|(?:сессия|токен) (?:истекла|истёк|истек)|время ожидания",
    r"维护中|維護中|暂时不可用|暫時無法|(?:会话|令牌|登录|會話|登入)(?:已)?(?:过期|失效|過期)",
    r"メンテナンス|一時的に利用できません|(?:セッション|トークン).{0,6}(?:期限切れ|失効)",
    r"점검 중|일시적으로 사용할 수 없|(?:세션|토큰).{0,6}만료",
)
"""What services say of themselves when they cannot answer now."""

NOT_ALLOWED = Phrases(
    r"\bforbidden\b|\b(?:access|permission)[ _](?:is |was )?denied|not (?:authori[sz]ed|permitted|allowed) to"
    r"|(?:does not|don't|doesn't|do not|lacks?) (?:have )?(?:the )?(?:\w+ )?(?:permission|access|privilege|scope)",
    r"(?:zugriff|zugang) (?:verweigert|untersagt)|keine (?:berechtigung|rechte)|nicht berechtigt",
    r"accès (?:refusé|interdit)|non autorisée?|permission refusée|pas (?:les droits|autorisé)",
    r"acceso (?:denegado|prohibido)|no autorizad[ao]|sin permiso|no tiene permisos?",
    r"acesso (?:negado|proibido)|não autorizad[ao]|sem permissão|accesso negato|non autorizzat[ao]",
    r"доступ (?:запрещ[её]н|закрыт)|отказано в доступе|нет прав|没有权限|無權限|权限不足|權限不足|拒绝访问|拒絕存取",
    r"アクセス(?:が)?拒否|権限がありません|許可されていません|접근(?:이)? 거부|권한이 없",
)
"""What services say to those whom they do not serve."""

MISSING_SYSTEM_PART = Phrases(
    r"cannot open shared object file|error while loading shared libraries|no space left on device"
    r"|disk quota exceeded",
    r"cannot allocate memory|out of memory|heap out of memory|too many open files|read-only file system",
    r"could not find a package configuration file|by not providing \"find\w+\.cmake\"|could not load cache",
    r"was not found in the pkg-config|fatal error: \S+\.h(?:pp)?: |cannot find -l\w|library not found for -l"
    r"|ld: library",
    r"requires? elevation|run as administrator|elevated (?:permissions|privileges)"
    r"|cannot open \S+ service on computer"
    r"|no (?:connected )?devices?(?:/emulators)?(?: (?:found|attached|connected)|!)",
    r"\bE40[13]\b|403 Forbidden - (?:GET|PUT)|blocked by (?:\w+ ){0,2}(?:proxy|firewall)",
    r"unable to find utility|executable file not found in",
    r"please tell me who you are|author identity unknown|unable to auto-detect email address",
    r"unable to create '.{1,300}\.lock': (?:operation not permitted|permission denied|read-only)",
    r"session (?:has )?expired|expired or invalid session|INVALID_SESSION_ID",
    r"could not find a version that satisfies (?![^\n]{0,300}\(from versions: \d)|externally-managed-environment"
    r"|in locally installed gems|run `?(?:bundle|npm|yarn|pnpm|poetry|composer) install`?\b|failed to spawn: "
    r"|\bor install \w+$"
    r"|shell has not been properly configured|UnauthorizedOperation|not authorized to perform"
    r"|\A\W*(?:exit code \d\W+)?(?:error\W+)?no matching distribution found",
    r"NoSuchModuleError|can't load plugin|no tty present|a (?:terminal|password) is required|are you root\b"
    r"|must be run as root",
    r"executable doesn't exist at|browser.{0,40}not installed|please install|is not installed"
    r"|unsupported (?:platform|engine)",
    r"InterpreterNotFound|glibc(?:xx)?_\d|permission denied \(publickey"
    r"|host key verification failed|could not read (?:username"
    r"|password) for",
    r"failed to authenticate|access denied for user"
    r"|authentication (?:failed|required)|not logged in|auth login|\bunauthorized\b|invalid api key|ライセンス"
    r"|no display"
    r"|(?:requires you|you (?:must|need|have)) to (?:be )?(?:log|sign)(?:ged)? ?in\b|ENEEDAUTH"
    r"|(?:missing|insufficient)[ _](?:scope|permissions?)\b|network restrictions|command '\S+' failed: no such file"
    r"|token (?:has |is |was )?expired|expired ?token|credentials? (?:have |has |are |is )?expired|no credential"
    r"|(?:could not|unable to|cannot) (?:load|find|locate) (?:\w+ ){0,2}credentials"
    r"|cannot open display|(?:no|find) (?:existing |active |valid )?(?:credentials?|account)\b.{0,40}(?:found"
    r"|selected|configured|source)"
    r"|active account selected|\bAccessDenied(?:Exception)?\b|is not authorized to perform|not a (?:terminal|tty)\b"
    r"|inappropriate ioctl"
    r"|unrecognized arguments: (?:\S+ )*--?(?:cov\S*|n|timeout|asyncio-mode|reruns|html|dist|benchmark\S*|ds)\b"
    r"|\(Forbidden\): |this is not the tsc command|docker daemon socket|not been booted with systemd"
    r"|could not open lock file"
    r"|could not get lock|unable to acquire the dpkg"
    r"|ensurepip is not available"
    r"|bubblewrap|\bsandbox(?:ed)?\b.{0,60}(?:denied|not permitted|blocked|restrict)|seccomp|CAP_\w+"
    r"|kvm (?:is )?not available",
)
