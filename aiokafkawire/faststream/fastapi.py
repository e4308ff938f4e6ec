"""FastStream's plugin for FastAPI on this client; importing it needs fastapi."""

from faststream.kafka.fastapi import KafkaRouter as FastStreamRouter

from .broker import KafkaBroker

__all__ = ("KafkaRouter",)


class KafkaRouter(FastStreamRouter):
    """A router of FastAPI with subscribers and publishers; its ``broker`` is a :class:`KafkaBroker` of this package."""

    broker_class: type[KafkaBroker] = KafkaBroker
