"""Migrate a topic of Kafka 0.7 to a current cluster, each message once, although the migration crashes in between.

python examples/migrate_from_07.py                   # starts an in-process broker
python examples/migrate_from_07.py localhost:9092    # uses your cluster

The broker of 0.7 is the in-memory one that tests use. For a real one omit the connector; with ZooKeeper
``sources_from_zookeeper`` finds all partitions of all brokers.
"""

import sys
from uuid import uuid4

import anyio

from aiokafkawire import Client, OffsetSpec, TopicPartition
from aiokafkawire.legacy import BrokerPartition, LegacyClient, MigrationProgress, Sources, migrate
from aiokafkawire.testing import Broker, LegacyServer

FLIGHTS = 500


class PowerCut(Exception):
    """A crash of the process."""


async def fill(old: LegacyClient) -> None:
    """Produce the old messages, compressed, to two partitions."""
    for number in range(FLIGHTS):
        await old.produce("flights", [b"UA%d" % number, b"DL%d" % number], partition=number % 2)
    await old.confirm()


def print_progress(progress: MigrationProgress) -> None:
    done = 100 * progress.position // progress.end
    print(f"partition {progress.source}: {progress.messages} messages, {done}% of the log")


def fail_on_the_way(progress: MigrationProgress) -> None:
    print_progress(progress)
    if progress.source.partition == 1:
        print("the power fails")
        raise PowerCut


async def flights_of(kafka: Client, topic: str) -> set[str]:
    """Read the committed records; fail if a flight comes twice."""
    found: list[str] = []
    async with kafka.consumer(isolation_level="read_committed") as consumer:
        consumer.assign({TopicPartition(topic, 0): OffsetSpec.EARLIEST, TopicPartition(topic, 1): OffsetSpec.EARLIEST})
        with anyio.fail_after(30):
            while len(found) < 2 * FLIGHTS:
                record = await anext(consumer)
                assert record.value is not None
                found.append(record.value.decode())
    assert len(set(found)) == len(found)
    return set(found)


async def take_over(kafka: Client) -> None:
    name = f"flights-{uuid4().hex[:8]}"
    await kafka.admin.create_topics({name: 2})
    async with (
        LegacyServer(num_partitions=2) as server,
        LegacyClient("legacy", 9092, connector=server.connect, compression_type="gzip", fetch_size=4_000) as old,
    ):
        await fill(old)
        sources: Sources = {BrokerPartition(0, 0): old, BrokerPartition(0, 1): old}
        # The same name in every run: a run continues where the previous one ended.
        try:
            await migrate(sources, "flights", kafka, name=name, target_topic=name, on_progress=fail_on_the_way)
        except PowerCut:
            copied = await migrate(sources, "flights", kafka, name=name, target_topic=name, on_progress=print_progress)
            print(f"the second run copied {sum(copied.values())} messages")
    print(f"{len(await flights_of(kafka, name))} flights, each of them once")
    await kafka.admin.delete_topics([name])


async def main() -> None:
    if len(sys.argv) > 1:
        async with Client(sys.argv[1]) as kafka:
            await take_over(kafka)
    else:
        async with Broker() as broker, Client(broker.bootstrap) as kafka:
            await take_over(kafka)


if __name__ == "__main__":
    anyio.run(main)
