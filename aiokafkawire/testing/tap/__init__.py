"""A proxy between Kafka clients and a cluster that decodes the traffic and injects faults; see docs/tap.md."""
