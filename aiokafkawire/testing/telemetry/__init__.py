"""The metrics that clients push to the in-process broker (KIP-714)."""
