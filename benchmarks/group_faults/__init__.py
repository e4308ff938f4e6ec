"""Consumer groups while brokers and members are killed: ``python -m benchmarks.group_faults``."""
