"""A broker of Kafka 0.7 in memory, for tests of its clients."""
