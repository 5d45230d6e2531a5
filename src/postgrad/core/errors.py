"""The error tree. Every error that postgrad raises on purpose is one of these.

    PostgradError
    ├── UserError        the user's input or configuration is wrong        exit code 2
    │   ├── ConfigError  a recipe or an option
    │   ├── DataError    a file, a record, a trace
    │   └── MissingDependency  an extra that is not installed
    ├── TrainingFault    a run that would silently do nothing or is broken exit code 2
    │   └── DeadChannel  a weighted channel with no items or no gradient
    └── OutsideFailure   network, disk, a killed worker                    exit code 3

A gate that says no is no error: it is a verdict (exit code 1); promoting against it is an error with the same code.
Errors are caught only at a boundary (command line, endpoint, foreign file) and turned into data there.
"""

from __future__ import annotations


class PostgradError(Exception):
    """Root of the tree; ``exit_code`` is what the command line returns for it."""

    exit_code = 2


class UserError(PostgradError):
    """The user's mistake, told in one line: what, got, expected, what to do."""

    def __init__(self, what: str, *, got: object = None, expected: object = None, do: str = "") -> None:
        parts = [what]
        if got is not None:
            parts.append(f"got {got!r}" if isinstance(got, str) else f"got {got}")
        if expected is not None:
            parts.append(f"expected {expected}")
        if do:
            parts.append(do)
        super().__init__("; ".join(" ".join(part.split()) for part in parts))


class ConfigError(UserError):
    """A recipe or an option is unknown, misspelt, conflicting or out of range."""


class DataError(UserError):
    """A file, record or trace cannot be used."""


class MissingDependency(UserError):
    """A library of an extra is not installed; the message names the command that installs it."""

    def __init__(self, library: str, *, extra: str) -> None:
        super().__init__(f"{library} is not installed", do=f"run: pip install 'postgrad[{extra}]'")


class TrainingFault(PostgradError):
    """A training run stopped because going on would prove nothing."""


class DeadChannel(TrainingFault):
    """A channel with a weight above 0 had no items, or its gradient was exactly zero."""

    def __init__(self, channel: str, why: str) -> None:
        self.channel = channel
        super().__init__(f"channel '{channel}': {why}")


class OutsideFailure(PostgradError):
    """Something outside failed; what was done is kept and the same command resumes."""

    exit_code = 3
