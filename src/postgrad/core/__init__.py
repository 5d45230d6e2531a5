"""The nouns of postgrad, one file each, and the error tree. Imports nothing of postgrad but itself, and no torch."""
