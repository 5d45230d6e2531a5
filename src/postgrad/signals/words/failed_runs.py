"""What runs that failed say: the sum of a test run, a finding of a checker, the last words of a program, a false start.

Every tool counts and names what is wrong in its own way, and most of them in one of a few: so many failed, `path:line:
error`, a headline that the build failed. Each pattern is of one such way; the tools that write it stand beside it. Not
covered: what a tool only draws (a red cross, a diff).
"""

from __future__ import annotations

import re

from postgrad.signals.words.phrases import Phrases
from postgrad.signals.words.wordings import ERROR_WORD, FAILED_WORD

_SUMS = (
    # what test runners count
    rf"\b[1-9]\d*\)? (?:tests? |examples?,? |specs? |suites? |assertions? )?{FAILED_WORD}\b|\b[1-9]\d* fails?\b",
    rf"(?:{FAILED_WORD}|{ERROR_WORD})[ \t]*[:：=][ \t]*[1-9]\d*\b",
    r"[1-9]\d* ?(?:个|個|件|つ|개)?[^\n,，。]{0,12}(?:失败|失敗|실패)",
    r"Failures?: [1-9]|Errors?: [1-9]|\b[1-9]\d* (?:errors?|problems? \([1-9])|^[Ff]ound [1-9]\d* errors?\b",
    r"^\d\d:\d\d \+\d+(?: ~\d+)? -[1-9]|Some tests failed|^FAIL: [1-9]",  # flutter, dart; opa
    # how they name what failed
    r"^FAILED[ (]|FAILED \(|^FAIL(?:ED)?\b[:!]?(?:\s|$)|^[ \t]*--- FAIL|^not ok \d+|^ERRORS?!",
    r"^ERROR (?:in|at|collecting|-) ?|^\*\* \(\w+(?:\.\w+)*(?:Error)?\)|^nox > (?:Command .{1,300} failed"
    r"|Session \S+ failed)",
)
COUNTED = Phrases(*_SUMS, flags=re.MULTILINE)
"""How test runners count and name what failed."""
PASSED = Phrases(
    r"^Tests:[ \t]+\d+ passed, \d+ total|^ok[ \t]+\S+[ \t]+(?:[\d.]+s|\(cached\))|^PASS$",
    r"^=* ?\d+ passed\b|^OK\b|^\s*\d+ passing\b",
    r"All (?:\d+ )?tests passed|^test result: ok|^\d+ examples?, 0 failures|100% tests passed|^\s*Tests  \d+ passed \(",
    flags=re.MULTILINE,
)
"""How test runners say that all went well."""
SUMMARY = Phrases(
    *_SUMS,
    # compilers and checkers, by code or by place
    rf"\b{ERROR_WORD}\s?:?\s?(?:TS|CS|MSB|BC|FS|NU|LNK|BCP|C|E)\d{{3,5}}\b|^error(?:\[E\d+\])?: ",
    rf"[:(]\d+(?:[:,]\d+)?\)?: ?(?:fatal )?{ERROR_WORD}\b|^error: could not compile",
    rf"^\S+: (?:fatal )?{ERROR_WORD}: |^\[(?:ERROR|FATAL)\] |^ERROR: |^e: \S+:\d+",
    r"^[│╷ \t]*Error: |^! (?:LaTeX|Package|Undefined|Missing|Emergency|Extra|Misplaced)\b",
    r"Fatal error occurred, no output",
    # linters, by how much they find, or finding by finding
    r"\b[1-9]\d* (?:issues?|offen[cs]es?|violations?|findings?|vulnerabilit(?:y|ies)) ?(?:found|detected|\(|:|$|,)",
    r"^\s+\d+:\d+\s+(?:error|✖)\s|^In \S+ line \d+:$|^[EF]\d{4} \w",  # eslint; shellcheck; cfn-lint
    r"^Warning, treated as error|^Aborted with \d+ warnings? in strict mode|^Errors parsing ",
    # builds and programs that ended
    r"^(?:npm|yarn|pnpm) ERR!|^npm error|^(?:g?make)(?:\[\d+\])?: \*\*\* |^CMake Error|ninja: build stopped",
    r"BUILD FAILED|Build failed|Compilation failed|Failed to compile|Compiler run failed|build commands failed:",
    r"^Completed with [1-9]\d* errors?|\bERROR=[1-9]|^\W*FAILED:\s*$",  # dbt; promtool
    r"\[emerg\]|^Latexmk: Errors",  # nginx
    r"^Traceback \(most recent call last|^panic: |^Exception in thread",
    flags=re.MULTILINE,
)
"""What a failed test run, check or build says, in one of its lines."""
FINDING = re.compile(
    r"^(?:vet: )?(?:\S*[/\\])?[\w.-]+\.[A-Za-z]\w{0,9}(?::\d+(?::\d+)?:|\(\d+(?:,\d+)?\)\s?:)"
    r"(?![^\n]*\b(?:warning|note|info|hint|remark|deprecated)\b) [^\n]",
    re.MULTILINE | re.IGNORECASE,
)
"""A row of a checker that names a place and says what is wrong there: `a.go:5:2: undefined: x`."""
NOT_FAILED = re.compile(
    r"\b(?:no|0|zero|without(?: any)?) (?:failures?|failed|fails?|errors?|problems?|issues?|offen[cs]es?|violations?"
    r"|findings?|vulnerabilities)\b|^.*\b0 remaining\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Sums of nothing, to be taken out before a summary is looked for."""
CRASH = Phrases(
    # exceptions that nobody caught
    r"^Traceback \(most recent call last|^(?:\w+\.)*\w+(?:Error|Exception): |^\*\* \(\w+",
    r"^Exception in thread|^Unhandled|^Uncaught |^panic: |^thread '.{0,80}'(?: \(\d+\))? panicked",
    r"^\S+:\d+:in [`'].{1,200}\((?:\w+::)*\w+(?:Error|Exception)\)|^\+ CategoryInfo\s+: ",
    r"^Error (?:from server|response from daemon)\b|^\s*[\w\\]+(?:Exception|Error)\s*$",
    r"\bThe exception '.{1,200}' was thrown",
    r"Segmentation fault|\(core dumped\)|^Execution halted|^stack traceback:$|^(?:rails|rake) aborted!",
    r"^Expecting (?:property name|value|'.' delimiter)\b.* line \d+ column|^.{1,200} at (?:-e"
    r"|\S+\.p[lm]) line \d+\.$",
    # the word "error" where a program puts it
    rf"^(?:fatal|error): |^E: |^ERROR[:!] |^{ERROR_WORD}\s?[:：]|\b{ERROR_WORD} (?:TS|CS|MSB)\d{{3,5}}\b|^[│╷] Error: ",
    r"^Error (?:opening|parsing|reading|writing|loading|while|occurred|in \S.{0,80} ?:)\b|^(?:Syntax|Parse) error"
    r"|^(?:SCRIPT|PHP (?:Parse|Fatal)|PARSE|FATAL) ERROR|^PHP (?:Parse|Fatal) error|^yaml: line \d+: ",
    r"^npm (?:ERR!|error)|^(?:g?make)(?:\[\d+\])?: \*\*\* |^BUILD FAILED|^(?:The )?\w+ \"[^\"\n]{1,100}\" is invalid: ",
    flags=re.MULTILINE,
)
"""How a program of any sort ends badly, in one of its lines."""
MISUSED = Phrases(
    r"^usage: |unrecognized arguments|(unknown|invalid|illegal|unrecogni[sz]ed|unexpected) (option|argument|flag"
    r"|command|subcommand)"
    r"|flag provided but not defined|missing script|file or directory not found: |^ERROR: not found: "
    r"|^=* ?\d+ deselected in "
    r"|no tests? (files? )?(found|ran|collected|match(ing|ed)?)|\bnot found\. (some|available|possible)\b",
    flags=re.IGNORECASE | re.MULTILINE,
)
"""What a runner says of arguments or names that it does not know."""
NO_TARGET = Phrases(
    r"failed to import test module: \S*[/\\]|no (?:such package|test target named|tests matching)",
    r"task '[^'\n]+' not found|unknown target",
)
"""The target that the line names is not there."""
NO_PROJECT = Phrases(
    r"(?:could ?not|couldn['’]t|cannot|can['’]t|unable to) (?:find|locate|read|open) .{0,40}"
    r"(?:\b[\w-]+\.(?:json|toml|mod|xml|gradle|lock|ya?ml)\b|project file|Gemfile)",
    r"(?:not found|no such file) in (?:the )?(?:current|this) (?:working )?directory"
    r"|in .{1,200} or any parent director",
    r"cannot find main module|could not find Package\.swift|no configuration files\b"
    r"|does not appear to contain CMakeLists|no targets specified and no makefile|there is no POM"
    r"|requires a project to execute|does not contain a (?:project|solution)|no project file",
    r"(?:test )?(?:directory|folder|path|target|script|scheme) .{1,80} (?:was )?(?:not found|does(?: not|n't) exist)"
    r"(?! in )",
    flags=re.IGNORECASE,
)
"""There is nothing here to test, check or build: the place or the name is wrong."""
