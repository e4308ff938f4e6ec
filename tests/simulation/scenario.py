"""Producers and consumers on a cluster in trouble, all about them from the seed, and what must be true afterwards."""

from collections import Counter
from random import Random

import anyio
import attrs

from aiokafkawire import Delivery, KafkaError, TopicPartition
from aiokafkawire.config import ProducerOptions
from aiokafkawire.errors import ErrorCode
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.protocol.messages.produce import ProduceResponse
from aiokafkawire.testing.simulation import Run, Simulation, simulate

from .checks import (
    Journal,
    Seen,
    Sent,
    check_once_and_in_order,
    check_origin,
    check_reading,
    check_writing,
    no_task_fails_unheard,
)
from .taking_part import client_of, logs_of, pace_of, read, read_until, topics_of

__all__ = ("LATE", "PATIENCE", "Outcome", "run", "told")

PATIENCE = 120
"""Virtual seconds that consumers have for what is left, once all faults are over."""
LATE = 10.0
"""Virtual seconds until nothing is under way: what a client sent before it left is written after it has gone."""
_LARGE = 1_048_588
"""The largest batch, unless it is said otherwise."""


@attrs.frozen
class Outcome:
    """What one run came to."""

    sent: int
    acknowledged: int
    duplicates: int
    splits: int
    """Answers that a batch is too large."""
    faults: Counter[str]


def run(seed: int, *, keep: int = 2_000) -> Run[Outcome]:
    """One run. AssertionError, or what the client or the broker raised, if something is not as it must be."""
    largest = Random(f"{seed}/largest batch").choice((_LARGE, _LARGE, _LARGE, 3_000, 700))
    with no_task_fails_unheard():
        return simulate(_main, seed=seed, keep=keep, min_insync_replicas=2, message_max_bytes=largest)


async def _main(sim: Simulation) -> Outcome:
    chance = sim.random
    partitions = topics_of(sim)
    topics = list(dict.fromkeys(where.topic for where in partitions))
    journals = [Journal() for _ in range(chance.randint(1, 3))]
    seen: list[Seen] = [{} for _ in range(chance.randint(1, 2))]
    async with anyio.create_task_group() as readers:
        for number, one in enumerate(seen):
            readers.start_soon(read, sim, number, partitions, one)
        async with anyio.create_task_group() as writers:
            sim.chaos(every=(0.2, chance.choice((1.0, 4.0, 10.0))), lasting=(0.05, chance.choice((1.0, 5.0, 20.0))))
            for number, journal in enumerate(journals):
                writers.start_soon(_write, sim, number, topics, journal)
            await anyio.sleep(chance.uniform(10, 60))
            await sim.calm()
        await anyio.sleep(LATE)
        logs = logs_of(sim, partitions)
        await read_until(seen, logs, PATIENCE)
        readers.cancel_scope.cancel()
    check_origin(journals, logs)
    for journal in journals:
        check_once_and_in_order(journal, logs)
        check_writing(journal, logs)
    for one in seen:
        check_reading(one, logs)
    sent = [one for journal in journals for one in journal.sent]
    written = [value for log in logs.values() for _, value in log]
    return Outcome(
        sent=len(sent),
        acknowledged=sum(one.where is not None for one in sent),
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


def _settings(chance: Random, journal: Journal) -> ProducerOptions:
    """A producer as it is by default, mostly; of others the journal says what cannot be expected."""
    options = pace_of(chance)
    kind = chance.choice(("default",) * 6 + ("not idempotent", "leader alone"))
    journal.once, journal.durable = kind == "default", kind != "leader alone"
    journal.in_turn = journal.once or options["max_in_flight_requests_per_connection"] == 1
    if kind == "leader alone":
        options["acks"] = 1
    elif kind == "not idempotent":
        options["enable_idempotence"] = False
    return options


async def _write(sim: Simulation, number: int, topics: list[str], journal: Journal) -> None:
    chance = sim.chance(f"writer {number}")
    client = client_of(sim, f"writer-{number}")
    producer = client.producer(**_settings(chance, journal))
    async with client, producer, anyio.create_task_group() as waiting:
        for sequence in range(chance.randint(20, 300)):
            value = b"%d/%d/" % (number, sequence) + bytes(chance.choice((0, 0, 0, 200, 2_000)))
            key = b"%d" % chance.randrange(12) if chance.random() < 0.5 else None
            sent = Sent(value)
            journal.sent.append(sent)
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


def told(done: Run[Outcome]) -> str:
    """One line on a run."""
    value = done.value
    return (
        f"seed {done.seed}: {value.acknowledged} of {value.sent} acknowledged, {value.duplicates} twice, "
        f"{value.splits} splits, {value.faults.total()} faults, {done.seconds:.0f} s of virtual time, "
        f"trace {done.trace.digest}"
    )
