"""Teachers: whatever can answer a step better than the student. Actors, a cache, and replay. No torch."""

KINDS = {
    "anthropic": "postgrad.teachers.anthropic_messages:AnthropicMessages",
    "cassette": "postgrad.teachers.cassette:Cassette",
    "gold": "postgrad.envs.gold:GoldActor",
    "local": "postgrad.models.actor:PolicyActor",
    "ollama": "postgrad.teachers.ollama_native:OllamaNative",
    "openai": "postgrad.teachers.openai_compatible:OpenAICompatible",
    "scripted": "postgrad.teachers.scripted:ScriptedActor",
}
"""Plug-in point `teacher`: short name -> class of an `Actor`, or of a `Provider` (anthropic, ollama, openai)."""
