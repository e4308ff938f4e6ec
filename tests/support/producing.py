"""Producers of tests, and records handed over."""

from collections.abc import Callable
from typing import Any

from aiokafkawire import Client, Producer, TopicPartition

__all__ = ("Bytes", "numbers", "outcome", "producing", "sent")

Bytes = Producer[bytes, bytes]


def producing(client: Client, **options: Any) -> Bytes:
    """A producer whose closing takes a failed test no longer than this."""
    return client.producer(**{"delivery_timeout_ms": 3_000, **options})


async def outcome(send: Callable[[], Any], heard: list[Any]) -> None:
    """Add what a send gives or raises."""
    try:
        heard.append(await send())
    except Exception as error:
        heard.append(error)


async def sent(producer: Bytes, where: TopicPartition, *values: bytes) -> list[Any]:
    """Hand these records over."""
    return [await producer.enqueue(where.topic, value, partition=where.partition) for value in values]


def numbers(count: int) -> list[bytes]:
    """So many values, each another."""
    return [b"%d" % number for number in range(count)]
