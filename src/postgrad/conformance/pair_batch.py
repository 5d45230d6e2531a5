"""The input of all preference cases: tokens with round probabilities, and our channel on them.

    action      π           π0          r = Σ log π/π0
    chosen      1/2, 1/4    1/4, 1/4    ln 2
    rejected    1/8         1/4         −ln 2
    mismatched  1/2         1/4         ln 2        (kto: the chosen action's prompt, another's completion)

The chosen action has two tokens and the rejected one has one. Gradients are those by the log π of the three tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from postgrad.conformance.leaves import loss_and_gradient
from postgrad.core.annotation import JudgedItem, PreferenceItem, Span, Unit
from postgrad.core.forest import build_forest
from postgrad.objectives.channel import Placed
from postgrad.objectives.preference import Preference

CHOSEN, REJECTED, MISMATCHED = (1 / 2, 1 / 4), (1 / 8,), (1 / 2,)
REFERENCES = (1 / 4,)
TOKENS = (11, 12, 21, 31)  # of the four actions' tokens; all differ, so none is shared


def measured(channel: Preference) -> list[float]:
    """Our loss over its count, then its gradient by the log-probabilities of the chosen and the rejected tokens."""
    spans = (Span(0, (1, 2)), Span(1, (1,)), Span(2, (1,)))
    branches = ((0, *TOKENS[:2]), (0, TOKENS[2]), (0, TOKENS[3]))
    item: PreferenceItem | JudgedItem = PreferenceItem(*spans[:2])
    if channel.objective == "kto":
        item = JudgedItem((spans[0],), (spans[1],), (spans[2],))
    unit = Unit(branches, (item,))
    forest = build_forest([unit])
    places = {node: TOKENS.index(token) for node, token in enumerate(forest.tokens_T.tolist()) if token in TOKENS}
    loss, gradient_N = loss_and_gradient(
        channel,
        forest,
        [Placed(0, item)],
        places=places,
        probabilities=[*CHOSEN, *REJECTED, *MISMATCHED],
        references=REFERENCES * len(TOKENS),
    )
    return [loss, *gradient_N[:3]]


def logs(values: Sequence[float]) -> list[float]:
    """Their natural logarithms."""
    return [math.log(value) for value in values]
