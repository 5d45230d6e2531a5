"""The APIs that are spoken to over a network: one client protocol, and what each of them makes of a request."""
