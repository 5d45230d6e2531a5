"""May this model run forests as trees? Measured on the model itself at load, not looked up by name.

A random forest of two trees with two branches each goes through the model as a tree, and each branch goes through
alone. The hidden states must agree: to rounding, and to a small part of what a leak between branches would change (the
same forest under a plain causal mask), because in a small or untrained model even a full leak can change little.
Sliding windows are narrowed to `PROBE_WINDOW` positions for the check, so that they bite on a short forest. The first
way of handing over masks that passes is used; when none does, the model runs flat and the reason is kept.

Not covered: rotary scaling that looks at the longest position of the batch (longrope, dynamic NTK) beyond the original
context length. Families with a local window under an unknown name in their configuration run flat without a check.

Shapes: T tokens of the forest, D hidden width, R rows, L positions.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from postgrad.core.annotation import Unit
from postgrad.core.errors import ConfigError
from postgrad.core.forest import Forest, build_forest
from postgrad.models.blocks import BLOCKS
from postgrad.models.evaluating import evaluating
from postgrad.models.flex import NAME
from postgrad.models.forward import Scheme, tree_hidden_TD
from postgrad.models.split import SplitModel

log = logging.getLogger(__name__)

PROBE_WINDOW = 5
WINDOWS = ("sliding_window", "attention_chunk_size")
UNKNOWN_WINDOWS = ("window_size", "attention_window", "attention_window_size", "local_window_size", "local_attention")
ATTENTION_LAYERS = {"full_attention", "sliding_attention", "chunked_attention"}
FOREIGN_ERRORS = (TypeError, ValueError, RuntimeError, IndexError, KeyError, AttributeError, NotImplementedError)
"""What a model's own code raises when it is handed masks or positions that it does not know."""
ATTENTIONS = {"flex": (NAME, "FlexAttention block masks"), "blocks": (BLOCKS, "attention by blocks")}
AUTOMATIC = {"cuda": "flex", "cpu": "blocks"}
"""Device -> the attention that is tried first: FlexAttention has no backward pass on CPUs, `blocks` is for these."""


@dataclass(frozen=True)
class Layout:
    """The verdict: `kind`, the mask scheme of the tree, and why, in one sentence for the log."""

    kind: Literal["tree", "flat"]
    scheme: Scheme
    reason: str


def choose_layout(model: SplitModel) -> Layout:
    """Run the self-check on `model` (evaluation mode, no gradients) and say which layout it gets."""
    config = model.config
    family = str(config.model_type)
    foreign = set(getattr(config, "layer_types", None) or ()) - ATTENTION_LAYERS
    if foreign:
        return Layout("flat", "plain", f"{family}: layers of type {', '.join(sorted(foreign))} do not go by the mask")
    unknown = [name for name in UNKNOWN_WINDOWS if getattr(config, name, None)]
    if unknown:
        return Layout("flat", "plain", f"{family}: attention may be local by '{unknown[0]}', unknown to the tree mask")
    forest, rows_RL = probe_forest(int(config.vocab_size))
    reasons = []
    with torch.no_grad(), evaluating(model.model), _narrow_windows(config):
        alone_TD = _alone_TD(model, forest, rows_RL)
        for scheme in _schemes(config):
            try:
                verdict = _compare(model, forest, alone_TD, scheme=scheme)
            except FOREIGN_ERRORS as error:
                why = " ".join(str(error).split())[:100]
                reasons.append(f"its code does not take forest masks: {scheme} ({type(error).__name__}: {why})")
                continue
            if verdict.passed:
                attention = _choose_attention(model, forest, alone_TD, scheme=scheme)
                agree = f"{family}: tree and single branches agree ({verdict}), masks: {scheme}; {attention}"
                return Layout("tree", scheme, agree)
            reasons.append(f"tree and single branches differ ({verdict}), masks: {scheme}")
    return Layout("flat", "plain", f"{family}: " + "; ".join(reasons))


def probe_forest(vocabulary: int) -> tuple[Forest, Tensor]:
    """Two trees of two branches each, ten tokens deep, and the four branches (R, L); the same every time."""
    generator = torch.Generator().manual_seed(20)
    prefix, tail = (3, 4), 10
    branches: list[tuple[int, ...]] = []
    for tree, shared in enumerate(prefix):
        ids = torch.randint(vocabulary, (shared + 2 * (tail - shared),), generator=generator).tolist()
        ids[0] = tree % vocabulary  # the roots differ, so the trees stay apart
        ids[shared] = 0  # and so do the first tokens of the two branches
        ids[tail] = 1
        branches += [tuple(ids[:tail]), tuple(ids[:shared] + ids[tail:])]
    return build_forest([Unit(tuple(branches))]), torch.tensor(branches)


@dataclass(frozen=True)
class _Difference:
    error: float
    leak: float
    scale: float
    tolerance: float
    share: float
    noise: float

    @property
    def passed(self) -> bool:
        bound = max(self.share * self.leak, self.noise * self.scale)
        return self.error <= min(self.tolerance * self.scale, bound)

    def __str__(self) -> str:
        return f"{self.error:.1e} on a scale of {self.scale:.1e}; a leak would be {self.leak:.1e}"


def _compare(model: SplitModel, forest: Forest, alone_TD: Tensor, *, scheme: Scheme) -> _Difference:
    tree_TD = tree_hidden_TD(model, forest, scheme=scheme).float()
    leak_TD = tree_hidden_TD(model, forest, scheme=scheme, causal_only=True).float()
    exact = model.dtype in (torch.float32, torch.float64)
    return _Difference(
        error=float((tree_TD - alone_TD).abs().max()),
        leak=float((leak_TD - alone_TD).abs().max()),
        scale=float(alone_TD.abs().max()),
        tolerance=2e-5 if exact else 5e-2,
        share=0.02 if exact else 0.2,
        noise=2e-6 if exact else 1e-2,
    )


def _choose_attention(model: SplitModel, forest: Forest, alone_TD: Tensor, *, scheme: Scheme) -> str:
    """Switch `model` to attention by blocks where that works and pays; which attention runs, and why.

    Raises:
        ConfigError: `POSTGRAD_ATTENTION` is none of its values.
    """
    wanted = os.environ.get("POSTGRAD_ATTENTION", "auto")
    if wanted not in ("auto", "dense", *ATTENTIONS):
        raise ConfigError("bad POSTGRAD_ATTENTION", got=wanted, expected="auto, dense, flex or blocks")
    if wanted == "dense":
        return "dense masks, as POSTGRAD_ATTENTION says"
    if wanted == "auto":
        wanted = AUTOMATIC.get(model.device.type, "dense")
    if wanted not in ATTENTIONS:
        return f"dense masks, as there is nothing better on {model.device.type}"
    name, title = ATTENTIONS[wanted]
    before = model.model.config._attn_implementation
    if before not in ("sdpa", *(known for known, _ in ATTENTIONS.values())):
        return f"dense masks, as the model runs {before} attention"
    model.model.config._attn_implementation = name
    try:
        verdict = _compare(model, forest, alone_TD, scheme=scheme)
        why = f"differs ({verdict})"
    except FOREIGN_ERRORS as error:
        verdict, why = None, f"failed ({type(error).__name__}: {' '.join(str(error).split())[:100]})"
    if verdict is not None and verdict.passed:
        return title
    model.model.config._attn_implementation = before
    return f"dense masks, as {title} {why}"


def _alone_TD(model: SplitModel, forest: Forest, rows_RL: Tensor) -> Tensor:
    """Hidden states (T, D) in forest order, from the branches computed alone (equal lengths: no padding)."""
    output = model.body(input_ids=rows_RL.to(model.device), use_cache=False, return_dict=True)
    hidden_RLD = output.last_hidden_state.float()
    alone_TD: Tensor = hidden_RLD.new_zeros((len(forest), hidden_RLD.shape[-1]))
    for path_L, hidden_LD in zip(forest.paths[0], hidden_RLD, strict=True):
        alone_TD[torch.as_tensor(path_L)] = hidden_LD
    return alone_TD


def _schemes(config: Any) -> Iterator[Scheme]:
    if getattr(config, "layer_types", None):
        yield "layer types"
    if getattr(config, "sliding_window", None):
        yield "window"
    yield "plain"


@contextmanager
def _narrow_windows(config: Any) -> Iterator[None]:
    """Set every window of the configuration to `PROBE_WINDOW`; families read it anew at each forward."""
    before = {name: getattr(config, name) for name in WINDOWS if getattr(config, name, None)}
    try:
        for name, width in before.items():
            setattr(config, name, min(width, PROBE_WINDOW))
        yield
    finally:
        for name, width in before.items():
            setattr(config, name, width)
