"""FastStream on this client: its Kafka broker with one :class:`~aiokafkawire.Client` for all that it does.

The names are those of ``faststream.kafka``, which imports aiokafka; importing this package calls
:func:`aiokafkawire.aiokafka.install` first, so that aiokafka need not be installed, and is not used.
"""

from ..aiokafka import install

install()

from faststream.kafka import (  # noqa: E402, after install()
    KafkaMessage,
    KafkaPublishMessage,
    KafkaResponse,
    KafkaRoute,
    KafkaRouter,
    TestKafkaBroker,
    Topic,
    TopicPartition,
)

from .broker import KafkaBroker  # noqa: E402

__all__ = (
    "KafkaBroker",
    "KafkaMessage",
    "KafkaPublishMessage",
    "KafkaResponse",
    "KafkaRoute",
    "KafkaRouter",
    "TestKafkaBroker",
    "Topic",
    "TopicPartition",
)
