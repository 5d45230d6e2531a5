"""OpenAI chat-completions requests and responses: one exchange, its messages, its stream, and the reader."""
