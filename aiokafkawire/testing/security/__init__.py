"""Authentication and TLS."""
