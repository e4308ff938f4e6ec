"""Partitions' logs: what may be appended, what producers are remembered, and how they are read."""
