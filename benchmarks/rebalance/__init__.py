"""How long a large group takes to rebalance: one measurement of ``python -m benchmarks rebalance``."""
