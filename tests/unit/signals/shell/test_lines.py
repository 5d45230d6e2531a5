"""Shell lines taken apart: operators, here-documents, files written."""

from __future__ import annotations

import pytest

from postgrad.signals.shell.commands import edited_files, kind_of
from postgrad.signals.shell.lines import parse_line, written_files
from postgrad.signals.shell.programs import only_reads
from unit.signals.traces_by_hand import bash, call


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("a && b", False),
        ("a", False),
        ("a | b", True),
        ("a; b", True),
        ("a || b", True),
        ("a\nb", True),
        ("a &", False),
        ("cd x && a 2>&1 | tail -3", True),
    ],
)
def test_when_an_exit_code_gets_lost(line: str, lost: bool) -> None:
    assert parse_line(line).loses_code is lost


def test_bodies_of_here_documents_are_data() -> None:
    line = "cat > a.py <<'EOF'\npytest | tail\nrm -rf /; ls\nEOF\npython a.py"
    assert [words[0] for words in parse_line(line).commands] == ["cat", "python"]
    assert parse_line("python3 - <<EOF\nimport os; os.getcwd()\nEOF").commands == (("python3", "-"),)


def test_keywords_prefixes_and_time_limits_are_looked_through() -> None:
    found = parse_line("if test -f a; then timeout 60 env X=1 pytest -q; fi").commands
    assert [words[0] for words in found] == ["test", "pytest"]
    assert parse_line("for f in *; do grep x $f; done").deciding[0] == "grep"
    assert parse_line("(cd a && ls)").commands[0] == ("cd", "a")


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("echo a > b.txt", ("b.txt",)),
        ("echo a >> 'my file.txt' 2>/dev/null", ("my file.txt",)),
        ("cat > src/a.py <<'EOF'\nx > 3\nEOF", ("src/a.py",)),
        ("ls 2>&1 | tee out.log", ("out.log",)),
        ("sed -i.bak 's/a/b/' a.c b.c", ("b.c",)),
        ("perl -pi -e 's/a/b/' a.c", ("a.c",)),
        (
            "apply_patch <<'P'\n*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n*** End Patch\nP",
            ("a.py", "b.py"),
        ),
        ("ls > /dev/null", ()),
        ("echo 'a > b' && echo \"c > d\"", ()),
        ("pytest -q", ()),
        ("str_replace_editor create /w/a.py --file_text 'x'", ("/w/a.py",)),
        ("str_replace_editor view /w/a.py", ()),
    ],
)
def test_files_that_a_line_writes(line: str, files: tuple[str, ...]) -> None:
    assert written_files(line) == files


def test_edited_files_of_tools() -> None:
    assert edited_files(call("Edit", {"file_path": "a.py", "old_string": "x"})) == ("a.py",)
    assert edited_files(call("str_replace_editor", {"command": "view", "path": "a.py"})) == ()
    assert edited_files(call("apply_patch", {"input": "*** Begin Patch\n*** Add File: b.py\n+x"})) == ("b.py",)
    assert edited_files(call("Read", {"file_path": "a.py"})) == ()
    assert edited_files(bash("echo x > c.py")) == ("c.py",)


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("Bash", {"command": "ls"}, "shell"),
        ("exec_command", {"cmd": "ls"}, "shell"),
        ("run_commands", {"commands": ["ls", "pwd"]}, "shell"),
        ("str_replace_editor", {"command": "view", "path": "a"}, "read"),
        ("str_replace_editor", {"command": "insert", "path": "a"}, "edit"),
        ("execute_ipython_cell", {"code": "1"}, "code"),
        ("NotebookEdit", {"notebook_path": "a", "new_source": "1"}, "edit"),
        ("replace", {"file_path": "a", "old_string": "x"}, "edit"),
        ("write_stdin", {"session_id": 1, "chars": ""}, "wait"),
        ("TaskOutput", {"task_id": "x"}, "wait"),
        ("Grep", {"pattern": "x"}, "search"),
        ("read_file", {"path": "a"}, "read"),
        ("get_weather", {"city": "Rome"}, "other"),
    ],
)
def test_kinds_of_tools(name: str, arguments: dict[str, object], kind: str) -> None:
    assert kind_of(call(name, arguments)) == kind


@pytest.mark.parametrize("line", ["cat a | head", "git log | head", "docker logs web", "grep x a; ls", "sed -n 1,9p a"])
def test_lines_that_only_show_what_others_wrote(line: str) -> None:
    assert only_reads(line)


@pytest.mark.parametrize("line", ["python a.py | head", "git push", "make", ""])
def test_lines_that_do_something(line: str) -> None:
    assert not only_reads(line)


def test_hostile_lines_are_taken_as_they_are() -> None:
    for line in ("'" * 1001, "|" * 5000, "<<" * 500, "$(" * 400, "\x00\ud83d", "a" * 200_000, "cat <<EOF\n" * 300):
        parse_line(line)
        written_files(line)


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("python - <<'EOF'\np='tests/a.py'\nt=open(p).read()\nopen(p,'w').write(t)\nEOF", ("tests/a.py",)),
        ("python3 -c \"from pathlib import Path; p = Path('a.py'); p.write_text(p.read_text())\"", ("a.py",)),
        ("node -e \"const fs=require('fs'); fs.writeFileSync('a.json', '{}')\"", ("a.json",)),
        ("python -c \"print(open('a').read())\"", ()),
        ("python -c \"open(name, 'w')\"", ()),
    ],
)
def test_a_small_program_in_the_line_writes(line: str, written: tuple[str, ...]) -> None:
    assert written_files(line) == written
