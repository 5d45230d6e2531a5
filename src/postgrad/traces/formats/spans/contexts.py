"""What the model was given at every step, where a span says all of it, only what was new, or nothing.

Some tracers write the messages of the first call only, some only those that the server did not know yet. Then the
context is rebuilt from the call before it of the same agent: its context, its answer, and the results of its tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postgrad.core.message import Message
from postgrad.core.trace import Fidelity
from postgrad.traces.formats.shapes.said import RawResult, Said, settle
from postgrad.traces.formats.spans.results import Runs
from postgrad.traces.formats.spans.span import LLMCall, Span


@dataclass
class Draft:
    """A step before results and messages are settled."""

    span: Span
    call: LLMCall
    context: list[Said]
    fidelity: Fidelity
    missing: tuple[str, ...]

    def settled(self, *, answer: int = 0) -> list[Message]:
        """The context and one of the answers, with call ids that are unique in both."""
        said = self.call.answers[answer] if self.call.answers else Said("assistant")
        return settle([*self.context, Said("assistant", said.parts)], record=self.span.record)


def drafts_of(steps: Sequence[Span], agents: Mapping[str, str], runs: Runs) -> list[Draft]:
    """Steps with their contexts, rebuilt where the span does not say all of them.

    Args:
        steps: the spans of the calls, in order.
        agents: by span id the agent that made the call; one agent's calls go on from one another.
        runs: the tools' own spans; they stay there for others to take.
    """
    drafts: list[Draft] = []
    peek = Runs(runs.unused[:])
    for span in steps:
        call = span.call or LLMCall()
        own = [draft for draft in drafts if agents[draft.span.id] == agents[span.id]]
        context, fidelity = call.context, call.fidelity
        before = _gone_on_from(context, own)
        if before is not None and before.fidelity != "none":
            new = _ran(before, peek) if context is None else _new(context, before.context)
            context, fidelity = [*before.context, *_answer(before), *new], "reconstructed"
        missing = list(call.missing) if context is not None else ["messages"]
        calls = any(said.calls for said in [*(context or ()), *call.answers])
        missing += ["tools"] if calls and not call.tools else []
        missing += ["answer"] if not call.answers else []
        known: Fidelity = "none" if context is None or not call.answers else fidelity
        drafts.append(Draft(span, call, context or [], known, tuple(dict.fromkeys(missing))))
    return drafts


def _new(context: list[Said], before: list[Said]) -> list[Said]:
    """A context without the instructions that were given before."""
    return [said for said in context if said.role not in ("system", "developer") or said not in before]


def _answer(draft: Draft) -> list[Said]:
    return [Said("assistant", draft.call.answers[0].parts)] if draft.call.answers else []


def _gone_on_from(context: list[Said] | None, earlier: list[Draft]) -> Draft | None:
    """The step whose history a context silently goes on with: the last one, or the one whose calls it only answers."""
    if context is None:
        return earlier[-1] if earlier else None
    spoken = [said for said in context if said.role not in ("system", "developer")]
    first = spoken[0].parts if spoken else []
    answered = {part.id for part in first if isinstance(part, RawResult)}
    if not answered or any(said.calls for said in spoken):
        return None
    return next(
        (d for d in reversed(earlier) if answered & {c.id for said in d.call.answers for c in said.calls}), None
    )


def _ran(draft: Draft, runs: Runs) -> list[Said]:
    """The results of a step's calls as its tools' spans show them."""
    said: list[Said] = []
    for call in draft.call.answers[0].calls if draft.call.answers else []:
        run = runs.take(call, after=draft.span.start)
        if run is not None and run.tool is not None:
            said.append(Said("tool", [RawResult(call.id, call.name, run.tool.result or "", run.tool.is_error)]))
    return said
