"""The cost of one more member for a large group: ``python -m benchmarks.group_growth``."""
