"""opencode: its storage folder, its database, exported sessions, and the events of its server."""
