"""The wire command: bytes of Kafka's protocol, told field by field."""
