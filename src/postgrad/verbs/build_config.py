"""What `postgrad build` makes, from what, and with whose help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator

from postgrad.core.errors import ConfigError
from postgrad.run.config import Config
from postgrad.signals.hints.layers import Layer
from postgrad.signals.rows.distillation import Mismatch
from postgrad.verbs.teacher_config import TeacherConfig, read_teachers

REPLAYED = "replayed.jsonl"
Recipe = Literal["preferences", "hints", "sft", "distill"]
FromReplays = Literal["sft", "preference", "distill"]
FromStore = Literal[
    "recovery", "fixed", "hinted", "verified", "taken", "correction", "corrected", "refined", "choice", "outcome"
]
Kind = Literal[FromReplays, FromStore]
RECIPES: dict[Recipe, tuple[Kind, ...]] = {
    "preferences": ("preference", "recovery", "correction", "choice", "outcome"),
    "hints": ("hinted",),
    "sft": ("sft", "fixed", "corrected", "refined"),
    "distill": ("distill",),
}
"""The kinds of rows that belong together."""
_DEFAULT: tuple[Kind, ...] = ("sft", "preference", "recovery", "hinted")


class HintsConfig(Config):
    """How hints are found and checked."""

    layers: tuple[Layer, ...] = ("template", "environment", "recovery", "teacher", "sibling")
    """who may speak, always in this order, the writer before the siblings; the first that answers wins"""
    literal: bool = False
    """let recovery and teacher tell the better action itself"""
    student: str = ""
    """model under which every hint is measured; a hint without effect is dropped [not measured]"""
    least_gain: float = 0.0
    """nats a token that a hint must be good for"""


class DistillConfig(Config):
    """Soft targets."""

    student: str = ""
    """model whose tokenizer the targets are for; without it rows teach sequences alone"""
    mismatch: Mismatch = "sequence"
    """a teacher with other tokens: teach its sequences alone, or refuse"""


class ModelsConfig(Config):
    """Models that are asked while building; none are unless they stand here."""

    teachers: tuple[TeacherConfig, ...] = ()
    """who they are: a list as for `replay`, or the path of a file with one"""
    judges: tuple[str, ...] = ()
    """names of two or more, of two families: a pair of the teachers' is kept when all prefer the chosen action"""
    families: dict[str, str] = Field(default_factory=dict)
    """judge's name: make of its model [the letters that its model's name begins with]"""
    text: str = ""
    """name of the one that says whether two answers in words mean the same (same_text: model)"""
    writer: str = ""
    """name of the one that writes hints (hints.layers: writer)"""
    budget: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """most US dollars that may be paid in this run folder"""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """calls at once"""
    local_only: bool = False
    """refuse models over a network"""
    prices: Path | None = None
    """price file that replaces the shipped one"""

    @field_validator("teachers", mode="before")
    @classmethod
    def _teachers_of_a_file(cls, value: Any) -> Any:
        return read_teachers(Path(value)).teachers if isinstance(value, str | Path) else value


class BuildConfig(Config):
    """What to build from what."""

    store: Path | None = None
    """trace store"""
    replays: Path | None = None
    """run folder of a replay, or its replayed.jsonl"""
    recipe: Recipe | None = None
    """rows that belong together: pairs, hinted rows, rows to imitate, rows to distil"""
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] | None = None
    """which rows to make [the recipe's, else sft, preference, recovery and hinted, as far as the inputs go]"""
    imitate: str = ""
    """whose action is chosen: majority, gold, or a teacher's name [majority; for sft and distill an only teacher]"""
    same_text: str = "exact"
    """when two answers in words are the same: exact, words, model (models.text), or module:function"""
    mix: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """rows of actions without an error that are mixed in, per row that a user corrected"""
    hints: HintsConfig = HintsConfig()
    """for hinted rows"""
    distill: DistillConfig = DistillConfig()
    """for rows to distil"""
    models: ModelsConfig = ModelsConfig()
    """models that are asked"""

    @field_validator("replays")
    @classmethod
    def _file_of_a_folder(cls, value: Path | None) -> Path | None:
        return value / REPLAYED if value is not None and value.is_dir() else value

    def chosen(self) -> tuple[list[Kind], dict[Kind, str]]:
        """The kinds to make; and those of the recipe that the inputs cannot feed, with what they need.

        Raises:
            ConfigError: there is no input, none that the recipe or a kind that was asked for can be made from, or a
                setting that has no effect on these kinds.
        """
        if self.store is None and self.replays is None:
            raise ConfigError("nothing to build from", expected="a store, --replays, or both")
        if self.kinds and self.recipe:
            got = f"recipe {self.recipe} and kinds {', '.join(self.kinds)}"
            raise ConfigError("the recipe and the kinds both say what to build", got=got, do="leave one of them out")
        wanted: tuple[Kind, ...] = self.kinds or (RECIPES[self.recipe] if self.recipe else _DEFAULT)
        lacking = {kind: need for kind in wanted if (need := self._lacks(kind))}
        for kind, need in lacking.items():
            if self.kinds or len(lacking) == len(wanted):
                what = f"kind {kind}" if self.kinds else f"recipe {self.recipe}"
                raise ConfigError(f"{what} cannot be made from these inputs", got=self._inputs, expected=need)
        kinds = [kind for kind in dict.fromkeys(wanted) if kind not in lacking]
        self._require_use(kinds)
        return kinds, lacking

    def _require_use(self, kinds: list[Kind]) -> None:
        """A setting that changes nothing here is a mistake."""
        uses: dict[str, tuple[bool, tuple[Kind, ...]]] = {
            "imitate": (bool(self.imitate), ("sft", "preference", "distill", "hinted")),
            "mix": (self.mix > 0, ("corrected", "refined")),
            "hints.student": (bool(self.hints.student), ("hinted",)),
            "distill.student": (bool(self.distill.student), ("distill",)),
            "models.judges": (bool(self.models.judges), ("preference",)),
        }
        for setting, (given, needs) in uses.items():
            if given and not set(needs) & set(kinds):
                got, expected = f"rows of {', '.join(kinds)}", f"rows of {' or '.join(needs)}"
                raise ConfigError(f"{setting} has no effect here", got=got, expected=expected, do="leave it out")

    def _lacks(self, kind: Kind) -> str:
        if kind in get_args(FromReplays):
            return "" if self.replays is not None else "--replays, the folder of a replay"
        return "" if self.store is not None else "a store"

    @property
    def _inputs(self) -> str:
        return "a store without replays" if self.store is not None else "replays without a store"
