"""Shell lines: which of them say the same, and which only look so."""

from __future__ import annotations

import pytest

from postgrad.signals.shell.words import normal_line

SAME = [
    ("ls  -l", " ls -l "),
    ("cat 'a b.txt'", 'cat "a b.txt"'),
    ("cat 'a'b", "cat ab"),
    ("grep 'x|y' f", 'grep "x|y" f'),
    ("cd a&&ls", "cd a && ls"),
    ("cd a\nls", "cd a; ls"),
    ("cd a\n\n\nls\n", "cd a ; ls"),
    ("ls;", "ls"),
    ("a |\n b", "a | b"),
    ("pytest \\\n  -q", "pytest -q"),
    ("echo $HOME  x", "echo $HOME x"),
    ("git log --format='%H'", 'git log --format="%H"'),
    ("head -n 5 < f > 'g'", "head -n 5 <f >g"),
    ("run 2> log  '2' >f", "run 2>log 2 > f"),
    ('echo "$(date)"  a', 'echo "$(date)" a'),
    ("a='1' run", "a=1 run"),
    ("a='' run", "a= run"),
    ("PATH+=':/b c' run", 'PATH+=":/b c" run'),
    ("export A='x' B=\"y\"", "export A=x B=y"),
    ("dd if='a' of=b", "dd if=a of='b'"),
]
DIFFERENT = [
    ("echo $HOME", "echo '$HOME'"),
    ("echo *.py", "echo '*.py'"),
    ("echo a\\ b", "echo a b"),
    ('echo "$(date)"', "echo '$(date)'"),
    ("ls ~", "ls '~'"),
    ("ls # all", "ls '#' all"),
    ("A=1 run", "'A=1' run"),
    ("A=1 run", "'A'=1 run"),
    ("A=1 run", "A= 1 run"),
    ("A=1 run", "A+=1 run"),
    ("A=$B run", "A='$B' run"),
    ("A=~/b run", "A='~/b' run"),
    ("A='x y' run", "A=x y run"),
    ("1A='x' run", "1A=x run"),
    ("cd a && ls", "cd a ; ls"),
    ("cd a && ls", "cd a || ls"),
    ("sleep 1 & ls", "sleep 1; ls"),
    ("a 'b c'", "a b c"),
    ("echo {a,b}", "echo '{a,b}'"),
    ("echo !!", "echo '!!'"),
    ("cat <<X\na  b\nX", "cat <<X\na b\nX"),
    ("ls > a", "ls >> a"),
    ("[ -f a ]", "'[ -f a ]'"),
    ("echo 'a\nb'", "echo a b"),
    ("if true; then ls; fi", "'if' true; 'then' ls; 'fi'"),
    ("rm C:\\a", "rm C:a"),
    ("run 2> log", "run 2 > log"),
    ("run 2>&1", "run 2 >&1"),
    ("rm -r $(pwd)/a", "rm -r $(pwd) /a"),
    ('echo "$(echo "a  b")"', 'echo "$(echo "a b")"'),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spacing_and_needless_quotes_do_not_count(one: str, other: str) -> None:
    assert normal_line(one) == normal_line(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_meaning_counts(one: str, other: str) -> None:
    assert normal_line(one) != normal_line(other)


@pytest.mark.parametrize(
    "line", ["", "   ", "'", '"', "echo 'open", "\\", "<<", "&&", "\n;\n", "x" * 50_000, "\0", "a\ud800"]
)
def test_odd_lines_are_lines(line: str) -> None:
    assert normal_line(line) == normal_line(line)
    assert normal_line("echo 'open") == "echo 'open"
