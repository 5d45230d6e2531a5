"""The trace store: raw bytes and tables in segments, and the journal that says what is in them."""
