"""Kafka's messages, a file per family; import the family that is needed, none is loaded before."""
