"""A pytest plugin that puts ``aiokafkawire.faststream`` in the place of the broker of ``faststream.kafka``."""

import os
from typing import Any

from aiokafkawire.faststream import KafkaBroker
from aiokafkawire.faststream.fastapi import KafkaRouter

import faststream.kafka  # isort: skip  # after aiokafkawire.faststream, which puts this package's aiokafka in place
import faststream.kafka.fastapi  # isort: skip


class LocalBroker(KafkaBroker):
    """The broker, with the Kafka of the suite as the default server."""

    def __init__(self, bootstrap_servers: Any = os.environ["SUITE_BOOTSTRAP"], **arguments: Any) -> None:
        super().__init__(bootstrap_servers, **arguments)


class LocalRouter(KafkaRouter):
    """The plugin for FastAPI, with the Kafka of the suite as the default server."""

    broker_class = LocalBroker

    def __init__(self, bootstrap_servers: Any = os.environ["SUITE_BOOTSTRAP"], **arguments: Any) -> None:
        super().__init__(bootstrap_servers, **arguments)


vars(faststream.kafka)["KafkaBroker"] = LocalBroker
vars(faststream.kafka.fastapi).update(KafkaBroker=LocalBroker, KafkaRouter=LocalRouter)
