"""Requests to model APIs and their responses, however they were recorded: by a client, a proxy, a test or a browser."""
