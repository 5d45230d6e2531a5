"""postgrad: turn the traces of an LLM application into a better open model, and prove it.

The nouns live in :mod:`postgrad.core`; everything else is reached through its own package.
Importing ``postgrad`` imports no heavy library.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
