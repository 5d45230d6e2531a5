"""Conversations as data sets and benchmarks hold them: a row, or a file, is one list of turns."""
