"""Writers of numbered records for a share group, with or without transactions, until they are cancelled."""

from collections.abc import Sequence

import anyio

from aiokafkawire import Delivery, KafkaError, TopicPartition
from aiokafkawire.testing.simulation import Simulation

from .checks import Journal, Logs, Sent
from .taking_part import client_of, logs_of
from .transactions import committed_records

__all__ = ("due_records", "write", "write_in_transactions")


class _OnPurpose(Exception):
    """A transaction is to be aborted."""


async def write(sim: Simulation, topics: Sequence[str], journal: Journal) -> None:
    """Write records without transactions."""
    chance = sim.chance("writer")
    slowest, linger_ms = chance.choice((0.05, 0.2, 0.5)), chance.choice((0, 100, 1_000))
    client = client_of(sim, "writer")
    producer = client.producer(linger_ms=linger_ms)
    async with client, producer, anyio.create_task_group() as waiting:
        while True:
            sent = _next(journal)
            try:
                waiting.start_soon(_await, await producer.enqueue(chance.choice(topics), sent.value), sent)
            except KafkaError as error:
                sim.note(f"the writer could not hand over {sent}: {error}")
            await anyio.sleep(chance.uniform(0, slowest))


async def write_in_transactions(sim: Simulation, topics: Sequence[str], journal: Journal) -> None:
    """Write one transaction after the other, some of which are aborted."""
    chance = sim.chance("writer")
    slowest = chance.choice((0.2, 1.0))
    while True:
        try:
            async with (
                client_of(sim, "writer") as client,
                client.producer(transactional_id="writer", transaction_timeout_ms=5_000) as producer,
            ):
                while True:
                    try:
                        async with producer.transaction() as transaction:
                            for _ in range(chance.choice((1, 3, 20))):
                                await transaction.enqueue(chance.choice(topics), _next(journal).value)
                                await anyio.sleep(chance.choice((0.0, 0.0, 0.05)))
                            if chance.random() < 0.3:
                                raise _OnPurpose
                    except _OnPurpose:
                        pass
                    await anyio.sleep(chance.uniform(0, slowest))
        except KafkaError as error:
            sim.note(f"the writer begins again: {type(error).__name__}: {error}")
            await anyio.sleep(0.5)


def _next(journal: Journal) -> Sent:
    journal.sent.append(Sent(b"%d" % len(journal.sent)))
    return journal.sent[-1]


async def _await(delivery: Delivery, sent: Sent) -> None:
    try:
        written = await delivery
    except KafkaError:
        return
    sent.where, sent.offset = TopicPartition(written.topic, written.partition), written.offset


def due_records(sim: Simulation, partitions: list[TopicPartition], *, read_committed: bool) -> Logs | None:
    """Return the records that the group has to finish; None while a transaction is open."""
    logs = [sim.broker.log(*partition) for partition in partitions]
    if any(log.last_stable_offset < log.log_end_offset for log in logs):
        return None
    return committed_records(sim, partitions) if read_committed else logs_of(sim, partitions)
