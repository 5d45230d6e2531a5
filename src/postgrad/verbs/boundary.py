"""The command line's edge: an error becomes one line on stderr, an exit code and, with --json, one JSON object.

    0   done
    1   a gate said no
    2   the user's input or configuration is wrong
    3   something outside failed (network, disk, a killed worker, Ctrl-C); the same command again goes on
    70  a bug in postgrad

No traceback unless the environment variable POSTGRAD_DEBUG is set.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

import click

from postgrad.core.errors import MissingDependency, PostgradError

DEBUG = "POSTGRAD_DEBUG"
BUG = 70
_OUTSIDE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM, errno.EMFILE}


class Boundary:
    """Context manager around a verb: whatever goes wrong inside leaves as `SystemExit` with a told reason."""

    def __init__(self, *, as_json: bool, resume: str = "") -> None:
        self.as_json = as_json
        self.resume = resume

    def __enter__(self) -> Boundary:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (SystemExit, GeneratorExit, BrokenPipeError, click.exceptions.Exit)):
            return
        code, message = describe(error, resume=self.resume)
        if os.environ.get(DEBUG):
            traceback.print_exception(kind, error, trace)
        elif code == BUG:
            message += f" (a bug in postgrad; set {DEBUG}=1 for the traceback)"
        print(f"error: {message}", file=sys.stderr)
        if self.as_json:
            told = {"type": type(error).__name__, "message": message, "exit_code": code}
            print(json.dumps({"error": told}))
        raise SystemExit(code) from error


def describe(error: BaseException, *, resume: str = "") -> tuple[int, str]:
    """Exit code and one line for an error; `resume` is the command that goes on, where there is one."""
    again = f"; to go on: {resume}" if resume else "; the same command goes on"
    if isinstance(error, PostgradError):
        return error.exit_code, " ".join(str(error).split()) + (again if error.exit_code == 3 and resume else "")
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return 3, f"interrupted{again}"
    if isinstance(error, click.ClickException):
        return 2, " ".join(error.format_message().split())
    if isinstance(error, ModuleNotFoundError) and (missing := _missing(error)) is not None:
        return missing.exit_code, str(missing)
    if isinstance(error, OSError):
        return _describe_os_error(error, again)
    return BUG, f"{type(error).__name__}: {' '.join(str(error).split())}"


def _missing(error: ModuleNotFoundError) -> MissingDependency | None:
    """The extra to install for a library that is not there."""
    from postgrad.run.environment import extra_of

    library = (error.name or "").partition(".")[0]
    extra = extra_of(library)
    return MissingDependency(library, extra=extra) if extra is not None else None


def _describe_os_error(error: OSError, again: str) -> tuple[int, str]:
    reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
    place = f": {error.filename}" if error.filename else ""
    if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
        return 2, f"{reason}{place}"
    if error.errno in _OUTSIDE or isinstance(error, (ConnectionError, TimeoutError)):
        return 3, f"{reason}{place}{again}"
    return BUG, f"{type(error).__name__}: {reason}{place}"


@contextmanager
def stdout_to_stderr() -> Iterator[TextIO]:
    """Send everything that anyone prints (libraries in C and subprocesses too) to stderr; yield the true stdout."""
    true = sys.stdout
    true.flush()
    saved = _divert_descriptor(true)
    sys.stdout = sys.stderr
    try:
        yield true
    finally:
        sys.stdout = true
        if saved is not None:
            sys.stderr.flush()
            os.dup2(saved, 1)
            os.close(saved)


def _divert_descriptor(stream: TextIO) -> int | None:
    """Point file descriptor 1 at stderr and return a copy of the old one; None when stdout is not the process's own."""
    try:
        if stream.fileno() != 1:
            return None
    except (OSError, ValueError):
        return None  # captured by a test runner
    saved = os.dup(1)
    os.dup2(2, 1)
    return saved
