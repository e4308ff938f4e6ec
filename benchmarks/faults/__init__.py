"""Producers while brokers are killed: ``python -m benchmarks.faults``; see docs/faults.md."""
