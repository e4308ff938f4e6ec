"""Producers and consumers on a cluster in trouble, all about them from the seed, and what must be true afterwards.

Records may be in the log twice: without idempotence a batch whose acknowledgement is lost is sent again.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import anyio
import attrs

from aiokafkawire import Client, Consumer, Delivery, KafkaError, TopicPartition
from aiokafkawire.records.batch import AnyReader
from aiokafkawire.testing.simulation import Run, Simulation, simulate

__all__ = ("Outcome", "Sent", "check_origin", "check_reading", "check_writing", "run", "told")

PATIENCE = 120.0
"""Virtual seconds that consumers have for what is left, once all faults are over."""
LATE = 10.0
"""Virtual seconds until nothing is under way: what a client sent before it left is written after it has gone."""

Logs: TypeAlias = Mapping[TopicPartition, Sequence[bytes | None]]
"""The values of each partition, each at its offset."""
Seen: TypeAlias = dict[TopicPartition, list[tuple[int, bytes | None]]]
"""What one consumer was given, in its order: offsets and values."""


@attrs.define
class Sent:
    """One record that was handed over, and where its acknowledgement says that it is."""

    value: bytes
    where: TopicPartition | None = None
    offset: int = -1

    def __str__(self) -> str:
        return f"{self.value[:12]!r} at {self.where}:{self.offset}"


@attrs.frozen
class Outcome:
    """What one run came to."""

    sent: int
    acknowledged: int
    duplicates: int
    faults: Counter[str]


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    with no_task_fails_unheard():
        return simulate(_main, seed=seed, keep=keep, min_insync_replicas=2)


async def _main(sim: Simulation) -> Outcome:
    chance = sim.random
    topics = ["flights", "delays", "gates"][: chance.randint(1, 3)]
    partitions = [TopicPartition(topic, index) for topic in topics for index in range(chance.randint(1, 4))]
    for topic in topics:
        sim.broker.create_topic(topic, partitions=sum(where.topic == topic for where in partitions))
    journals: list[list[Sent]] = [[] for _ in range(chance.randint(1, 3))]
    seen: list[Seen] = [{} for _ in range(chance.randint(1, 2))]
    async with anyio.create_task_group() as readers:
        for number, one in enumerate(seen):
            readers.start_soon(_read, sim, number, partitions, one)
        async with anyio.create_task_group() as writers:
            sim.chaos(every=(0.2, chance.choice((1.0, 4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
            for number, journal in enumerate(journals):
                writers.start_soon(_write, sim, number, topics, journal)
            await anyio.sleep(chance.uniform(10, 60))
            await sim.calm()
        await anyio.sleep(LATE)
        logs = {where: _log(sim, where) for where in partitions}
        for _ in range(int(PATIENCE)):
            if all(len(one.get(where, ())) >= len(log) for one in seen for where, log in logs.items()):
                break
            await anyio.sleep(1)
        readers.cancel_scope.cancel()
    for one in seen:
        check_reading(one, logs)
    for journal in journals:
        check_writing(journal, logs)
    check_origin(journals, logs)
    sent = [one for journal in journals for one in journal]
    written = [value for log in logs.values() for value in log]
    return Outcome(
        sent=len(sent),
        acknowledged=sum(one.where is not None for one in sent),
        duplicates=len(written) - len(set(written)),
        faults=sim.trace.faults,
    )


def _log(sim: Simulation, where: TopicPartition) -> list[bytes | None]:
    values: list[bytes | None] = []
    for batch in sim.broker.log(*where).batches():
        reader: AnyReader[bytes, bytes] = batch.records(*where)
        values.extend(record.raw_value for record in reader)
    return values


# --- what runs ---------------------------------------------------------------------------------------------------


def _client(sim: Simulation, name: str) -> Client:
    chance = sim.chance(f"settings of {name}")
    return sim.client(
        name,
        request_timeout_ms=chance.choice((1_000, 5_000, 30_000)),
        metadata_max_age_ms=chance.choice((3_000, 300_000)),
        connections_max_idle_ms=chance.choice((5_000, 540_000)),
        bootstrap_timeout_ms=60_000,
    )


async def _write(sim: Simulation, number: int, topics: list[str], journal: list[Sent]) -> None:
    chance = sim.chance(f"writer {number}")
    client = _client(sim, f"writer-{number}")
    producer = client.producer(
        linger_ms=chance.choice((0, 5, 100)),
        batch_size=chance.choice((100, 1_000, 16_384)),
        compression_type=chance.choice(("none", "none", "gzip", "lz4")),
        delivery_timeout_ms=chance.choice((2_000, 10_000, 120_000)),
    )
    async with client, producer, anyio.create_task_group() as waiting:
        for sequence in range(chance.randint(20, 300)):
            value = b"%d/%d/" % (number, sequence) + bytes(chance.choice((0, 0, 0, 200, 2_000)))
            key = b"%d" % chance.randrange(12) if chance.random() < 0.5 else None
            sent = Sent(value)
            journal.append(sent)
            try:
                with anyio.move_on_after(chance.choice((0.0, 0.01, 1_000, 1_000, 1_000))):
                    delivery = await producer.enqueue(chance.choice(topics), value, key=key)
                    waiting.start_soon(_await, sim, delivery, sent, chance.choice((0.01, 1_000)))
            except KafkaError as error:
                sim.note(f"writer {number} could not hand over {sequence}: {type(error).__name__}")
            if chance.random() < 0.3:
                await anyio.sleep(chance.choice((0.001, 0.05, 1.0)))


async def _await(sim: Simulation, delivery: Delivery, sent: Sent, impatience: float) -> None:
    """Wait for the outcome; who is impatient looks away for a while."""
    with anyio.move_on_after(impatience):
        await _outcome(sim, delivery, sent)
        return
    await _outcome(sim, delivery, sent)


async def _outcome(sim: Simulation, delivery: Delivery, sent: Sent) -> None:
    try:
        written = await delivery
    except KafkaError as error:
        sim.note(f"{sent.value[:10]!r} failed: {type(error).__name__}")
    else:
        sent.where, sent.offset = TopicPartition(written.topic, written.partition), written.offset


async def _read(sim: Simulation, number: int, partitions: list[TopicPartition], seen: Seen) -> None:
    """Read on and on, with clients that come and go, and loops that are cancelled."""
    chance = sim.chance(f"reader {number}")
    options = {
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": chance.choice((100, 500)),
        "fetch_max_bytes": chance.choice((1_000, 52_428_800)),
        "max_partition_fetch_bytes": chance.choice((500, 1_048_576)),
    }
    longest, impatience = chance.choice((5.0, 1_000.0)), chance.choice((0.02, 1.0, 1_000.0))
    while True:
        try:
            async with _client(sim, f"reader-{number}") as client:
                consumer: Consumer[bytes, bytes] = client.consumer(**options)  # type: ignore[call-overload]
                with anyio.move_on_after(chance.uniform(1.0, longest)):
                    async with consumer:
                        await _read_on(sim, consumer, partitions, seen, impatience)
        except KafkaError as error:
            sim.note(f"reader {number} gives up: {error}")


async def _read_on(
    sim: Simulation, consumer: Consumer[bytes, bytes], partitions: list[TopicPartition], seen: Seen, impatience: float
) -> None:
    # Groups are not in the client yet.
    consumer.assign({where: len(seen.get(where, ())) for where in partitions})
    while True:
        try:
            with anyio.move_on_after(impatience) as scope:
                async for record in consumer:
                    where = TopicPartition(record.topic, record.partition)
                    seen.setdefault(where, []).append((record.offset, record.raw_value))
                    if impatience < 1 and sim.random.random() < 0.1:
                        scope.cancel()  # which must not cost the next record
        except KafkaError as error:
            sim.note(f"a reader is told: {error}")


# --- what must be true -------------------------------------------------------------------------------------------


def check_reading(seen: Seen, logs: Logs) -> None:
    """A consumer sees every record of each partition once, in the order of their offsets."""
    for where, log in logs.items():
        got, due = seen.get(where, []), list(enumerate(log))
        wrong = next((at for at, (one, other) in enumerate(zip(got, due, strict=False)) if one != other), None)
        assert got == due, f"of {where} {len(got)} of {len(due)} records were seen; the first wrong one is {wrong}"


def check_writing(journal: Sequence[Sent], logs: Logs) -> None:
    """What was acknowledged is where it was said to be, and in the order in which it was handed over."""
    last: dict[TopicPartition, int] = {}
    for sent in journal:
        if sent.where is None:
            continue
        log = logs[sent.where]
        found = log[sent.offset] or b"" if 0 <= sent.offset < len(log) else b"nothing"
        assert found == sent.value, f"{sent} was acknowledged, and there is {found[:12]!r}"
        assert sent.offset > last.get(sent.where, -1), f"{sent} is before what was sent before it"
        last[sent.where] = sent.offset


def check_origin(journals: Sequence[Sequence[Sent]], logs: Logs) -> None:
    """Nothing is in a log that was not sent, and nothing is in two."""
    sent = {one.value for journal in journals for one in journal}
    found: dict[bytes | None, TopicPartition] = {}
    for where, log in logs.items():
        for value in log:
            assert value in sent, f"{value!r} in {where} was never sent"
            assert found.setdefault(value, where) == where, f"{value!r} is in {where} and in {found[value]}"


@contextmanager
def no_task_fails_unheard() -> Iterator[None]:
    """A background task of the client that fails says so in the log only."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(f"{record.getMessage()}: {record.exc_info and record.exc_info[1]!r}")

    log, ear = logging.getLogger("aiokafkawire"), Ear(logging.ERROR)
    log.addHandler(ear)
    try:
        yield
    finally:
        log.removeHandler(ear)
    assert not heard, heard


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    return (
        f"seed {done.seed}: {value.acknowledged} of {value.sent} acknowledged, {value.duplicates} twice, "
        f"{value.faults.total()} faults, {done.seconds:.0f} s of virtual time, trace {done.trace.digest}"
    )
