"""What ChatGPT and Claude.ai hand out as a user's data: conversations that are trees of messages."""
