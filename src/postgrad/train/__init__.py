"""The loop: units in, a trained policy out. It sums channels and knows no method."""
