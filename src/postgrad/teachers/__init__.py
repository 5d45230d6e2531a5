"""Teachers: whatever can answer a step better than the student. Actors, a cache, and replay. No torch."""

KINDS = {
    "anthropic": "postgrad.teachers.providers.anthropic_messages:AnthropicMessages",
    "cassette": "postgrad.teachers.cassette:Cassette",
    "gold": "postgrad.envs.gold:GoldActor",
    "local": "postgrad.models.actor:PolicyActor",
    "ollama": "postgrad.teachers.providers.ollama_native:OllamaNative",
    "openai": "postgrad.teachers.providers.openai_compatible:OpenAICompatible",
    "scripted": "postgrad.teachers.scripted:ScriptedActor",
}
"""Plug-in point `teacher`: short name -> class of an `Actor`, or of a `Provider` (anthropic, ollama, openai)."""
