"""The sieve lets through whatever the scanner would find, and holds back most of the rest."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

import betterleaks
import pytest

from postgrad.traces.redaction import sieve
from postgrad.traces.redaction.redactor import Redactor
from postgrad.traces.redaction.rules import RULES

PLAIN = "def read(path):\n    return [line.split() for line in open(path)]\n\nThe tests pass now, 12 of 12.\n"
SHAPES = {
    "github": "ghp_{36}",
    "aws": "AKIA{16U}",
    "slack": "xoxb-1234567890-1234567890123-{24}",
    "stripe": "sk_live_{24}",
    "context": 'api_key = "{32}"',
    "uri": "postgres://admin:{16}@db.example.com:5432/x",
    "password": 'password: "{14}"',
    "bearer": "Authorization: Bearer {40}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{43}",
    "env": "export DB_PASSWORD={18}",
    "curl": 'curl -u "user:{16}" https://example.com',
    "argument": 'password = "{14}"',
    "terraform": 'db_password = "{30}"',
    "django": "SECRET_KEY = 'django-insecure-{50}'",
    "url": "https://api.example.com/v1?access_token={32}&x=1",
    "option": "tool --token {32} run",
    "mysql": "mysql -u root -p{16}7a db",
    "netrc": "machine x.example.com login ada password {18}",
    "cookie": "Cookie: a=b; session={40}",
    "german": "Passwort: {12}3x7Q",
    "bcrypt": "$2y$10${53}",
    "webhook": "https://discord.com/api/webhooks/419991148013970333/{68}",
    "cut": "-----BEGIN PRIVATE KEY-----\n{64}",
    "aws key": "aws_secret_access_key = {40} end",
    "key": "-----BEGIN RSA PRIVATE KEY-----\n{64}\n-----END RSA PRIVATE KEY-----",
}


def texts() -> Iterator[str]:
    """Every shape a few times with random letters, alone and in the middle of something else."""
    pick = random.Random(7)
    for shape in SHAPES.values():
        for _ in range(5):
            head, _, rest = shape.partition("{")
            size, _, tail = rest.partition("}")
            letters = string.ascii_uppercase + "234567" if size.endswith("U") else string.ascii_letters + string.digits
            secret = head + "".join(pick.choices(letters, k=int(size.rstrip("U")))) + tail
            yield secret
            yield PLAIN * pick.randrange(1, 4) + secret + "\n" + PLAIN


@pytest.fixture(scope="module", autouse=True)
def without_a_sieve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No sieve is there at first, whatever this machine has in its cache."""
    patch = pytest.MonkeyPatch()
    patch.setenv("POSTGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
    sieve._compiled.cache_clear()
    yield
    patch.undo()
    sieve._compiled.cache_clear()


@pytest.mark.slow
def test_nothing_that_is_found_is_held_back() -> None:
    found = [Redactor().redact(text) for text in texts()]
    assert all("<secret:" in text for text in found)
    sieve.prepare()
    assert sieve._compiled() is not None
    assert [Redactor().redact(text) for text in texts()] == found
    scanned = [text for text in texts() if betterleaks.scan_string(text)]
    assert len(scanned) > 60
    assert all(sieve.SCANNER in (sieve.suspected(text) or ()) for text in scanned)
    for text in texts():
        held = sieve.suspected(text)
        assert held is not None
        assert {at for at, (_, _, pattern) in enumerate(RULES) if pattern.search(text)} <= held
    assert sieve.suspected(PLAIN) == set()
    assert sieve.suspected("pas\u017fword") is None, "for the scanner this letter is an s"


def test_the_rules_are_found_in_the_scanner() -> None:
    """Every rule of the configuration is there but the few that look at names of files."""
    rules = sieve.rules()
    count = sieve._library().read_bytes().count(b"[[rules]]\n")
    assert count - 5 <= len(rules) <= count
    assert any(rb"ghp_" in rule for rule in rules)


def test_without_rules_everything_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libbetterleaks.so").write_bytes(b"no configuration here")
    monkeypatch.setattr(sieve, "_library", lambda: tmp_path / "libbetterleaks.so")
    monkeypatch.setenv("POSTGRAD_CACHE", str(tmp_path))
    sieve._compiled.cache_clear()
    assert sieve.rules() == []
    sieve.prepare()
    assert sieve._compiled() is None
    assert sieve.suspected(PLAIN) is None
    sieve._compiled.cache_clear()
