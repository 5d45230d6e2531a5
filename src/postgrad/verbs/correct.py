"""Say what an answer should have been: a correction of a served exchange, or of a step in a store.

With `--id` the answer is one that `postgrad serve` or `postgrad record` captured, and the correction is written beside
it for `ingest`. With `--trace` and `--step` it is a step of a store. Either way `build --recipe preferences` makes a
pair of it, and `sft` a row.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, JsonValue, model_validator

from postgrad.core.errors import ConfigError, DataError
from postgrad.run.config import Config
from postgrad.verbs.command import verb_command

if TYPE_CHECKING:
    from postgrad.core.trace import Step, Trace


class CallConfig(Config):
    """A tool call."""

    name: str
    """of the tool"""
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    """its arguments"""


class CorrectConfig(Config):
    """Which answer, and what it should have been."""

    where: Path
    """folder of captures (or a run folder of serve or record), a file of captures, or a store"""
    id: str | None = None
    """id of a captured answer (chatcmpl-...)"""
    trace: str | None = None
    """trace of a store; the beginning of its id is enough"""
    step: Annotated[int, Field(ge=0)] | None = None
    """step of that trace"""
    text: str | None = None
    """the right words"""
    calls: tuple[CallConfig, ...] = ()
    """the right calls"""
    message: Path | None = None
    """file with the right message, in chat-completions form, in place of text and calls"""
    reason: str = ""
    """why"""
    by: str = ""
    """who says so"""

    @model_validator(mode="after")
    def _complete(self) -> CorrectConfig:
        if (self.id is None) == (self.trace is None or self.step is None):
            raise ConfigError("which answer?", expected="--id, or --trace and --step", do="give one of the two")
        if (self.message is None) == (self.text is None and not self.calls):
            raise ConfigError("what is right?", expected="--text, --calls or --message", do="give the right action")
        return self

    def right(self) -> dict[str, Any]:
        """The right message in chat-completions form.

        Raises:
            DataError: the file holds none.
        """
        if self.message is None:
            calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in self.calls]
            return {"content": self.text, "tool_calls": calls}
        try:
            value = json.loads(self.message.read_bytes())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.message} is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise DataError(f"{self.message} holds no message", got=type(value).__name__, expected="a JSON object")
        return value


CONFIG = CorrectConfig


def run(config: CorrectConfig, out: Path) -> dict[str, Any]:
    """Write the correction down.

    Raises:
        ConfigError: it is not said which answer or what is right.
        DataError: there is no such answer, or the correction cannot be learnt.
        OutsideFailure: it cannot be written.
    """
    from postgrad.serve.corrections import Correction, correct, correct_step

    correction = Correction(config.id or "", config.right(), config.reason, config.by)
    if config.id is not None:
        return correct(_captures(config.where), correction)
    trace, step = _step(config)
    time = datetime.now(UTC).isoformat()
    return correct_step(config.where, trace, step, correction, time=time)


def _captures(where: Path) -> Path:
    inner = where / "captures"
    return inner if inner.is_dir() else where


def _step(config: CorrectConfig) -> tuple[Trace, Step]:
    from postgrad.traces.storage.store import Store

    assert config.trace is not None, "checked above"
    found = [trace for trace in Store(config.where).traces() if trace.id.startswith(config.trace)]
    exact = [trace for trace in found if trace.id == config.trace]
    if len(exact or found) != 1:
        what = "several traces begin so" if found else "the store has no such trace"
        raise DataError(what, got=config.trace, expected="the id of one trace")
    trace = (exact or found)[0]
    step = next((step for step in trace.steps if step.index == config.step), None)
    if step is None:
        raise DataError("the trace has no such step", got=config.step, expected=f"0 to {len(trace.steps) - 1}")
    return trace, step


def show(result: dict[str, Any]) -> str:
    """One line."""
    return f"corrected {result['id']} as {result['by']}, in {result['captured']}"


command = verb_command(
    "correct", CONFIG, run, help=__doc__.splitlines()[0], show=show, positional="where", keeps_run=False
)
