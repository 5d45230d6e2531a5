"""`postgrad record` around real commands: environment, exit codes, signals, a kill, and what is left on the disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postgrad.traces.readers import read
from unit.serve.recording.scripted_api import ScriptedApi, scripted_api

KEY = "sk-proj-Zq8vT2mN4xR7wL1kJ5hG9dF3sA6pB0cE"
ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": sys.argv[1], "messages": [{"role": "user", "content": "hello"}]}).encode()
head = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
for _ in range(int(sys.argv[2])):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, head)
    with urllib.request.urlopen(request) as answer:
        answer.read()
    print(answer.status, flush=True)
sys.exit(7)
"""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ScriptedApi]:
    with scripted_api() as (api, address):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # nothing listens there
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        (tmp_path / "ask.py").write_text(ASK)
        yield api


def record(*arguments: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "postgrad", "record", "--run", str(folder / "run"), *arguments]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, **pipes, **options)


def test_a_command(api: ScriptedApi, tmp_path: Path) -> None:
    """Its output is its own, its exit code is passed on, its call is an exact trace without the key."""
    running = record("--", sys.executable, "ask.py", "m", "2", "--json", "# x", KEY, folder=tmp_path)
    out, told = running.communicate(timeout=60)
    assert (running.returncode, out) == (7, "200\n200\n"), told
    assert "recorded 2 of 2 calls, 0 with errors" in told
    result = read(tmp_path / "run" / "openai_chat.jsonl")
    assert [step.request.fidelity for trace in result.traces for step in trace.steps] == ["exact"]
    line = json.loads((tmp_path / "run" / "openai_chat.jsonl").read_text().splitlines()[0])
    assert line["environment"]["command"][1:6] == ["ask.py", "m", "2", "--json", "# x"]
    assert line["environment"]["cwd"] == str(tmp_path)
    assert api.asked[0].headers["authorization"] == f"Bearer {KEY}"
    for file in (tmp_path / "run").iterdir():
        assert KEY not in file.read_text(), file


def test_json_is_one_object_on_stdout(api: ScriptedApi, tmp_path: Path) -> None:
    running = record("--json", "--", sys.executable, "ask.py", "m", "1", folder=tmp_path)
    out, told = running.communicate(timeout=60)
    result = json.loads(out)
    assert running.returncode == 7
    assert (result["exit_code"], result["calls"], result["recorded"], result["errors"]) == (7, 1, 1, 0)
    assert result["files"] == [str(tmp_path / "run" / "openai_chat.jsonl")]
    assert "200\n" in told, "the command's output goes to stderr"


def test_dry_run_runs_nothing(api: ScriptedApi, tmp_path: Path) -> None:
    running = record("--dry-run", "--json", "--port", "9", "--", "touch", "here", folder=tmp_path)
    out, told = running.communicate(timeout=60)
    plan = json.loads(out)
    assert running.returncode == 0, told
    assert plan["config"]["command"] == ["touch", "here"]
    assert plan["plan"]["environment"]["OPENAI_BASE_URL"] == "http://127.0.0.1:9/openai/v1"
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--", "no-such-program-x"), "cannot run the command"),
        (("--upstream-openai", "host/v1", "--", "true"), "no base URL"),
        (("stray",), "recipe"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: tuple[str, ...], word: str) -> None:
    running = record(*arguments, folder=tmp_path)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 2
    assert word in told.splitlines()[-1]
    assert "Traceback" not in told


def test_ctrl_c_is_the_commands(api: ScriptedApi, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group: the command decides, its exit code counts, what it did is recorded."""
    wait = "try:\n print('up', flush=True); time.sleep(60)\n"
    script = f"import time\n{wait}except KeyboardInterrupt:\n print('stopped'); exit(5)\n"
    running = record("--", sys.executable, "-c", script, folder=tmp_path, start_new_session=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    os.killpg(running.pid, signal.SIGINT)
    out, told = running.communicate(timeout=30)
    assert (running.returncode, out) == (5, "stopped\n"), told


def test_sigterm_is_handed_on(api: ScriptedApi, tmp_path: Path) -> None:
    running = record(
        "--", sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)", folder=tmp_path
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=30) == 128 + signal.SIGTERM
    running.communicate()


def test_it_stays_up_until_it_is_stopped(api: ScriptedApi, tmp_path: Path) -> None:
    running = record("--json", folder=tmp_path)
    told = until(running, "Ctrl-C stops")
    [address] = [line.partition("OPENAI_BASE_URL=")[2] for line in told if "OPENAI_BASE_URL" in line]
    environment = {**os.environ, "OPENAI_BASE_URL": address}
    subprocess.run([sys.executable, "ask.py", "m", "1"], cwd=tmp_path, env=environment, capture_output=True, timeout=30)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert (running.returncode, json.loads(out)["recorded"]) == (0, 1)


def until(running: subprocess.Popen[str], word: str) -> list[str]:
    assert running.stderr is not None
    told = []
    for line in running.stderr:
        told.append(line.strip())
        if word in line:
            return told
    raise AssertionError(told)


def test_killed_it_leaves_whole_lines_and_goes_on(api: ScriptedApi, tmp_path: Path) -> None:
    """kill -9 in the middle of 500 calls; then a torn line is put at the end by hand and the same command again."""
    path = tmp_path / "run" / "openai_chat.jsonl"
    running = record("--", sys.executable, "ask.py", "m", "500", folder=tmp_path, start_new_session=True)
    end = time.monotonic() + 30
    while not path.exists() or path.read_bytes().count(b"\n") < 5:
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert all(json.loads(line) for line in path.read_bytes().splitlines()[:-1])
    before = len(path.read_bytes().splitlines())
    with path.open("ab") as file:
        file.write(b'{"request": {"mess')
    again = record("--", sys.executable, "ask.py", "m", "500", folder=tmp_path)
    again.communicate(timeout=100)
    lines = path.read_bytes().splitlines()
    assert len(lines) == before + 1 + 500
    assert json.loads(lines[-1])["status"] == 200
