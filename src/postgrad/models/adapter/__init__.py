"""Adapters through PEFT: what is trained beside the frozen weights, from one configuration to one folder.

A variant is a frozen class in `variants`, whose fields are its options, and one row of `variants.VARIANTS`; several
that play different roles go together (`[rslora, dora]`). `attach` puts a new adapter on a model, `folder` saves and
loads it, `start` knows what it was before training, `merging` makes a plain model, `geometry` measures the update.

This package imports no torch by itself.
"""

from postgrad.models.adapter.config import AdapterConfig

__all__ = ["AdapterConfig"]
