"""What is asked of the cluster before a query reads: which partitions there are, and which offsets options mean."""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import anyio

from ..client import Client
from ..errors import BrokerError, ConfigError, UsageError
from ..types import OffsetSpec, TopicPartition
from .admission import ranges_between
from .errors import DataLost
from .offsets import EARLIEST, LATEST, OffsetRange, Offsets
from .options import Bound, ReadOptions, TopicSelection

__all__ = ("batch_ranges", "data_lost", "ends", "partitions_now", "partitions_of", "resolve")

_log = logging.getLogger("aiokafkawire.spark")

_AGREE_AFTER: Final = 3.0
"""Seconds after which all brokers know of a partition that one of them has named."""
_BETWEEN: Final = 0.1
"""Seconds between two questions."""


async def partitions_of(kafka: Client, topics: TopicSelection) -> list[TopicPartition]:
    """The partitions that are read, sorted.

    Raises:
        BrokerError: a topic is not there, or may not be seen.
        ConfigError: a partition that was assigned is not there.
    """
    if topics.pattern is not None:
        pattern = re.compile(topics.pattern)
        names: Iterable[str] = [name for name in await kafka.admin.list_topics() if pattern.fullmatch(name)]
    else:
        names = topics.names or sorted({where.topic for where in topics.assigned})
    found = [where for name in names for where in await _partitions(kafka, name)]
    missing = set(topics.assigned) - set(found)
    if missing:
        raise ConfigError(f"assign: there is no partition {', '.join(map(str, sorted(missing)))}")
    return sorted(topics.assigned or found)


async def partitions_now(
    kafka: Client, topics: TopicSelection, known: Collection[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions that are read. If ``known`` ones are missing, ask again for a while before believing it.

    Brokers hear of new partitions one after the other, so the next broker that is asked may not know of them yet.

    Raises:
        KafkaError: as :func:`partitions_of`.
    """
    found: list[TopicPartition] = []
    for wait in _until_brokers_agree():
        found = await partitions_of(kafka, topics)
        if wait is None or set(known) <= set(found):
            break
        await anyio.sleep(wait)
    return found


async def _partitions(kafka: Client, topic: str) -> list[TopicPartition]:
    try:
        described = await kafka.admin.describe_topic(topic)
    except BrokerError as error:
        error.add_note(f"the query reads topic {topic!r}, which has to be there before it begins")
        raise
    return [TopicPartition(topic, partition.index) for partition in described.partitions]


async def ends(
    kafka: Client, options: ReadOptions, partitions: Collection[TopicPartition], *, which: OffsetSpec
) -> Offsets:
    """Where partitions begin or end, for a reader of the query's ``isolation.level``.

    Raises:
        RequestTimeout, TopicNotReady: a leader does not answer within ``default.api.timeout.ms``.
    """
    return {
        where: _found(where, at) for where, at in (await _ask(kafka, options, dict.fromkeys(partitions, which))).items()
    }


async def resolve(kafka: Client, options: ReadOptions, bound: Bound, partitions: Collection[TopicPartition]) -> Offsets:
    """The offset of each partition that the options mean.

    Raises:
        ConfigError: they do not name exactly the query's partitions, or no record is as late as a starting time.
        RequestTimeout, TopicNotReady: as :func:`ends`.
    """
    if bound.everywhere is not None:
        which = OffsetSpec.EARLIEST if bound.everywhere == EARLIEST else OffsetSpec.LATEST
        return await ends(kafka, options, partitions, which=which)
    if bound.time is not None:
        return await _by_time(kafka, options, bound, dict.fromkeys(partitions, bound.time))
    named = bound.offsets if bound.offsets is not None else bound.times
    assert named is not None
    _check_names(bound, named, partitions)
    if bound.times is not None:
        return await _by_time(kafka, options, bound, bound.times)
    specs = {where: OffsetSpec(at) for where, at in named.items() if at in (EARLIEST, LATEST)}
    return named | {where: _found(where, at) for where, at in (await _ask(kafka, options, specs)).items()}


def _check_names(bound: Bound, named: Mapping[TopicPartition, int], partitions: Collection[TopicPartition]) -> None:
    if set(named) != set(partitions):
        shown = [", ".join(map(str, sorted(some))) or "none" for some in (named, partitions)]
        why = "must name exactly the partitions that are read (-2 is the earliest, -1 the latest)"
        raise ConfigError(f"{bound.option} {why}: it names {shown[0]}, and read are {shown[1]}")


async def _by_time(kafka: Client, options: ReadOptions, bound: Bound, times: Mapping[TopicPartition, int]) -> Offsets:
    found = await _ask(kafka, options, {where: OffsetSpec.at(time) for where, time in times.items()})
    late = [where for where, at in found.items() if at is None]
    if late and bound.option.startswith("starting") and options.too_late == "error":
        why = f"no record of {', '.join(map(str, sorted(late)))} is as late as that"
        raise ConfigError(f"{bound.option}: {why}; startingOffsetsByTimestampStrategy=latest would begin at the end")
    found |= await _ask(kafka, options, dict.fromkeys(late, OffsetSpec.LATEST))
    return {where: _found(where, at) for where, at in found.items()}


async def _ask(
    kafka: Client, options: ReadOptions, specs: Mapping[TopicPartition, OffsetSpec]
) -> dict[TopicPartition, int | None]:
    if not specs:
        return {}
    # A consumer, not the admin: who reads committed records alone has another end.
    async with kafka.consumer(**options.settings.consumer) as consumer:
        for wait in _until_brokers_agree():
            try:
                found = await consumer.offsets(specs)
            except UsageError as error:  # the broker that was asked may not know of a new partition yet
                if wait is None:
                    raise ConfigError(f"offsets of {options.topics} cannot be looked up: {error}") from error
                await anyio.sleep(wait)
            else:
                return {where: None if at is None else at.offset for where, at in found.items()}
    raise AssertionError("unreachable: the last wait is None")


def _until_brokers_agree() -> Iterator[float | None]:
    """Yield how long to wait before the next attempt, and None for the last one."""
    waits = int(_AGREE_AFTER / _BETWEEN)
    yield from [_BETWEEN] * waits
    yield None


def _found(where: TopicPartition, at: int | None) -> int:
    if at is None:
        raise DataLost(f"{where} has neither beginning nor end: its leader does not say")
    return at


async def batch_ranges(kafka: Client, options: ReadOptions) -> list[OffsetRange]:
    """What a batch query reads, before it is split up.

    Raises:
        DataLost: offsets are asked for that are not there, and ``failOnDataLoss`` is on.
        ConfigError, KafkaError: as :func:`partitions_of` and :func:`resolve`.
    """
    partitions = await partitions_of(kafka, options.topics)
    start = await resolve(kafka, options, options.start, partitions)
    end = await resolve(kafka, options, options.end, partitions)
    if options.start.offsets is not None or options.end.offsets is not None:
        start, end = await _within_the_log(kafka, options, start, end)
    return ranges_between(start, end)


async def _within_the_log(kafka: Client, options: ReadOptions, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
    """Offsets that a user named may not be there, which is better told before any task runs."""
    first = await ends(kafka, options, start, which=OffsetSpec.EARLIEST)
    last = await ends(kafka, options, start, which=OffsetSpec.LATEST)
    out = [
        f"{where} has offsets {first[where]} to {last[where]}, and {at} was asked for"
        for offsets in (start, end)
        for where, at in sorted(offsets.items())
        if not first[where] <= at <= last[where]
    ]
    data_lost(out, fail=options.fail_on_data_loss)

    def inside(offsets: Offsets) -> Offsets:
        return {where: max(first[where], min(at, last[where])) for where, at in offsets.items()}

    return inside(start), inside(end)


def data_lost(sentences: Collection[str], *, fail: bool) -> None:
    """Say what is lost: as an error, or with ``failOnDataLoss`` off in the log.

    Raises:
        DataLost: there is something, and ``fail``.
    """
    if not sentences:
        return
    told = "; ".join(sentences)
    if fail:
        raise DataLost(f"{told}. To go on without, set the option failOnDataLoss to false")
    _log.warning("records may be lost, and failOnDataLoss is off: %s", told)
