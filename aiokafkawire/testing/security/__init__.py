"""Authentication of clients, and TLS on the broker's ports."""
