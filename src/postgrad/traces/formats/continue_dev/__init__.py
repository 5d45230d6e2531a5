"""Continue: saved sessions, and the development data that it logs beside them."""
