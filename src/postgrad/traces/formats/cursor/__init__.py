"""Cursor: the editor's database, and transcripts of its command line."""
