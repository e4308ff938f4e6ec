"""More partitions for a topic, as an operator adds them."""

from aiokafkawire import Client, blocking
from aiokafkawire.cluster.cluster import controller
from aiokafkawire.errors import broker_error
from aiokafkawire.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)

__all__ = ("add_partitions", "add_partitions_blocking")


async def add_partitions(kafka: Client, topic: str, count: int) -> None:
    """Let the topic have so many, and wait until a broker says so."""
    cluster = kafka._cluster
    more = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=[more], timeout_ms=10_000, validate_only=False)

    def check(response: CreatePartitionsResponse) -> None:
        (result,) = response.results
        if result.error_code:
            raise broker_error(result.error_code, str(result.error_message))

    await cluster.ask(controller, request, cluster.deadline(20), check=check)
    while len((await kafka.admin.describe_topic(topic)).partitions) < count:
        pass


def add_partitions_blocking(kafka: blocking.Client, topic: str, count: int) -> None:
    """As :func:`add_partitions`."""
    kafka.loop.call(add_partitions, kafka.asynchronous, topic, count)
