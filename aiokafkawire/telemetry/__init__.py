"""The metrics that a client pushes to brokers (KIP-714), and those of the application among them (KIP-1076)."""
