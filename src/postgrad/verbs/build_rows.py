"""From the inputs of a build to rows: which builder makes which kind."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from postgrad.core.canonical import content_id
from postgrad.core.errors import ConfigError, DataError
from postgrad.core.trace import Trace
from postgrad.core.words import counted
from postgrad.run.progress import note, track
from postgrad.signals.agreement import GOLD, Agreement
from postgrad.signals.error_sites.site import LEARNABLE
from postgrad.signals.error_sites.sites import Site, find_sites
from postgrad.signals.hints.hinted import build_hinted
from postgrad.signals.hints.layers import Hints
from postgrad.signals.hints.siblings import Siblings
from postgrad.signals.rows.choices import build_choices
from postgrad.signals.rows.distillation import Levels, build_distilled
from postgrad.signals.rows.human import StoredCorrection, read_corrections, with_corrections
from postgrad.signals.rows.imitation import build_taken, build_verified
from postgrad.signals.rows.made import Made
from postgrad.signals.rows.outcome_pairs import build_outcomes
from postgrad.signals.rows.pair_judge import judged
from postgrad.signals.rows.preferences import BY_GOLD, MAJORITY, Choice, build_imitations, build_pairs
from postgrad.signals.rows.records import read_lines
from postgrad.signals.rows.recovery_rows import build_fixed, build_recoveries
from postgrad.signals.rows.soft_targets import load_vocabulary
from postgrad.signals.rows.user_rows import build_corrected, build_corrections, build_refined
from postgrad.teachers.replay import ReplayedStep
from postgrad.verbs.build_config import BuildConfig, FromStore, Kind
from postgrad.verbs.build_models import Models

if TYPE_CHECKING:
    from postgrad.signals.hints.effect import EffectGate

Redact = Callable[[ReplayedStep], ReplayedStep]
OfTrace = Callable[[Trace, list[Site]], Iterable[Made]]
_UNVOTED: dict[Kind, str] = {"preference": "low_agreement", "hinted": "no_hint"}
"""Why the kinds that need a majority give no row where only one teacher answered."""
_MISTAKES: dict[FromStore, Collection[str]] = {"hinted": LEARNABLE, "recovery": ("real",), "fixed": ("real",)}
"""The verdicts of the sites that these kinds learn from."""


@dataclass
class Rows:
    """Makes the rows of a build, and keeps count of what they rest on."""

    config: BuildConfig
    models: Models
    redact: Redact
    levels: Levels = field(default_factory=Levels)
    made: Counter[Kind] = field(default_factory=Counter)
    unvoted: Counter[Kind] = field(default_factory=Counter)
    passed_over: dict[Kind, Counter[str]] = field(default_factory=dict)

    def of(self, kinds: list[Kind]) -> Iterator[tuple[Kind, Made]]:
        """Every row or reason, with its kind.

        Raises:
            ConfigError: nobody gave what is to be imitated, or a model cannot be made.
            DataError: an input is missing or broken, a judge judges by place, or a tokenizer is refused.
        """
        for kind in kinds:
            for one in self._from_replays(kind):
                yield kind, self._counted(kind, one)
        of_trace = self._of_trace(kinds)
        if of_trace:
            yield from self._from_traces(of_trace)
        if "outcome" in kinds:
            yield from (("outcome", one) for one in build_outcomes(self._traces))
        yield from (("taken", one) for one in self._mixed_in())
        self._tell_of_an_only_teacher(kinds)

    @cached_property
    def replayed(self) -> list[ReplayedStep]:
        """The replayed steps, redacted before actions are compared, so that a secret is one mark in all of them."""
        path = self.config.replays
        if path is None:
            return []
        if not path.is_file():
            do = "run: postgrad replay STORE --teachers T.yaml -o OUT (a plan answers nothing)"
            raise DataError("no replay here", got=str(path), expected="a replay's folder, or its replayed.jsonl", do=do)
        steps = [self.redact(step) for step in read_lines(path, ReplayedStep)]
        if not steps:
            raise DataError("no step was replayed", got=str(path), do="replay first: postgrad replay STORE -o OUT")
        self._of_this_store(steps, path)
        return steps

    def _of_this_store(self, steps: Sequence[ReplayedStep], path: Path) -> None:
        """Rows of another store's traces are seldom what was meant."""
        from postgrad.traces.storage.store import Store

        if self.config.store is None:
            return
        known = Store(self.config.store).ids()
        strange = sum(step.trace not in known for step in steps)
        if strange == len(steps):
            told = f"none of its {counted(strange, 'step')} is of a trace in {self.config.store}"
            raise DataError(f"this is the replay of another store: {told}", got=str(path), do="give the store it is of")
        if strange:
            note(f"{counted(strange, 'step')} of {path} are of traces that {self.config.store} does not hold")

    def costs(self, pairs: int) -> dict[str, object]:
        """US dollars: of the answers whenever they were bought, by teacher and per pair, and of models asked here.

        `pairs` are those that answers were bought for.
        """
        teachers: dict[str, float] = {}
        for step in self.replayed:
            for name, said in step.answers.items():
                teachers[name] = teachers.get(name, 0.0) + (said.answer.cost or 0.0)
        total = round(math.fsum(teachers.values()), 9)
        return {
            "replays": total,
            "teachers": {name: round(cost, 9) for name, cost in teachers.items()},
            "per_pair": round(total / pairs, 9) if pairs else None,
            "models": round(self.models.cost(), 9),
        }

    def _from_replays(self, kind: Kind) -> Iterable[Made]:
        if kind == "preference":
            return self._pairs()
        if kind == "sft":
            return build_imitations(self.replayed, self._choice(alone=True))
        return self._distilled() if kind == "distill" else ()

    def _pairs(self) -> Iterable[Made]:
        pairs = build_pairs(self.replayed, self._choice(alone=False))
        judges = self.models.judges()
        return judged(list(pairs), judges) if judges else pairs

    def _distilled(self) -> Iterator[Made]:
        config = self.config.distill
        vocabulary = load_vocabulary(config.student) if config.student else None
        self.levels = Levels(vocabulary, config.mismatch)
        yield from build_distilled(self.replayed, self._choice(alone=True), self.levels)
        others = {reason: count for reason, count in self.levels.counts.items() if reason != "soft"}
        if others:
            told = ", ".join(f"{count} {reason}" for reason, count in others.items())
            note(f"distill: {sum(others.values())} rows teach the sequence alone, without soft targets ({told})")

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for step in self.replayed for name in step.answers))

    def _tell_of_an_only_teacher(self, kinds: list[Kind]) -> None:
        """What its word is taken for, what was lost because it is no majority, and where it only talks."""
        alone = [kind for kind in kinds if kind in ("sft", "distill")]
        voted = [kind for kind in kinds if self.unvoted[kind]]
        if len(self._names) != 1:
            return
        if alone:
            self._tell_of_words_for_calls(alone)
        if self.config.imitate or not (alone or voted):
            return
        (name,) = self._names
        told = [f"its own actions are imitated ({', '.join(alone)})"] if alone else []
        if voted:
            told.append(f"it is no majority ({', '.join(voted)}): --imitate {name} takes its word there too")
        note(f"one teacher, {name}: {'; '.join(told)}")

    def _tell_of_words_for_calls(self, kinds: Sequence[Kind]) -> None:
        """Such rows are kept, for to stop calling may be right; a weak teacher's teach a student to stop too early."""
        choice = self._choice(alone=True)
        called = (choice.of(step) for step in self.replayed if step.action.tool_calls)
        talks = sum(isinstance(said, Agreement) and not said.action.tool_calls for said in called)
        if talks:
            where = f"at {counted(talks, 'step')} where the student called a tool {self._names[0]} answers in words"
            note(f"{where}: these rows are kept ({', '.join(kinds)}), look at them if it should have called one")

    def _choice(self, *, alone: bool) -> Choice:
        """Whose action counts; with `alone` that of an only teacher, where nobody is named."""
        names = self._names
        said = self.config.imitate or (names[0] if alone and len(names) == 1 else MAJORITY)
        gold = any(one.kind == GOLD for step in self.replayed for one in step.answers.values())
        if said == BY_GOLD and not gold:
            raise ConfigError("no teacher of these replays gave gold answers", got=", ".join(names))
        if said not in (MAJORITY, BY_GOLD, *names):
            expected = ", ".join([MAJORITY, BY_GOLD, *names])
            raise ConfigError("nobody of that name answered in these replays", got=said, expected=expected)
        return Choice(said, self.models.same_text())

    def _traces(self) -> Iterator[Trace]:
        """The store's traces, with what humans corrected since they were ingested."""
        from postgrad.traces.storage.store import Store

        store = self.config.store or Path()
        for trace in Store(store).traces():
            yield with_corrections(trace, self._corrections.get(trace.id, ()))

    @cached_property
    def _corrections(self) -> dict[str, list[StoredCorrection]]:
        return read_corrections(self.config.store or Path())

    def _of_trace(self, kinds: list[Kind]) -> dict[FromStore, OfTrace]:
        known: dict[FromStore, OfTrace] = {
            "recovery": build_recoveries,
            "fixed": build_fixed,
            "verified": lambda trace, sites: build_verified(trace),
            "taken": build_taken,
            "correction": build_corrections,
            "corrected": build_corrected,
            "refined": build_refined,
            "choice": lambda trace, sites: build_choices(trace),
        }
        if "hinted" in kinds:
            hints, gate = self._hints(), self.gate
            known["hinted"] = lambda trace, sites: build_hinted(trace, sites, hints, gate=gate)
        return {kind: builder for kind, builder in known.items() if kind in kinds}

    def _from_traces(self, builders: dict[FromStore, OfTrace]) -> Iterator[tuple[Kind, Made]]:
        for trace in track(self._traces(), "build"):
            if trace.for_evaluation:
                yield from ((kind, Made(dropped="evaluation")) for kind in builders)
                continue
            sites = find_sites(trace)
            for kind, builder in builders.items():
                found = list(builder(trace, sites))
                self._pass_over(kind, trace, sites, looked_at=len(found))
                yield from ((kind, self._counted(kind, one)) for one in found)

    def _pass_over(self, kind: FromStore, trace: Trace, sites: Sequence[Site], *, looked_at: int) -> None:
        """Count what a kind does not look at: steps that no verifier judged; steps without a site, sites of others."""
        if kind == "verified":
            unjudged = Counter({"steps without a verifier's word": len(trace.steps) - looked_at})
            self.passed_over.setdefault(kind, Counter()).update(+unjudged)
            return
        wanted = _MISTAKES.get(kind)
        if wanted is None:
            return
        other = Counter(f"{site.verdict} sites" for site in sites if site.verdict not in wanted)
        other["sites that no later call can put right"] = len(sites) - other.total() - looked_at
        other["steps without a site"] = len({step.index for step in trace.steps} - {site.step for site in sites})
        self.passed_over.setdefault(kind, Counter()).update(+other)

    def _counted(self, kind: Kind, one: Made) -> Made:
        self.made[kind] += one.record is not None
        self.unvoted[kind] += one.dropped == _UNVOTED.get(kind, "")
        return one

    def _hints(self) -> Hints:
        config = self.config.hints
        return Hints(
            config.layers,
            {(step.trace, step.step): step for step in self.replayed},
            self._choice(alone=False) if self.replayed else Choice(),
            config.literal,
            self.models.writer(),
            Siblings(self._traces()) if "sibling" in config.layers else None,
        )

    @cached_property
    def gate(self) -> EffectGate | None:
        """The effect gate of hints, None where no student is named."""
        config = self.config.hints
        if not config.student:
            return None
        from postgrad.models.policy import load_policy
        from postgrad.signals.hints.effect import EffectGate

        return EffectGate(load_policy(config.student), config.least_gain)

    def _mixed_in(self) -> Iterator[Made]:
        """Rows of good actions beside corrections, so that what was right is kept; drawn evenly, always the same."""
        wanted = round(self.config.mix * (self.made["corrected"] + self.made["refined"]))
        if wanted == 0:
            return
        rows = (
            (content_id([trace.id, one.record.provenance.step]), one)
            for trace in self._traces()
            if not trace.for_evaluation
            for one in build_taken(trace, find_sites(trace))
            if one.record is not None
        )
        yield from (one for _, one in heapq.nsmallest(wanted, rows, key=lambda row: row[0]))
