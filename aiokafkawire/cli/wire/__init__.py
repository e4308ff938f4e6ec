"""The wire command: decodes bytes of Kafka's protocol, field by field."""
