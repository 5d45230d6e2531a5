"""Tasks in, verdicts out: the runner, statistics, gates and the report. Imports no torch."""
