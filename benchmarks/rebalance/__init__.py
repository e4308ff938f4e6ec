"""The rebalance time of a large group: one measurement of ``python -m benchmarks rebalance``."""
