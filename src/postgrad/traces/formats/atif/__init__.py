"""The Agent Trajectory Interchange Format (ATIF), and the folders in which Harbor and Terminal-Bench leave runs."""
