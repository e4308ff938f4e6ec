"""Reads the dead letters of a topic, with a progress bar on a terminal."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

import click

from ...config import ConsumerOptions
from ...errors import UsageError
from ...types import OffsetSpec, TopicPartition
from ..exit_status import CommandFailed
from ..records.formats import Record
from ..shell.session import Session

__all__ = ("Bounds", "bounds_of", "consumer_options", "progress_bar", "read_letter", "reader")

Bounds = Mapping[TopicPartition, tuple[int, int]]
"""The first offset of each partition, and its end."""


async def bounds_of(session: Session, topic: str) -> Bounds:
    """Return the first offset and the end of each partition of a topic.

    Raises:
        UnknownTopicOrPartition: the topic does not exist.
        KafkaError: the offsets cannot be looked up.
    """
    admin = session.kafka.admin
    described = await admin.describe_topic(topic)
    partitions = [TopicPartition(topic, one.index) for one in described.partitions]
    first, end = [
        await admin.list_offsets(dict.fromkeys(partitions, spec)) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
    ]
    found = {}
    for partition in partitions:
        begins, ends = first[partition], end[partition]
        assert begins is not None
        assert ends is not None
        found[partition] = (begins.offset, ends.offset)
    return found


def consumer_options(session: Session) -> ConsumerOptions:
    """Return the settings for consumers, without those of a group."""
    options: ConsumerOptions = {**session.settings.consumer}
    for name in ("group_id", "group_instance_id", "auto_offset_reset", "enable_auto_commit"):
        options.pop(name, None)  # type: ignore[misc]
    return options


@asynccontextmanager
async def reader(
    session: Session, topic: str, starts: Mapping[TopicPartition, int]
) -> AsyncIterator[AsyncIterator[Record]]:
    """Provide the records of a topic from these offsets up to the ends that its partitions have now."""
    options = consumer_options(session)
    options["auto_offset_reset"] = "earliest"  # retention may delete records meanwhile
    async with session.kafka.read_records(topic, start=starts, **options) as records:
        yield records


async def read_letter(session: Session, topic: str, partition: int, offset: int) -> Record:
    """Return the record at an offset.

    Raises:
        UnknownTopicOrPartition: the topic does not exist.
        UsageError: it has no such partition.
        CommandFailed: there is no record at the offset.
    """
    bounds = await bounds_of(session, topic)
    wanted = TopicPartition(topic, partition)
    if wanted not in bounds:
        raise UsageError(f"topic {topic!r} has no partition {partition}: it has {len(bounds)}")
    first, end = bounds[wanted]
    if first <= offset < end:
        async with session.kafka.read_records(topic, start={wanted: offset}, **consumer_options(session)) as records:
            async for record in records:
                if record.offset == offset:
                    return record
                break
    raise CommandFailed(
        f"{topic}:{partition} has no record at offset {offset}: its offsets are from {first} to before {end}"
    )


@contextmanager
def progress_bar(topic: str, length: int, *, quiet: bool) -> Iterator[Callable[[int], object]]:
    """Show a progress bar on a terminal, and provide the function that advances it by records."""
    if quiet or not length or not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=length, label=topic, file=sys.stderr, update_min_steps=max(1, length // 200)) as bar:
        yield bar.update
