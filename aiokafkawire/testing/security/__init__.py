"""Logging in, and TLS."""
