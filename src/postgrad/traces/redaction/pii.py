"""Personal data in text: e-mail and IP addresses, telephone, card and account numbers; names of persons on request.

Each kind has a pattern for what may be one and a check that it is one: a list of top-level domains, `ipaddress`, the
Luhn sum with the issuers' ranges (ISO/IEC 7812), the remainder 97 of an IBAN with its country's length (ISO 13616).
Traces are full of look-alikes, which stay: commits and UUIDs, times, versions, `git@host:`, no-reply and loopback
addresses. A telephone number counts only when it is written as one: with a "+", or in groups. Names need a language
model (presidio with spaCy), which is asked about running text only, never about code.

Not covered: street addresses, dates of birth, national numbers, names in languages without a model.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from postgrad.core.errors import ConfigError, MissingDependency

Finder = Callable[[str], Iterator[tuple[str, str]]]
KINDS: Final = ("pii", "names")

_DOMAIN_NAMES: Final = (
    "academy agency ai app biz blog business cloud club co com company consulting design dev digital edu email events "
    "example finance gmbh gov group health host hotel info int inc invalid io jobs legal life link live llc local ltd "
    "media mil mobi name net network news one online org page party photo pro review shop site software solutions "
    "space store studio systems team tech test today tools training travel website wiki work world xyz zone"
)
_DOMAINS: Final = frozenset(_DOMAIN_NAMES.split())
_EMAIL: Final = re.compile(
    r"(?<![A-Za-z0-9._%+\-@/])[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.)+"
    r"([A-Za-z]{2,24})(?![A-Za-z0-9_\-(\[=]|:[^\s\d])"
)
_NOBODY: Final = re.compile(
    r"(?i)(?:git|hg|svn|no[-_.]?reply|do[-_.]?not[-_.]?reply|mailer-daemon)(?:\+[^@]*)?@|[^@]*@users\.noreply\."
)
_IPV4: Final = re.compile(r"(?<![\w.\-=+])(?:\d{1,3}\.){3}\d{1,3}(?![\w\-+]|\.\w)")
_VERSION: Final = re.compile(r"(?i)(?:version|release|build|upgrade[ds]? to|v\.?)[\s:=\"'`]*$")
_IPV6: Final = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![\w:.])")
_PHONE: Final = re.compile(
    r"(?<![\w.\-+/#:=])(?<!\d )(?:"
    r"\+[1-9]\d{0,2}[\s.\-]?(?:\(\d{1,4}\)[\s.\-]?)?\d{1,5}(?:[\s.\-]?\d{2,5}){1,4}"
    r"|(?:1[\s.\-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.\- ])[2-9]\d{2}[.\- ]\d{4}"
    r"|\(?0\d{1,5}\)?(?:[ /\-]\d{2,8}){1,4}"
    r")(?![\w\-/]|\.\w| \d)"
)
_CARD: Final = re.compile(r"(?<![\w.\-+])\d(?:[ \-]?\d){12,18}(?![\w\-]|\.\d)")
_ISSUERS: Final = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6011|64[4-9]|65"), (16, 19)),
    (re.compile(r"35(?:2[89]|[3-8])"), (16,)),
    (re.compile(r"3(?:0[0-5]|[689])"), (14,)),
    (re.compile(r"62"), (16, 17, 18, 19)),
)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_IBAN_LENGTHS: Final = dict(
    re.findall(
        r"([A-Z]{2})(\d{2})",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 "
        "FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 "
        "LU20 LV21 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 "
        "SK24 SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20",
    )
)


def finder(kind: str) -> Finder:
    """What finds personal data of a kind: text -> (rule, what was found).

    Raises:
        ConfigError: an unknown kind.
        MissingDependency: the kind needs a library that is not installed.
    """
    if kind == "pii":
        return numbers_and_addresses
    if kind == "names":
        return _names(_analyzer())
    raise ConfigError("unknown kind of redaction", got=kind, expected=" or ".join(KINDS))


def numbers_and_addresses(text: str) -> Iterator[tuple[str, str]]:
    """E-mail and IP addresses, card, account and telephone numbers; what is surely one is no other."""
    if "@" in text:
        yield from (("pii:email", m.group()) for m in _EMAIL.finditer(text) if _is_email(m))
    taken = []
    for match in _IBAN.finditer(text):
        if _is_iban(match.group()):
            taken.append(match.span())
            yield "pii:iban", match.group()
    for match in _CARD.finditer(text):
        if _is_card(match.group()):
            taken.append(match.span())
            yield "pii:card", match.group()
    for match in _IPV4.finditer(text):
        if _is_ipv4(match.group()) and not _VERSION.search(text[max(0, match.start() - 24) : match.start()]):
            taken.append(match.span())
            yield "pii:ip", match.group()
    yield from (("pii:ip", m.group()) for m in _IPV6.finditer(text) if _is_ipv6(m.group()))
    for match in _PHONE.finditer(text):
        if _is_phone(match.group()) and not any(match.start() < end and start < match.end() for start, end in taken):
            yield "pii:phone", match.group()


def _is_email(match: re.Match[str]) -> bool:
    domain = match[1].lower()
    return (len(domain) == 2 or domain in _DOMAINS) and not _NOBODY.match(match.group())


def _is_iban(text: str) -> bool:
    plain = text.replace(" ", "")
    if _IBAN_LENGTHS.get(plain[:2]) != str(len(plain)):
        return False
    return int("".join(str(int(letter, 36)) for letter in plain[4:] + plain[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    digits = [int(letter) for letter in text if letter.isdigit()]
    number = "".join(map(str, digits))
    issued = any(len(number) in lengths and start.match(number) for start, lengths in _ISSUERS)
    # Luhn: every second digit from the right counts double, and as the sum of its digits.
    doubled = [digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits[::-1])]
    return issued and sum(doubled) % 10 == 0 and len(set(number)) > 1


def _is_ipv4(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or text.startswith("255.") or text.endswith(".0.0.0"))


def _is_ipv6(text: str) -> bool:
    """`a::b` is a name in many programming languages; an address has more groups, and digits."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return sum(bool(group) for group in text.split(":")) >= 3 and any(letter.isdigit() for letter in text)


def _is_phone(text: str) -> bool:
    digits = sum(letter.isdigit() for letter in text)
    grouped = any(letter in " .-/()" for letter in text)
    # A date (04-11-2024), a time stamp in a diff (+1770123456789).
    date = re.fullmatch(r"0\d[\-/ ]\d{2}[\-/ ]\d{2,4}", text)
    least = 9 if text.startswith(("0", "(0")) else 8
    return least <= digits <= (15 if grouped else 12) and not date


@lru_cache(maxsize=1)
def _analyzer() -> Any:
    try:
        from presidio_analyzer import AnalyzerEngine

        return AnalyzerEngine()
    except (ImportError, OSError):  # spaCy raises OSError for a model that is not there
        raise MissingDependency("presidio-analyzer with the spaCy model en_core_web_sm", extra="names") from None


def _names(analyzer: Any) -> Finder:
    def find(text: str) -> Iterator[tuple[str, str]]:
        for paragraph in text.split("\n"):
            if _is_prose(paragraph):
                for found in analyzer.analyze(text=paragraph, entities=["PERSON"], language="en", score_threshold=0.8):
                    yield "pii:name", paragraph[found.start : found.end]

    return find


def _is_prose(paragraph: str) -> bool:
    """Words with spaces between them, a capital somewhere, and none of the signs of code."""
    letters = sum(letter.isalpha() or letter.isspace() or letter in ",.;:!?'\"-" for letter in paragraph)
    code = any(sign in paragraph for sign in ("::", "();", "={", "=>", "</", "def ", "import ", "http"))
    return " " in paragraph.strip() and letters >= 0.95 * len(paragraph) and not code and not paragraph.islower()
