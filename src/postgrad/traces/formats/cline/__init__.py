"""Cline and the agents that keep its files (Roo Code, Kilo Code): the history sent to the model, and the screen."""
