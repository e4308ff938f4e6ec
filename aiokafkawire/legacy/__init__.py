"""Kafka 0.6 and 0.7: brokers, groups in ZooKeeper, and the way from there to a cluster of today. See docs/legacy.md."""
