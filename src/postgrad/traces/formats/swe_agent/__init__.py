"""SWE-agent trajectories and mini-swe-agent's."""
