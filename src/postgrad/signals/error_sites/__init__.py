"""Where a trace went wrong: the rules, in order, and the evidence they look at."""
