"""Gemini CLI: recorded chats, as one JSON document or as a log of JSON lines."""
