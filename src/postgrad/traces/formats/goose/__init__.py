"""Goose: sessions as JSON lines, in its database, and exported."""
