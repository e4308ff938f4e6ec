"""Keys go where librdkafka puts them, under every one of its partitioners' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, get_args

import pytest
from support.patience import PATIENCE

from aiokafkawire.config import PartitionerName, ProducerConfig
from aiokafkawire.producer.partitioner import make_partitioner
from aiokafkawire.types import TopicPartition

from .conftest import running

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

COUNT = 13
"""Partitions of a topic; 2**32 is no multiple of it, so that a sign or a bit too many shows."""

NAMES = sorted(set(get_args(PartitionerName)) - {"default", "round_robin"})

WITHOUT = [None, b""]
"""What some hash and others do not."""


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with running("--partitions", str(COUNT)) as address:
        yield address


class _NothingOpen:
    def has_room(self, partition: TopicPartition, size: int) -> bool:
        return False

    def queue_lengths(self, topic: str) -> dict[int, int]:
        return {}

    def unavailable(self, topic: str) -> tuple[int, ...]:
        return ()

    def leaders_in_rack(self, topic: str, rack: str) -> tuple[int, ...]:
        return ()


def keys() -> list[bytes]:
    """Every length up to 40, every byte; and a key whose FNV-1a is the one number without an absolute value."""
    chance = Random(5)
    return [b";K$25", *(bytes([each]) for each in range(256)), *(chance.randbytes(each) for each in range(2, 41))]


def theirs(bootstrap: str, topic: str, name: str, sent: list[bytes | None]) -> dict[bytes | None, set[int]]:
    # Without a linger librdkafka asks the partitioner about each record, not about the first of some ms.
    settings = {"bootstrap.servers": bootstrap, "partitioner": name, "sticky.partitioning.linger.ms": 0}
    producer = confluent_kafka.Producer(settings)
    found: dict[bytes | None, set[int]] = defaultdict(set)

    def delivered(error: Any, message: Any) -> None:
        assert error is None
        # What was sent without a key and with an empty one are told apart by the value.
        key = None if message.value() == b"none" else bytes(message.key() or b"")
        found[key].add(message.partition())

    for key in sent:
        producer.produce(topic, key=key, value=b"none" if key is None else b"some", on_delivery=delivered)
    assert producer.flush(PATIENCE) == 0
    return found


def ours(name: str, sent: list[bytes | None]) -> dict[bytes | None, set[int]]:
    config = ProducerConfig(partitioner=name)  # type: ignore[arg-type]
    choose = make_partitioner(config, Random(1), _NothingOpen()).choose
    available, found = tuple(range(COUNT)), defaultdict(set)
    for key in sent:
        # As large as a batch, so that every record without a key has a turn of its own.
        found[key].add(choose("t", key, available, COUNT, config.batch_size))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_equal_keys_go_to_librdkafkas_partition(bootstrap: str, name: str) -> None:
    """And what has no place of its own there, an empty key or none, has none here."""
    sent: list[bytes | None] = [*keys(), *keys(), *WITHOUT * 60]
    here, there = ours(name, sent), theirs(bootstrap, f"by-{name}", name, sent)
    assert here.keys() == there.keys()
    fixed = {key: partitions for key, partitions in here.items() if len(partitions) == 1}
    if name != "random":
        assert len(fixed) >= len(keys())
        assert {key: there[key] for key in fixed} == fixed
    assert {key for key in WITHOUT if len(there[key]) == 1} == {key for key in WITHOUT if key in fixed}
