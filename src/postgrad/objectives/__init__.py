"""Channels: the losses that the loop sums. Names only; torch is imported with a channel, not here."""

from __future__ import annotations

# Short name -> class; anything else is given as "module:Class" or by an entry point `postgrad.channel`.
CHANNELS: dict[str, str] = {
    "cross_entropy": "postgrad.objectives.cross_entropy:CrossEntropy",
    "policy_gradient": "postgrad.objectives.policy_gradient:PolicyGradient",
    "divergence": "postgrad.objectives.divergence:Divergence",
    "preference": "postgrad.objectives.preference:Preference",
}
