"""Fidelity: how exactly is it known what the model saw? Levels, the words for what is missing, and how to fill gaps.

| level | what is known |
| --- | --- |
| `exact` | the request as it was sent |
| `exact-messages` | all messages; tools or sampling parameters may be missing |
| `reconstructed` | rebuilt by the application's own rules; a few injected texts are unknown |
| `partial` | a system prompt, tools, or earlier messages are missing, or texts were cut |
| `none` | the action alone |

Readers set the level of each step and what is missing, in the words of `MISSING`. `complete` then fills what can be
filled: the system prompt and the tool schemas from a catalogue, tool schemas from observed calls where there is nothing
better (marked `inferred`, and still missing), and checks the sum: the provider's own count of input tokens against the
rebuilt context. A filled context is never better than `reconstructed`: nobody saw the request. Results that the
application cut (`cut_marks`) are told as events: the model saw them so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from postgrad.core.message import Message
from postgrad.core.prefix import Renaming
from postgrad.core.trace import Fidelity, Request, Step, Trace
from postgrad.teachers.money.tokens import Count, by_tokenizer
from postgrad.traces.contexts.catalogue import Catalogue, Filling
from postgrad.traces.contexts.cut_marks import with_cut_outputs
from postgrad.traces.contexts.inferred_tools import infer_tools
from postgrad.traces.contexts.size import LARGEST_GAP, ContextSizes

SYSTEM_PROMPT = "system prompt"
TOOL_SCHEMAS = "tool schemas"
MESSAGES = "messages"
INPUT_TOKENS = "input tokens do not add up"

MISSING: Mapping[str, str] = {
    SYSTEM_PROMPT: "the instructions before the conversation",
    TOOL_SCHEMAS: "the definitions of the tools; `inferred` ones stand in for them",
    "tools": "calls were made, but no tool definition was captured",
    "sampling parameters": "temperature and the like",
    MESSAGES: "the conversation before the step",
    "earlier messages": "the log begins, or was cut, in the middle of the conversation",
    "answer": "what the model said",
    "reasoning": "what the model thought; that it did is known",
    "wording of attachments": "the application put files or reminders into the context; their exact text is not stored",
    "which tool results were cleared": "old results were taken out of the context; which ones is not stored",
    "texts added at run time": "environment notes, reminders and the like",
    "results as the agent formats them": "results are stored raw; the model saw them in a frame",
    "exact compacted history": "after a compaction only its summary is stored",
    "exact requests": "a trajectory was logged, not the requests that it was made of",
    "the messages as they were sent": "only what the user saw is stored",
    "what the history processors changed": "old observations may have been shortened for the model",
    INPUT_TOKENS: f"the provider counted over {LARGEST_GAP:.0%} more or fewer input tokens than the rebuilt context"
    f" has",
}
"""The words that `Request.missing` is made of, and what each means."""

_SMALL = frozenset(
    {
        *("wording of attachments", "texts added at run time", "results as the agent formats them"),
        *("sampling parameters", INPUT_TOKENS),
    }
)
"""What may still be missing from a context that is called reconstructed."""


def complete(trace: Trace, catalogue: Catalogue | None = None) -> Trace:
    """`trace` with its gaps filled as far as that can be done, and the rest named.

    Steps of `exact` and `none` fidelity stay as they are. The trace's id does not change.

    Raises:
        ConfigError: a tokenizer of the catalogue cannot be read.
        MissingDependency: the catalogue names a tokenizer and the library that reads it is not installed.
    """
    trace = with_cut_outputs(trace)
    if all(step.request.fidelity in ("exact", "none") for step in trace.steps):
        return trace
    filler = _Filler(trace, catalogue or Catalogue())
    filled = msgspec.structs.replace(trace, steps=tuple(map(filler.fill, trace.steps)), messages=filler.messages)
    return _checked(filled, filler.tokenizer())


def fidelity_counts(traces: Iterable[Trace]) -> dict[str, int]:
    """How many steps are known how well."""
    found: dict[str, int] = {}
    for trace in traces:
        for step in trace.steps:
            found[step.request.fidelity] = found.get(step.request.fidelity, 0) + 1
    return found


class _Filler:
    """Fills the steps of one trace; the pool gains the catalogue's system prompts."""

    def __init__(self, trace: Trace, catalogue: Catalogue) -> None:
        self._trace, self._catalogue = trace, catalogue
        self.messages = dict(trace.messages)
        self._inferred = infer_tools(trace)
        self._same = Renaming(lambda one: one)
        self._found: dict[tuple[str | None, str], Filling | None] = {}

    def fill(self, step: Step) -> Step:
        """The step with the catalogue's texts in its request."""
        request = step.request
        if request.fidelity in ("exact", "none"):
            return step
        if not request.messages:
            missing_all = tuple(dict.fromkeys((*request.missing, MESSAGES)))
            bare = msgspec.structs.replace(request, fidelity="none", missing=missing_all)
            return msgspec.structs.replace(step, request=bare)
        filling = self._filling(step)
        missing = set(request.missing)
        if filling is not None and filling.system is not None and not self._has_system(request):
            before = (self._system(filling.system),)
            request = msgspec.structs.replace(request, messages=self._same.of(request.messages, before=before))
            missing -= {SYSTEM_PROMPT}
        if filling is not None and filling.tools is not None and not request.tools:
            request = msgspec.structs.replace(request, tools=filling.tools)
            missing -= {TOOL_SCHEMAS, "tools"}
        elif not request.tools and self._inferred:
            request = msgspec.structs.replace(request, tools=self._inferred)
        kept = tuple(word for word in request.missing if word in missing)
        lifted = _lifted(request.fidelity, before=request.missing, after=kept)
        return msgspec.structs.replace(step, request=msgspec.structs.replace(request, missing=kept, fidelity=lifted))

    def tokenizer(self) -> Count | None:
        """The tokenizer of the trace's main model, where the catalogue names one."""
        paths = (filling.tokenizer for filling in self._found.values() if filling is not None)
        path: Path | None = next((path for path in paths if path is not None), None)
        return None if path is None else by_tokenizer(path)

    def _filling(self, step: Step) -> Filling | None:
        model = next((candidate.model for candidate in step.candidates if candidate.chosen), None)
        key = (model, step.kind)
        if key not in self._found:
            self._found[key] = self._catalogue.find(self._trace.source, model=model, kind=step.kind)
        return self._found[key]

    def _has_system(self, request: Request) -> bool:
        return SYSTEM_PROMPT not in request.missing and self.messages[request.messages[0]].role == "system"

    def _system(self, text: str) -> str:
        message = Message.of("system", text)
        self.messages.setdefault(message.id, message)
        return message.id


def _lifted(level: Fidelity, *, before: tuple[str, ...], after: tuple[str, ...]) -> Fidelity:
    """Partial only for want of what was now filled: reconstructed. Cut texts and lost messages stay partial."""
    filled = set(before) - set(after)
    return "reconstructed" if level == "partial" and filled and set(after) <= _SMALL else level


def _checked(trace: Trace, count: Count | None) -> Trace:
    """Flag the steps whose logged input tokens do not fit their context; flags of an earlier run are renewed."""
    gaps = ContextSizes(trace, count).gaps()
    return msgspec.structs.replace(
        trace, steps=tuple(_flagged(step, gaps.get(step.index, 0.0)) for step in trace.steps)
    )


def _flagged(step: Step, gap: float) -> Step:
    request = step.request
    if request.fidelity in ("exact", "none"):
        return step
    words = tuple(word for word in request.missing if word != INPUT_TOKENS)
    if abs(gap) > LARGEST_GAP:
        words = (*words, INPUT_TOKENS)
    if words == request.missing:
        return step
    return msgspec.structs.replace(step, request=msgspec.structs.replace(request, missing=words))
