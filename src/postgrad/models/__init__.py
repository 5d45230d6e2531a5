"""Policies: a causal language model, its tokenizer, its chat template and an adapter; rendering, scoring, sampling.

Import what is needed from its own module; this package imports no torch by itself.
"""
