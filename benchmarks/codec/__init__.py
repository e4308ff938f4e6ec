"""Messages, encoded and decoded by each client: the measurements of ``python -m benchmarks messages``."""
