"""Ingest beside its floor and a peer, in one run: speed and memory on sessions grown from the tests' builders.

| case | ours | peer |
| --- | --- | --- |
| FORMAT: read | files to steps with contexts, in memory | `orjson.loads` of the lines and nothing else; `agentpile` |
| FORMAT: ingest | all of it: raw bytes, tables, secrets out, error sites | the same |
| FORMAT: second ingest | nothing has changed | the first ingest |
| memory | one log of many conversations, five times as large | the smaller log |

Every arm runs in a process of its own; speed is bytes by CPU second, because other work on the machine would be in the
wall time. `ratio` is ours by peer (for memory: large by small); `correct` says that we found the steps that the builder
made, and that the peer, where it reads the format, found as many. Run: python benchmarks/ingest.py [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
_TEXT = (
    "the file test error value return import class module path function request model token data list number config "
    "result line read write check build run name type if else for while with open self none true false assert"
)
WORDS = _TEXT.split()
STEPS = 60  # in a session

Session = Callable[[int], bytes]


def prose(random_: random.Random, count: int) -> str:
    """So many words."""
    return " ".join(random_.choices(WORDS, k=count))


def code(random_: random.Random, lines: int) -> str:
    """A tool's output: lines of a program."""
    pick, number = random_.choice, random_.randrange
    return "\n".join(
        f"    {pick(WORDS)}_{number(999)} = {pick(WORDS)}({pick(WORDS)}, {number(9999)})  # {prose(random_, 4)}"
        for _ in range(lines)
    )


def claude_session(seed: int) -> bytes:
    """A session of `STEPS` answers, each with a call and its result; every tenth call fails."""
    from unit.traces.formats.claude_file import ClaudeFile, call, text

    random_ = random.Random(seed)
    file = ClaudeFile(session=f"00000000-0000-4000-8000-{seed:012d}")
    file.user(prose(random_, 40))
    for step in range(STEPS):
        name = f"toolu_{seed}_{step}"
        command = f"cat src/{random_.choice(WORDS)}_{random_.randrange(99)}.py"
        file.assistant(f"msg_{seed}_{step}", text(prose(random_, 30)), call(name, command=command))
        failed = random_.random() < 0.1
        file.result(
            name, ("Exit code 1\n" if failed else "") + code(random_, random_.randrange(5, 80)), is_error=failed
        )
        file.row("progress", data={"type": "bash_progress", "output": prose(random_, 20)})
    names = {row["uuid"]: f"{seed:08d}-{place:04d}-4000-8000-000000000000" for place, row in enumerate(file.rows)}
    for row in file.rows:
        row |= {"uuid": names[row["uuid"]], "parentUuid": names.get(row["parentUuid"]), "cwd": "/home/u/project"}
    return file.data


def codex_session(seed: int) -> bytes:
    """The same shape as a Codex rollout."""
    from unit.traces.formats.codex_file import CodexFile

    random_ = random.Random(seed)
    file = CodexFile(f"00000000-0000-4000-8000-{seed:012d}")
    file.user(prose(random_, 40))
    for step in range(STEPS):
        file.thinks(prose(random_, 30))
        command = json.dumps({"command": ["bash", "-lc", f"cat {random_.choice(WORDS)}.py"]})
        file.calls(f"call_{seed}_{step}", arguments=command)
        failed = random_.random() < 0.1
        output = {"output": code(random_, random_.randrange(5, 80)), "metadata": {"exit_code": int(failed)}}
        file.output(f"call_{seed}_{step}", json.dumps(output))
        file.tokens(1000 + step)
    file.says("Done.")
    return file.data


FORMATS: dict[str, tuple[Session, int, bool]] = {
    "claude_code": (claude_session, STEPS, True),
    "codex_cli": (codex_session, STEPS + 1, False),
}
"""Builder, steps in a session, and whether the peer reads the format."""


def corpus(folder: Path, session: Session, megabytes: float) -> int:
    """Write sessions, a file each, until there are so many bytes; how many sessions."""
    folder.mkdir(parents=True)
    size = count = 0
    while size < megabytes * 1e6:
        data = session(count)
        (folder / f"{count:05d}.jsonl").write_bytes(data)
        size, count = size + len(data), count + 1
    return count


def conversations(path: Path, megabytes: float) -> int:
    """One log of request and response lines, every one a conversation; how many."""
    random_ = random.Random(0)
    size = count = 0
    with path.open("wb") as file:
        while size < megabytes * 1e6:
            ask = [{"role": "user", "content": f"{count} {code(random_, 20)}"}]
            answer = {"role": "assistant", "content": prose(random_, 60)}
            choices = [{"index": 0, "message": answer, "finish_reason": "stop"}]
            row = {"request": {"model": "m", "messages": ask}, "response": {"model": "m", "choices": choices}}
            size, count = size + file.write(json.dumps(row).encode() + b"\n"), count + 1
    return count


def floor(source: Path, work: Path) -> int:
    """Decode every line; the number of lines."""
    import orjson

    return sum(orjson.loads(line) is not None for path in files(source) for line in path.open("rb"))


def read(source: Path, work: Path) -> int:
    """Read every file; the number of steps."""
    from postgrad.traces import readers

    return sum(len(trace.steps) for path in files(source) for trace in readers.read(path).traces)


def ingest(source: Path, work: Path) -> int:
    """The verb, into the store in `work`; the number of steps."""
    from postgrad.verbs.ingest import IngestConfig, run

    result = run(IngestConfig(paths=[str(source)], store=work / "store"), work / "run")
    return sum(entry["steps"] for entry in result["sources"])


def agentpile(source: Path, work: Path) -> int:
    """The peer; the number of its runs. It makes them when they are asked for."""
    import agentpile as peer

    return sum(len(run.steps) > STEPS for path in files(source) for run in peer.load(path))


ARMS: dict[str, Callable[[Path, Path], int]] = {"orjson": floor, "agentpile": agentpile, "read": read, "ingest": ingest}


def files(source: Path) -> Iterator[Path]:
    """The files of a corpus."""
    yield from sorted(source.glob("*.jsonl")) if source.is_dir() else [source]


def arm(name: str, source: Path, work: Path) -> None:
    """Run one arm in this process and print what it took. Importing libraries is not counted, nor is a first file."""
    _warm(name, source, work)
    before, started = _cpu(), time.perf_counter()
    found = ARMS[name](source, work)
    took = {"cpu": _cpu() - before, "wall": time.perf_counter() - started, "found": found}
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({**took, "peak_mb": peak / 1024}))


def _warm(name: str, source: Path, work: Path) -> None:
    """Load the libraries, and read a first file where there are many."""
    from postgrad.traces import readers, redact_sieve

    redact_sieve.prepare()
    if source.is_dir():
        readers.detect(source)  # asks every reader
        ARMS[name](next(files(source)), Path(tempfile.mkdtemp(dir=work)))


def _cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(name: str, source: Path, work: Path) -> dict[str, Any]:
    """What an arm printed."""
    command = [sys.executable, str(Path(__file__)), "--arm", name, str(source), str(work)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "ARROW_NUM_THREADS"), "1")
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"arm {name} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def row(case: str, unit: str, ours: float, peer: float, **about: Any) -> dict[str, Any]:
    """One line of the result. `ratio`: ours by peer."""
    numbers = {"ours": round(ours, 3), "peer": round(peer, 3), "ratio": round(ours / peer, 3)}
    return {"case": case, "unit": unit, **numbers, **about}


def speed_rows(name: str, folder: Path, megabytes: float) -> Iterator[dict[str, Any]]:
    """Reading, ingesting and ingesting again, against the floor and the peer."""
    session, steps, has_peer = FORMATS[name]
    source = folder / "corpus"
    sessions = corpus(source, session, megabytes)
    size = sum(path.stat().st_size for path in files(source)) / 1e6
    peers = {"orjson": ">= 0.333", **({"agentpile": ">= 5"} if has_peer else {})}
    arms = {arm: measured(arm, source, folder) for arm in (*peers, "read", "ingest")}
    again = measured("ingest", source, folder)
    right = {"orjson": True, "agentpile": not has_peer or arms["agentpile"]["found"] == sessions}
    for ours in ("read", "ingest"):
        for peer, target in peers.items():
            correct = arms[ours]["found"] == sessions * steps and right[peer]
            about: dict[str, Any] = {
                "peer_name": peer,
                "peer_version": version(peer),
                "target": target,
                "correct": correct,
            }
            speeds = size / arms[ours]["cpu"], size / arms[peer]["cpu"]
            yield row(f"{name}: {ours}", "MB/CPU s", *speeds, **about)
    correct = again["found"] == arms["ingest"]["found"]
    about = {"peer_name": "first ingest", "peer_version": "", "target": "<= 0.02", "correct": correct}
    yield row(f"{name}: second ingest", "wall s", again["wall"], arms["ingest"]["wall"], **about)


def memory_rows(folder: Path, small: float, large: float) -> Iterator[dict[str, Any]]:
    """Peak memory of ingesting one file, and of the same five times as large."""
    folder.mkdir(parents=True)
    peaks, right = [], True
    for megabytes in (small, large):
        path, work = folder / f"{megabytes:.0f}.jsonl", folder / f"work{megabytes:.0f}"
        count = conversations(path, megabytes)
        work.mkdir()
        result = measured("ingest", path, work)
        peaks.append(result["peak_mb"])
        right = right and result["found"] == count
        shutil.rmtree(work)
        path.unlink()
    about = {"peer_name": f"{small:.0f} MB instead of {large:.0f}", "peer_version": "", "target": "<= 1.25"}
    yield row("one log of many conversations: memory", "peak MB", peaks[1], peaks[0], **about, correct=right)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller corpus, some minutes")
    parser.add_argument(
        "--megabytes", type=float, help="size of each corpus [500]; the logs of the memory rows: a fifth"
    )
    parser.add_argument("--json", action="store_true", help="the rows as JSON on stdout")
    parser.add_argument("--arm", nargs=3, metavar=("NAME", "SOURCE", "WORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        arm(options.arm[0], Path(options.arm[1]), Path(options.arm[2]))
        return
    if missing := [peer for peer in ("orjson", "agentpile") if find_spec(peer) is None]:
        raise SystemExit(f"the peers are not installed: {', '.join(missing)}. Run: pip install 'postgrad[bench]'")
    megabytes = options.megabytes or (20.0 if options.quick else 500.0)
    small = 10.0 if options.quick else megabytes / 5
    with tempfile.TemporaryDirectory() as name:
        rows = [line for kind in FORMATS for line in speed_rows(kind, Path(name) / kind, megabytes)]
        rows += memory_rows(Path(name) / "memory", small, 5 * small)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for line in rows:
            print(
                "{case:40} {ours:9} {unit:9} {ratio:8} x {peer_name} (target {target}) correct: {correct}".format(
                    **line
                )
            )


if __name__ == "__main__":
    main()
