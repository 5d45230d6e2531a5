"""Teachers: whatever can answer a step better than the student. Actors, a cache, and replay. No torch."""

KINDS = {
    "gold": "postgrad.envs.gold:GoldActor",
    "local": "postgrad.models.actor:PolicyActor",
    "openai": "postgrad.teachers.openai_compatible:OpenAICompatible",
    "scripted": "postgrad.teachers.scripted:ScriptedActor",
}
"""Plug-in point `teacher`: short name -> class of an `Actor`."""
