"""Aider: the Markdown chat history, and the log of what was sent to the model."""
