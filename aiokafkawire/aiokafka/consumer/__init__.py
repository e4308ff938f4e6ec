"""aiokafka's consumer."""

from .consumer import AIOKafkaConsumer

__all__ = ("AIOKafkaConsumer",)
