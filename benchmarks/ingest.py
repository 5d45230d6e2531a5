"""Ingest beside its floor and a peer, in one run: speed and memory on sessions grown from the tests' builders.

| case | ours | peer |
| --- | --- | --- |
| FORMAT: read | files to steps with contexts, in memory | `orjson.loads` of the lines and nothing else; `agentpile` |
| FORMAT: ingest | all of it: raw bytes, tables, secrets out, error sites | the same |
| FORMAT: second ingest | nothing has changed | the first ingest |
| memory of one log | peak, one file of many conversations | one a fifth of its size |
| memory of one session | what the peak grows by when the session is four times as long | what the file grows by |

Every arm runs in a process of its own, the arms of a case in turns, and the best of each counts; speed is bytes by CPU
second, because other work on the machine would be in the wall time. `correct` says that we found the steps that the
builder made, and that the peer, where it reads the format, found as many. Run: python benchmarks/ingest.py [--quick]
[--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from frame import ONE_THREAD, Numbers, Row, installed, least, machine, report
from sessions import FORMATS, STEPS, Session, conversation, one_session

FLOOR, PEER = "orjson", "agentpile"


def corpus(folder: Path, session: Session, megabytes: float) -> int:
    """Write sessions, a file each, until there are so many bytes; how many sessions."""
    folder.mkdir(parents=True)
    size = count = 0
    while size < megabytes * 1e6:
        data = session(count)
        (folder / f"{count:05d}.jsonl").write_bytes(data)
        size, count = size + len(data), count + 1
    return count


def one_file(path: Path, part: Session, megabytes: float) -> int:
    """Write a file, part by part, until it has so many bytes; how many parts."""
    count = 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1e6:
            file.write(part(count))
            count += 1
    return count


def floor(source: Path, work: Path) -> int:
    """Decode every line; the number of lines."""
    import orjson

    return sum(orjson.loads(line) is not None for path in files(source) for line in path.open("rb"))


def agentpile(source: Path, work: Path) -> int:
    """The peer; the number of its runs. It makes them when they are asked for."""
    import agentpile as peer

    return sum(len(run.steps) > STEPS for path in files(source) for run in peer.load(path))


def read(source: Path, work: Path) -> int:
    """Read every file; the number of steps."""
    from postgrad.traces import readers

    return sum(len(trace.steps) for path in files(source) for trace in readers.read(path).traces)


def ingest(source: Path, work: Path) -> int:
    """The verb, into the store in `work`; the number of steps."""
    from postgrad.verbs.ingest import IngestConfig, run

    result = run(IngestConfig(paths=[str(source)], store=work / "store"), work / "run")
    return sum(entry["steps"] for entry in result["sources"])


ARMS: dict[str, Callable[[Path, Path], int]] = {FLOOR: floor, PEER: agentpile, "read": read, "ingest": ingest}


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
    from postgrad.traces import readers
    from postgrad.traces.redaction import sieve

    sieve.prepare()
    if source.is_dir():
        readers.detect(source)  # asks every reader
        ARMS[name](next(files(source)), Path(tempfile.mkdtemp(dir=work)))


def _cpu() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def measured(name: str, source: Path, work: Path) -> dict[str, Any]:
    """What an arm printed."""
    command = [sys.executable, str(Path(__file__)), "--arm", name, str(source), str(work)]
    threads = ONE_THREAD | {"ARROW_NUM_THREADS": "1"}
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"arm {name} failed:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def speed_rows(name: str, folder: Path, megabytes: float, repeats: int) -> Iterator[Row]:
    """Reading, ingesting and ingesting again, against the floor and the peer."""
    session, steps, has_peer = FORMATS[name]
    source = folder / "corpus"
    sessions = corpus(source, session, megabytes)
    size = sum(path.stat().st_size for path in files(source)) / 1e6
    peers = {FLOOR: 0.333, PEER: 5.0} if has_peer else {FLOOR: 0.333}
    runs: dict[str, list[Numbers]] = {one: [] for one in (*peers, "read", "ingest", "again")}
    for turn in range(repeats):
        work = folder / f"work{turn}"
        work.mkdir()
        for one, found in runs.items():
            found.append(measured("ingest" if one == "again" else one, source, work))
        shutil.rmtree(work)
    wanted = {PEER: sessions, "read": sessions * steps, "ingest": sessions * steps, "again": sessions * steps}
    right = {one: all(run["found"] == wanted.get(one, run["found"]) for run in found) for one, found in runs.items()}
    speeds = {one: size / least(found, "cpu") for one, found in runs.items()}
    for ours in ("read", "ingest"):
        for peer, target in peers.items():
            case, correct = f"{name}: {ours}", right[ours] and right[peer]
            told = (speeds[ours], speeds[peer], peer, installed(peer), target, correct)
            yield Row(case, "MB/CPU s", *told, higher_is_better=True)
    again, first, correct = least(runs["again"], "wall"), least(runs["ingest"], "wall"), right["again"]
    yield Row(f"{name}: second ingest", "wall s", again, first, "first ingest", "", 0.02, correct, bound="<=")


def memory_rows(folder: Path, megabytes: float) -> Iterator[Row]:
    """One file of many conversations, which is not to need more when it grows; one of a single session, which may."""
    folder.mkdir(parents=True)
    small, large, right = peaks(folder, conversation, 1, (megabytes / 5, megabytes))
    case, peer = f"memory of one log, {megabytes:.0f} MB", f"{megabytes / 5:.0f} MB of it"
    yield Row(case, "peak MB", large, small, peer, "", 1.25, right, bound="<=")
    small, large, right = peaks(folder, one_session, STEPS, (megabytes / 4, megabytes))
    case, more = f"memory of one session, {megabytes:.0f} MB", {"peak_mb": round(large, 1)}
    peer = f"MB more than {megabytes / 4:.0f}"
    yield Row(case, "peak MB more", large - small, megabytes * 3 / 4, peer, "", 1.5, right, bound="<=", more=more)


def peaks(folder: Path, part: Session, steps: int, sizes: tuple[float, float]) -> tuple[float, float, bool]:
    """Peak memory of ingesting one file of parts of so many steps, at two sizes; whether all steps were found."""
    found = []
    for size in sizes:
        path, work = folder / "large.jsonl", folder / "work"
        work.mkdir()
        parts = one_file(path, part, size)
        result = measured("ingest", path, work)
        found.append((float(result["peak_mb"]), bool(result["found"] == parts * steps)))
        shutil.rmtree(work)
        path.unlink()
    (small, first), (large, second) = found
    return small, large, first and second


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller corpus, some minutes")
    parser.add_argument("--megabytes", type=float, help="size of each corpus and of the large files [500]")
    parser.add_argument("--repeats", type=int, default=2, help="turns; the best counts [2]")
    parser.add_argument("--json", action="store_true", help="machine and rows as JSON on stdout")
    parser.add_argument("--arm", nargs=3, metavar=("NAME", "SOURCE", "WORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        arm(options.arm[0], Path(options.arm[1]), Path(options.arm[2]))
        return
    if missing := [peer for peer in (FLOOR, PEER) if not installed(peer)]:
        raise SystemExit(f"the peers are not installed: {', '.join(missing)}. Run: pip install 'postgrad[bench]'")
    megabytes = options.megabytes or (20.0 if options.quick else 500.0)
    with tempfile.TemporaryDirectory() as name:
        rows = [row for kind in FORMATS for row in speed_rows(kind, Path(name) / kind, megabytes, options.repeats)]
        rows += memory_rows(Path(name) / "memory", 4 * megabytes if options.quick else megabytes)
    report(rows, machine(megabytes=megabytes), as_json=options.json)


if __name__ == "__main__":
    main()
