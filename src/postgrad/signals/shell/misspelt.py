"""Names of programs and keywords that are written wrongly.

`pytets` is a slip of the model, a `pytest` that is missing is not.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz.distance import OSA

_NAMES = (
    "pytest python python3 ruff mypy black flake8 pylint poetry cargo rustc docker kubectl terraform ansible "
    "npm pnpm yarn node tsc eslint prettier jest vitest mocha webpack java javac gradle maven dotnet ruby bundle rspec "
    "rails rake perl make cmake ninja clang clang-format gcc grep egrep ripgrep find xargs awk gawk sed head tail cat "
    "sort uniq tree touch mkdir rmdir chmod chown echo printf export source which curl wget ssh rsync tar unzip gzip "
    "git systemctl service journalctl sqlite3 psql mysql redis-cli composer phpunit golangci-lint gofmt swift "
    "get-content set-content get-childitem get-item set-location copy-item move-item remove-item new-item test-path "
    "select-string select-object where-object foreach-object measure-object write-output write-host out-file "
    "invoke-webrequest invoke-restmethod get-process stop-process "
    "else elif then done while until foreach "
    "find_file search_file search_dir scroll_up scroll_down str_replace_editor submit "
    "deno bun helm aws gcloud pip pip3 pipx conda tox nox coverage bash clear less more diff patch jq"
)
_PROGRAMS = frozenset(_NAMES.split())
_SHORTEST = 4  # letters: shorter names are all alike, but for two letters exchanged


def is_misspelt(name: str) -> bool:
    """Whether a name is one slip away from a program that everybody knows, and is no such program itself."""
    return bool(meant(name))


@lru_cache(maxsize=1024)
def meant(name: str) -> tuple[str, ...]:
    """The programs that are one slip away from a name, () if it is a name of its own.

    A slip: two letters exchanged, one left out, one too many, one hit beside. Another beginning (`gmake`) or another
    end (`python3`, `nodejs`) makes another name.
    """
    name = name.lower()
    if name in _PROGRAMS or not name.replace("-", "").replace("_", "").isalpha():
        return ()
    near = (known for known in _PROGRAMS if known[0] == name[0] and OSA.distance(name, known, score_cutoff=1) == 1)
    return tuple(sorted(known for known in near if _is_slip(name, known)))


def _is_slip(name: str, known: str) -> bool:
    """Whether a name at distance 1 is a slip and not another end; short names are told apart by one letter."""
    if sorted(name) == sorted(known) or "_" in known:  # an agent's own command: nothing else is called so
        return True
    shortest = _SHORTEST + (len(name) == len(known))
    return name[-1] == known[-1] and min(len(name), len(known)) >= shortest
