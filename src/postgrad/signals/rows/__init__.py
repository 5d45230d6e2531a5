"""Rows to train on: preference pairs, texts to imitate, soft targets and what people corrected."""
