"""The programs of a shell line, by what their exit codes and outputs mean.

A search or a probe says "no" with its exit code, a test run or a check counts what is wrong with the code, a reader
shows what somebody else wrote. How lines are taken apart: `shell_lines`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from postgrad.signals.shell.lines import parse_line
from postgrad.signals.words.phrases import one_of


def _names(listed: str) -> frozenset[str]:
    return frozenset(name.strip() for name in listed.split(","))


SEARCHES = _names(
    """
    grep, egrep, fgrep, zgrep, rg, ag, ack, find, fd, fdfind, findstr, select-string, locate, pgrep, pidof, lsof,
    fuser, diff, cmp, comm, test, [, [[, test-path, mountpoint, which, whereis, where, type, hash, get-command,
    get-process, show-ref, rev-parse, check-ignore, merge-base, config, getent, printenv, find_file, search_file,
    search_dir, command -v, kill -0, ps -p, nc -z, jq -e, yq -e, pip show, pip3 show, brew list, npm ls, npm list,
    npm outdated, docker inspect, ping, gh checks, man, pkill, killall, systemctl status, systemctl is-active,
    systemctl is-enabled, kubectl auth
    """
)
"""What says "no" with its exit code; of some programs only one subcommand or option does."""
PROBES = _names(
    """
    grep, egrep, fgrep, rg, ag, diff, cmp, ls, du, cat, head, tail, wc, nl, less, find, tree, test, [, [[, stat,
    file, dir, open, find_file, search_file, search_dir, get-item, get-childitem, get-content, gc, test-path
    """
)
WAITS = frozenset(["sleep", "wait", "start-sleep", "timeout"])
READERS = _names(
    """
    cat, head, tail, less, more, sed, awk, nl, bat, grep, egrep, fgrep, rg, ag, ack, find, fd, ls, wc, jq, yq, cut,
    sort, uniq, tr, diff, strings, xxd, od, tree, stat, file, echo, printf, get-content, select-string, type, gc,
    column, fold, history, log, show, curl, wget, http, gh, journalctl, dmesg, cd, pwd, true, export, set, source,
    sleep, tee, xargs, env, printenv
    """
)


def _any(listed: str) -> str:
    """An expression for any of the names, each an expression of its own, with commas between them."""
    return one_of(*(name.strip() for name in listed.split(",")))


_LAUNCHERS = _any(
    r"""
    \S*python[\d.]*, uv, npx, bunx, poetry, pdm, pipenv, hatch, rye, pixi, conda, bundle, pnpm, yarn, npm, php, xcrun,
    dotnet, nx, turbo, coverage, catchsegv
    """
)
_BUILD_TOOLS = _any(
    r"""
    cargo, go, mix, dotnet, swift, (?:\S*/)?gradlew?, (?:\S*/)?mvnw?, deno, bun, rake, rails, npm, pnpm, yarn, make,
    gmake, just, sbt, lein, stack, cabal, zig, bazel, flutter, dart, mage, nx, turbo, xcodebuild, ng, php artisan,
    composer, gleam, rebar3, julia
    """
)
_TEST_RUNNERS = _any(
    r"""
    py\.?test, unittest, nose2?, jest, vitest, mocha, ava, karma, cypress, playwright test, rspec, minitest, phpunit,
    pest, tox, nox, ctest, bats, gotestsum, cargo-nextest, busted, trial, runtests\.py, run_?tests?\.(?:sh|py),
    manage\.py test, doctest, hardhat test, forge test, cucumber(?:-js)?, behave, robot, opa test, molecule test,
    promtool test, helm unittest, terraform test, newman run, k6 run, wdio, testcafe, testthat
    """
)
_TEST_GOALS = _any(r"tests?, test:\S+, spec, nextest, verify, t")
_CHECKERS = _any(
    r"""
    tsc, vue-tsc, mypy, pyright, basedpyright, ty, ruff, black, isort, eslint, biome, oxlint, prettier, flake8, pylint,
    golangci-lint, rubocop, stylelint, shellcheck, yamllint, markdownlint\S*, ansible-lint, actionlint, sqlfluff,
    tflint, swiftlint, html-?hint, codespell, cspell, bandit, php -l, bash -n, node --check, helm lint, hadolint,
    ktlint, clang-tidy, phpstan, psalm, credo, pre-commit, manage\.py check, manage\.py makemigrations, buf lint,
    buf generate, buf build, twine check, poetry check, prisma validate, prisma generate, vue-tsc, svelte-check,
    astro check, cfn-lint, sam validate, cdk synth, promtool check, nginx -t, apachectl configtest, opa check,
    docker compose config, docker-compose config, spectral lint, redocly lint, swagger-cli validate, kubeconform,
    kubeval, checkov, trivy config, luacheck, chktex, lintr, dart analyze, flutter analyze, deno lint, deno check
    """
)
FORMATTERS = frozenset(["prettier", "black", "isort", "fmt", "format"])
LINTERS = _names(
    """
    ruff, black, isort, eslint, biome, oxlint, prettier, flake8, pylint, golangci-lint, rubocop, stylelint, shellcheck,
    yamllint, markdownlint, ansible-lint, actionlint, sqlfluff, tflint, swiftlint, htmlhint, codespell, cspell, bandit,
    hadolint, ktlint, credo, lint, fmt, format, clippy
    """
)
"""Checkers that look at each file by itself."""
_COMPILERS = _any(
    r"""
    gcc, g\+\+, cc, c\+\+, clang, clang\+\+, javac, rustc, kotlinc, scalac, ghc, csc, cmake, ninja, meson, msbuild,
    \S*configure, (?:xe|pdf|lua)latex, latexmk, typst compile, webpack, rollup, vite build, next build, esbuild,
    py_compile, compileall, sphinx-build, mkdocs build, hugo, jekyll build, protoc, nvcc, forge build, solc, dbt \w+,
    hardhat compile, az bicep build, xcodebuild, build
    """
)
_CHECK_GOALS = _any(
    r"""
    build, check, lint, typecheck, type-check, types, vet, compile\w*, format, fmt, clippy, credo, dialyzer, assemble,
    package, bundle, analyze, tsc, ci
    """
)
_MAKE_GOALS = _any(r"-\S+, \d+, all, clean, default, release, debug, \w+=\S*")
_LAUNCHED = rf"(?:{_LAUNCHERS}(?: (?:run|exec|dlx|tool|-\S+))* )*"  # `uv run --with x python -m `
_BUILDS = rf"{_BUILD_TOOLS}(?: run)?(?: -\S+)* (?:\S*:)?"  # `npm run -s `, `gradle :app:`
_TESTS = re.compile(rf"{_LAUNCHED}(?:(?:\S*/)?{_TEST_RUNNERS}(?: |$)|{_BUILDS}{_TEST_GOALS}(?: |$))")
_CHECKS = re.compile(
    _LAUNCHED
    + one_of(
        rf"(?:\S*/)?{one_of(_CHECKERS, _COMPILERS)}(?: |$)",
        rf"{_BUILDS}{_CHECK_GOALS}\b",
        rf"g?make(?: {_MAKE_GOALS})*$",
        r"docker (?:compose )?build",
        r"bazel build",
        r"(?:terraform|tofu)(?: -\S+)* (?:plan|validate)\b",
    )
)


@lru_cache(maxsize=4096)
def programs(line: str) -> tuple[str, ...]:
    """The program of each simple command; ``git grep``, ``xargs grep`` count as what they are."""
    return tuple(_program(words) for words in parse_line(line).commands)


def _program(words: tuple[str, ...]) -> str:
    name = re.split(r"[\\/]", words[0])[-1].lower() or words[0]
    name = name.removesuffix(".exe")
    rest = [word for word in words[1:] if not word.startswith("-")]
    if name == "git":
        verbs = ("grep", "diff", "show-ref", "rev-parse", "check-ignore", "log", "show", "merge-base", "config")
        return next((word for word in rest if word in verbs), name) if rest else name
    if "logs" in rest[:2]:  # docker logs, kubectl logs: what another program wrote
        return "log"
    if name == "xargs" and rest:
        return next((word for word in rest if word in SEARCHES), name)
    return next((asked for word in words[1:3] if (asked := f"{name} {word}") in SEARCHES), name)


def is_test_run(line: str) -> bool:
    """Whether the line runs tests."""
    return _runs(_TESTS, line)


def is_check(line: str) -> bool:
    """Whether the line runs a type check, a linter or a build."""
    return _runs(_CHECKS, line)


def _runs(pattern: re.Pattern[str], line: str) -> bool:
    """Only the words that start a command count: a quoted text may speak of tests."""
    return any(pattern.match(" ".join(words)) for words in parse_line(line).commands)


def checkers(line: str) -> frozenset[str]:
    """What checks in the line, each by the word that tells it from others: ``npx eslint .`` is eslint."""
    found = (_CHECKS.match(" ".join(words)) for words in parse_line(line).commands)
    return frozenset(match[0].split()[-1] for match in found if match is not None)


def only_reads(line: str) -> bool:
    """Whether every program of the line shows text that somebody else wrote, errors quoted in it included."""
    names = programs(line)
    return bool(names) and all(name in READERS for name in names)
