"""Kafka's protocol: primitives, declared messages, and encoders and decoders compiled from them. No I/O, no clock."""
