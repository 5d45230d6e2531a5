"""Claude Code sessions: rows, the steps made of them, and the reader."""
