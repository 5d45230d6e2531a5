"""Names of programs that are written wrongly: `pytets` is a slip of the model, a `pytest` that is missing is not."""

from __future__ import annotations

_NAMES = (
    "pytest python python3 ruff mypy black flake8 pylint poetry cargo rustc docker kubectl terraform ansible "
    "npm pnpm yarn node tsc eslint prettier jest vitest mocha webpack java javac gradle maven dotnet ruby bundle rspec "
    "rails rake perl make cmake ninja clang clang-format gcc grep egrep ripgrep find xargs awk gawk sed head tail cat "
    "sort uniq tree touch mkdir rmdir chmod chown echo printf export source which curl wget ssh rsync tar unzip gzip "
    "git systemctl service journalctl sqlite3 psql mysql redis-cli composer phpunit golangci-lint gofmt swift "
    "deno bun helm aws gcloud pip pip3 pipx conda tox nox coverage bash clear less more diff patch jq"
)
_PROGRAMS = frozenset(_NAMES.split())
_SHORTEST = 4  # letters: shorter names are all alike


def is_misspelt(name: str) -> bool:
    """Whether a name is one slip away from a program that everybody knows, and is no such program itself.

    A slip: two letters exchanged, one left out, one doubled, one hit beside. Another beginning (`gmake`) or another end
    (`python3`, `nodejs`) makes another name.
    """
    name = name.lower()
    if len(name) < _SHORTEST or name in _PROGRAMS or not name.replace("-", "").isalpha():
        return False
    return any(_is_slip(name, known) for known in _PROGRAMS if len(known) >= _SHORTEST and known[0] == name[0])


def _is_slip(name: str, known: str) -> bool:
    if sorted(name) == sorted(known):
        apart = [at for at, (one, other) in enumerate(zip(name, known, strict=True)) if one != other]
        return len(apart) == 2 and apart[1] == apart[0] + 1
    if len(name) == len(known):
        beside = sum(one != other for one, other in zip(name, known, strict=True)) == 1
        return beside and len(name) > _SHORTEST and name[-1] == known[-1]
    if len(name) + 1 == len(known):
        return any(known[:at] + known[at + 1 :] == name for at in range(1, len(known) - 1))
    doubled = (at for at in range(1, len(name)) if name[at] == name[at - 1])
    return len(name) == len(known) + 1 and any(name[:at] + name[at + 1 :] == known for at in doubled)
