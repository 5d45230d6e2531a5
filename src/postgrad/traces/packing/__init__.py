"""Traces taken apart and put together again: as rows of tables, and on disk while a large source is read."""
