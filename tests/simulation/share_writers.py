"""Writers of numbered records for a share group, with or without transactions, until they are cancelled."""

from collections.abc import Sequence
from itertools import count

import anyio
from histories.checking import History
from histories.events import RecordSent

from aiokafkawire import KafkaError, TopicPartition
from aiokafkawire.testing.simulation import Simulation

from .checks import Logs
from .taking_part import client_of, logs_of, note_acknowledgement
from .transactions import committed_records

__all__ = ("due_records", "write", "write_in_transactions")


class _OnPurpose(Exception):
    """A transaction is to be aborted."""


async def write(sim: Simulation, topics: Sequence[str], history: History) -> None:
    """Write records without transactions."""
    chance = sim.chance("writer")
    slowest, linger_ms = chance.choice((0.05, 0.2, 0.5)), chance.choice((0, 100, 1_000))
    client = client_of(sim, "writer")
    producer = client.producer(linger_ms=linger_ms)
    async with client, producer:
        for number in count():
            value = _sent(history, number)
            try:
                delivery = await producer.enqueue(chance.choice(topics), value)
                note_acknowledgement(history, delivery, value)
            except KafkaError as error:
                sim.note(f"the writer could not hand over {number}: {error}")
            await anyio.sleep(chance.uniform(0, slowest))


async def write_in_transactions(sim: Simulation, topics: Sequence[str], history: History) -> None:
    """Write one transaction after the other, some of which are aborted."""
    chance = sim.chance("writer")
    slowest, numbers = chance.choice((0.2, 1.0)), count()
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
                                await transaction.enqueue(chance.choice(topics), _sent(history, next(numbers)))
                                await anyio.sleep(chance.choice((0.0, 0.0, 0.05)))
                            if chance.random() < 0.3:
                                raise _OnPurpose
                    except _OnPurpose:
                        pass
                    await anyio.sleep(chance.uniform(0, slowest))
        except KafkaError as error:
            sim.note(f"the writer begins again: {type(error).__name__}: {error}")
            await anyio.sleep(0.5)


def _sent(history: History, number: int) -> bytes:
    history.add(RecordSent("writer", value := b"%d" % number))
    return value


def due_records(sim: Simulation, partitions: list[TopicPartition], *, read_committed: bool) -> Logs | None:
    """Return the records that the group has to finish; None while a transaction is open."""
    logs = [sim.broker.log(*partition) for partition in partitions]
    if any(log.last_stable_offset < log.log_end_offset for log in logs):
        return None
    return committed_records(sim, partitions) if read_committed else logs_of(sim, partitions)
