"""Traces from spans: what every observability format is read into, and how steps are made of it."""
