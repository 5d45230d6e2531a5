"""How exactly the context of a step is known, and what fills its gaps."""
