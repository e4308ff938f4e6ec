"""Producers and consumers on a cluster in trouble, all about them from the seed, and what must be true afterwards."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import anyio
import attrs
from histories.checking import History
from histories.events import ProducerOpened, RecordSent, SendAcknowledged

from aiokafkawire import Delivery, KafkaError, TopicPartition
from aiokafkawire.config import ProducerOptions
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.produce import ProduceResponse
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import check_in_the_end, logs_found, no_task_fails_unheard
from .taking_part import Reader, client_of, logs_of, pace_of, read_until, topics_of
from .trouble import damage_records, refusing

__all__ = ("LATE", "PATIENCE", "Outcome", "run", "told")

PATIENCE = 120
"""Virtual seconds that consumers have for what is left, once all faults are over."""
LATE = 10.0
"""Virtual seconds until nothing is under way: what a client sent before it left is written after it has gone."""
_LARGE = 1_048_588
"""The largest batch, unless it is said otherwise."""
_SIZES = (0, 0, 0, 200, 2_000)
"""What records have besides their names, in bytes."""
_LARGE_SIZES = (0, 0, 0, 200, 70_000)
"""The same where consumers fetch ahead: one of these records is enough for that."""
_REFUSED = (
    *(ApiKey.PRODUCE, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH),
    *(ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID),
)


@attrs.frozen
class Outcome:
    """What one run came to."""

    sent: int
    acknowledged: int
    duplicates: int
    splits: int
    """Answers that a batch is too large."""
    faults: Counter[str]


def run(seed: int, *, keep: int = 2_000, releases: Sequence[str] = ()) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be.

    Brokers begin as the first of the releases of Kafka, and restart as any of them.
    """
    largest = Random(f"{seed}/largest batch").choice((_LARGE, _LARGE, _LARGE, 3_000, 700))
    sizes = Random(f"{seed}/sizes").choice((_SIZES, _LARGE_SIZES)) if largest == _LARGE else _SIZES
    with no_task_fails_unheard():
        return simulate(
            lambda sim: _main(sim, releases, sizes),
            seed=seed,
            keep=keep,
            min_insync_replicas=2,
            message_max_bytes=largest,
            max_versions=next(iter(releases), None),
        )


async def _main(sim: Simulation, releases: Sequence[str], sizes: Sequence[int]) -> Outcome:
    chance = sim.random
    partitions = topics_of(sim)
    topics = list(dict.fromkeys(where.topic for where in partitions))
    history, writers = History(), range(chance.randint(1, 3))
    readers = [Reader(sim, history, number, partitions) for number in range(chance.randint(1, 2))]
    async with anyio.create_task_group() as reading:
        for reader in readers:
            reading.start_soon(reader.read)
        async with anyio.create_task_group() as writing:
            every, lasting = (0.2, chance.choice((1.0, 4.0, 10.0))), (0.05, chance.choice((1.0, 5.0, 20.0)))
            sim.chaos(every=every, lasting=lasting, releases=releases)
            for number in writers:
                writing.start_soon(_write, sim, number, topics, sizes, history)
            async with refusing(sim, *_REFUSED):
                with anyio.move_on_after(chance.uniform(10, 60)):
                    await damage_records(sim)
            sim.broker.clear_orders()
            await sim.calm()
        await anyio.sleep(LATE)
        logs = logs_of(sim, partitions)
        await read_until(readers, logs, PATIENCE)
        reading.cancel_scope.cancel()
    history.extend(logs_found(logs))
    check_in_the_end(history)
    written = [value for log in logs.values() for _, value in log]
    return Outcome(
        sent=sum(isinstance(event, RecordSent) for event in history.events),
        acknowledged=sum(isinstance(event, SendAcknowledged) for event in history.events),
        duplicates=len(written) - len(set(written)),
        splits=_splits(sim),
        faults=sim.trace.faults,
    )


def _splits(sim: Simulation) -> int:
    answers = [asked.response for asked in sim.broker.requests.of(ApiKey.PRODUCE)]
    return sum(
        one.error_code == ErrorCode.MESSAGE_TOO_LARGE
        for answer in answers
        if isinstance(answer, ProduceResponse)
        for topic in answer.responses
        for one in topic.partition_responses
    )


# --- what runs ---------------------------------------------------------------------------------------------------


def _settings(chance: Random, name: str) -> tuple[ProducerOptions, ProducerOpened]:
    """Return the options of a producer, mostly the defaults, and what they guarantee."""
    options = pace_of(chance)
    kind = chance.choice(("default",) * 6 + ("not idempotent", "leader alone"))
    if kind == "leader alone":
        options["acks"] = 1
    elif kind == "not idempotent":
        options["enable_idempotence"] = False
    is_ordered = kind == "default" or options["max_in_flight_requests_per_connection"] == 1
    return options, ProducerOpened(name, kind == "default", kind != "leader alone", is_ordered)


async def _write(sim: Simulation, number: int, topics: list[str], sizes: Sequence[int], history: History) -> None:
    chance, name = sim.chance(f"writer {number}"), f"writer-{number}"
    client = client_of(sim, name)
    options, opened = _settings(chance, name)
    history.add(opened)
    async with client, client.producer(**options) as producer, anyio.create_task_group() as waiting:
        for sequence in range(chance.randint(20, 300)):
            value = b"%d/%d/" % (number, sequence) + bytes(chance.choice(sizes))
            key = b"%d" % chance.randrange(12) if chance.random() < 0.5 else None
            history.add(RecordSent(name, value))
            try:
                with anyio.move_on_after(chance.choice((0.0, 0.01, 1_000, 1_000, 1_000))):
                    delivery = await producer.enqueue(chance.choice(topics), value, key=key)
                    waiting.start_soon(_await, sim, delivery, value, history, chance.choice((0.01, 1_000)))
            except KafkaError as error:
                sim.note(f"writer {number} could not hand over {sequence}: {type(error).__name__}")
            if chance.random() < 0.3:
                await anyio.sleep(chance.choice((0.001, 0.05, 1.0)))


async def _await(sim: Simulation, delivery: Delivery, value: bytes, history: History, impatience: float) -> None:
    """Wait for the outcome; who is impatient looks away for a while."""
    with anyio.move_on_after(impatience):
        await _outcome(sim, delivery, value, history)
        return
    await _outcome(sim, delivery, value, history)


async def _outcome(sim: Simulation, delivery: Delivery, value: bytes, history: History) -> None:
    try:
        written = await delivery
    except KafkaError as error:
        sim.note(f"{value[:10]!r} failed: {type(error).__name__}")
    else:
        history.add(SendAcknowledged(value, TopicPartition(written.topic, written.partition), written.offset))


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    return (
        f"seed {done.seed}: {value.acknowledged} of {value.sent} acknowledged, {value.duplicates} twice, "
        f"{value.splits} splits, {value.faults.total()} faults, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
