"""Small stages for tests of the cycle: real verbs in all but size, run by module name."""
