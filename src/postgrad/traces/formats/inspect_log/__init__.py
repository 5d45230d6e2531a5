"""Inspect's evaluation logs, `.eval` and `.json`, read without Inspect: the files are zip archives of JSON, or JSON."""
