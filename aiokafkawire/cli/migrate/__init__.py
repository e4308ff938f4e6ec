"""Finds the uses of other Kafka clients in a code base by LibCST, with advice about each."""
