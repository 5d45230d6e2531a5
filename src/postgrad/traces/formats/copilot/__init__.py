"""GitHub Copilot: sessions of its command line, and chat sessions of VS Code."""
