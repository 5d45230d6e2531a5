"""OpenAI Codex CLI: session rollouts, and the event stream of `codex exec --json`."""
