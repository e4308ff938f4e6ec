"""A Polars frame written to a topic and read back, with this client and in confluent-kafka's best loop."""
