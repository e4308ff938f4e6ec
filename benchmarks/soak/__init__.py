"""A group that rebalances every few seconds for minutes or hours: ``python -m benchmarks.soak``."""
