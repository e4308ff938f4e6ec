"""``aiokafkawire demo``: a year of flights through Kafka and back, counted and checked."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs

from ..client import Client
from ..config import CompressionType
from ..errors import KafkaError, TopicAlreadyExists, UnknownTopicOrPartition
from ..testing.broker import Broker
from .delivery_check import Flow
from .exit_status import CommandFailed, run_until_signalled
from .flights import FLIGHTS, Flight, data_folder, read_airlines, read_flights
from .report import Report
from .streaming import TopicReader, TopicStream

__all__ = ("DemoOptions", "run_demo")

PARTITIONS: Final = 6

_CLEANING_UP: Final = 10.0
"""The timeout in seconds for deleting the topic at the end, also after Ctrl-C."""


@attrs.frozen(kw_only=True)
class DemoOptions:
    """The arguments of the demo."""

    bootstrap: str | None = None
    topic: str | None = None
    compression: CompressionType = "none"
    limit: int | None = None
    keep_topic: bool = False
    timeout: float = 10.0


async def run_demo(options: DemoOptions) -> int:
    """Run the demo to its end or to a signal, and return the exit status.

    Raises:
        CommandFailed: records were lost, duplicated, changed or out of order, or no records were received for too long.
        KafkaError: the cluster cannot be reached, or answers with an error.
        FileNotFoundError: the package with the flights is not installed.
    """
    folder, report = data_folder(), Report()
    # A signal ends the streaming before the broker, so that the client can still close its connections cleanly.
    async with _cluster(options) as bootstrap:
        received = await run_until_signalled(partial(_demo, bootstrap, folder, options, report))
    return 0 if received is None else 128 + received


async def _demo(bootstrap: str, folder: Path, options: DemoOptions, report: Report) -> None:
    async with (
        Client(bootstrap, bootstrap_timeout_ms=int(options.timeout * 1000)) as kafka,
        _topic(kafka, options, report) as topic,
    ):
        cluster = f"the in-process broker at {bootstrap}" if options.bootstrap is None else bootstrap
        report.say(f"Flights through topic {topic} on {cluster}, compression: {options.compression}")
        stream = TopicStream(kafka, topic, options.compression)
        with closing(read_flights(folder, options.limit)) as flights:
            produced, consumed, reader = await _stream(stream, flights, options, report)
    report.carriers(reader.delays.carriers, reader.delays.total, read_airlines(folder))
    report.throughput((produced, consumed))
    differences = consumed.ledger.differences(produced.ledger)
    if differences:
        raise CommandFailed(f"the check failed: {'; '.join(differences)}")
    keys = consumed.ledger.keys
    report.say(f"Check passed: every record came back exactly once, unchanged, and in order for each of {keys:,} keys.")


async def _stream(
    stream: TopicStream, flights: Iterator[Flight], options: DemoOptions, report: Report
) -> tuple[Flow, Flow, TopicReader]:
    """Produce and consume at the same time, until the consumer has read the last produced record."""
    expected = FLIGHTS if options.limit is None else min(options.limit, FLIGHTS)
    reader = await stream.reader()
    now = anyio.current_time()
    produced, consumed = Flow("produced", now), Flow("consumed", now, reader.ledger)
    with report.bars((produced, consumed), expected) as bars:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bars.keep_drawing)
            tasks.start_soon(stream.produce, flights, produced, reader)
            await stream.consume(consumed, reader)
            tasks.cancel_scope.cancel()
    return produced, consumed, reader


@asynccontextmanager
async def _cluster(options: DemoOptions) -> AsyncIterator[str]:
    """Yield the given bootstrap address, or that of a temporary in-process broker."""
    if options.bootstrap is not None:
        yield options.bootstrap
        return
    async with Broker() as broker:
        yield broker.bootstrap


@asynccontextmanager
async def _topic(kafka: Client, options: DemoOptions, report: Report) -> AsyncIterator[str]:
    """Create the topic if it does not exist, and yield its name; delete a created topic afterwards."""
    name = options.topic or f"flights-{time.time_ns() // 1_000_000}"
    try:
        await kafka.admin.create_topics({name: PARTITIONS})
        created = True
    except TopicAlreadyExists:
        if options.topic is None:
            raise
        created = False
    try:
        yield name
    finally:
        if created and options.bootstrap is not None and not options.keep_topic:
            with anyio.CancelScope(shield=True):
                await _delete(kafka, name, report)


async def _delete(kafka: Client, name: str, report: Report) -> None:
    try:
        await kafka.admin.delete_topics([name], timeout=_CLEANING_UP)
    except UnknownTopicOrPartition:
        pass
    except KafkaError as error:
        report.say(f"Topic {name} was not deleted: {error}")
