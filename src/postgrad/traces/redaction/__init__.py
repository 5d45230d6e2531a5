"""Secrets and personal data out of traces."""
