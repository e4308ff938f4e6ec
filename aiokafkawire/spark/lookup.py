"""Lookups before a query reads: its partitions, and the offsets that its options specify."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import anyio

from ..client import Client
from ..cluster.list_offsets import look_up_offsets, look_up_starts
from ..cluster.retry import Deadline
from ..config import ConsumerConfig, make_config
from ..errors import ConfigError, ErrorCode, UnknownTopicOrPartition, UsageError, broker_error
from ..event_log import EventLog
from ..types import OffsetSpec, TopicPartition
from .admission import ranges_between
from .errors import DataLost
from .offsets import EARLIEST, LATEST, OffsetRange, Offsets
from .options import Bound, ReadOptions, TopicSelection
from .pushed_filters import PushedFilters

__all__ = (
    "batch_ranges",
    "data_lost",
    "ends",
    "existing",
    "log_of",
    "partitions_now",
    "partitions_of",
    "resolve",
    "until_brokers_agree",
)

_log = EventLog("aiokafkawire.spark")

_AGREE_AFTER: Final = 3.0
"""Seconds after which all brokers know a new partition that one broker knows."""
_BETWEEN: Final = 0.1
"""Seconds between two lookups."""


async def partitions_of(kafka: Client, topics: TopicSelection) -> list[TopicPartition]:
    """Return the partitions to read, sorted.

    Raises:
        BrokerError: a topic does not exist, or the client may not describe it.
        ConfigError: an assigned partition does not exist.
    """
    if topics.pattern is not None:
        found = await _partitions(kafka, None, re.compile(topics.pattern))
    else:
        found = await _partitions(kafka, topics.names or sorted({partition.topic for partition in topics.assigned}))
    missing = set(topics.assigned) - set(found)
    if missing:
        raise ConfigError(f"assign: there is no partition {', '.join(map(str, sorted(missing)))}")
    return sorted(topics.assigned or found)


async def partitions_now(
    kafka: Client, topics: TopicSelection, known: Collection[TopicPartition] = ()
) -> list[TopicPartition]:
    """Return the partitions to read, sorted. If ``known`` partitions are missing, repeat the lookup for up to 3 s.

    Brokers learn of new partitions one after the other, so the next broker may not know the same partitions yet. The
    lookup is also repeated if a topic or an assigned partition is missing. Raises as :func:`partitions_of`.
    """
    found: list[TopicPartition] = []
    for wait in until_brokers_agree():
        try:
            found = await partitions_of(kafka, topics)
        except (UnknownTopicOrPartition, ConfigError):
            if wait is None:
                raise
        else:
            if wait is None or set(known) <= set(found):
                break
        await anyio.sleep(wait)
    return found


async def existing(kafka: Client, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return those of the partitions that exist, whatever the query's options name. Raises BrokerError."""
    found: set[TopicPartition] = set()
    for wait in until_brokers_agree():
        response = await kafka._cluster.ask_metadata(sorted({each.topic for each in partitions}), _deadline(kafka))
        for topic in response.topics:
            if topic.error_code not in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise broker_error(topic.error_code, f"describing topic {topic.name!r}")
            found |= {TopicPartition(topic.name or "", each.partition_index) for each in topic.partitions}
        if wait is None or found.issuperset(partitions):
            break
        await anyio.sleep(wait)
    return found.intersection(partitions)


async def _partitions(
    kafka: Client, names: Sequence[str] | None, pattern: re.Pattern[str] | None = None
) -> list[TopicPartition]:
    """Look up the partitions of these topics, or of all that match the pattern and are not internal, in one request."""
    response = await kafka._cluster.ask_metadata(names, _deadline(kafka))
    found = []
    for topic in response.topics:
        name = topic.name or ""
        if pattern is not None and (topic.is_internal or not pattern.fullmatch(name)):
            continue
        if topic.error_code:
            error = broker_error(topic.error_code, f"describing topic {name!r}")
            error.add_note(f"the query reads topic {name!r}, which must exist before the query begins")
            raise error
        found += [TopicPartition(name, partition.partition_index) for partition in topic.partitions]
    return found


async def ends(
    kafka: Client, options: ReadOptions, partitions: Collection[TopicPartition], *, which: OffsetSpec
) -> Offsets:
    """Look up the beginnings or ends of partitions (``which``) with the query's ``isolation.level``.

    Raises:
        RequestTimeout, TopicNotReady: a leader does not answer within ``default.api.timeout.ms``.
    """
    found = await _ask(kafka, options, dict.fromkeys(partitions, which))
    return {partition: _found(partition, offset) for partition, offset in found.items()}


async def log_of(kafka: Client, partition: TopicPartition) -> tuple[int, int] | None:
    """Return a partition's first offset and its end, open transactions included; None if there is no such partition.

    Raises as :func:`ends`.
    """
    for wait in until_brokers_agree():
        try:
            known = await partitions_of(kafka, TopicSelection(names=(partition.topic,)))
        except UnknownTopicOrPartition:
            known = []
        if partition in known:
            specs = (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
            found = [await look_up_starts(kafka._cluster, {partition: spec}, _deadline(kafka)) for spec in specs]
            return found[0][partition], found[1][partition]
        if wait is None:
            break
        await anyio.sleep(wait)
    return None


async def resolve(kafka: Client, options: ReadOptions, bound: Bound, partitions: Collection[TopicPartition]) -> Offsets:
    """Resolve a query's start or end to an offset for each partition.

    Raises:
        ConfigError: the options do not name exactly the query's partitions, or a starting time is after all records.
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
    specs = {partition: OffsetSpec(offset) for partition, offset in named.items() if offset in (EARLIEST, LATEST)}
    found = await _ask(kafka, options, specs)
    return named | {partition: _found(partition, offset) for partition, offset in found.items()}


def _check_names(bound: Bound, named: Mapping[TopicPartition, int], partitions: Collection[TopicPartition]) -> None:
    if set(named) != set(partitions):
        shown = [", ".join(map(str, sorted(names))) or "none" for names in (named, partitions)]
        why = "must name exactly the partitions of the query (-2 is the earliest, -1 the latest)"
        raise ConfigError(f"{bound.option} {why}: it names {shown[0]}, but the query reads {shown[1]}")


async def _by_time(kafka: Client, options: ReadOptions, bound: Bound, times: Mapping[TopicPartition, int]) -> Offsets:
    specs = {partition: OffsetSpec.at(time) for partition, time in times.items()}
    found = await _ask(kafka, options, specs)
    late = [partition for partition, offset in found.items() if offset is None]
    if late and bound.option.startswith("starting") and options.too_late == "error":
        why = f"{', '.join(map(str, sorted(late)))} has no record at or after this time"
        raise ConfigError(f"{bound.option}: {why}; startingOffsetsByTimestampStrategy=latest begins at the end")
    found |= await _ask(kafka, options, dict.fromkeys(late, OffsetSpec.LATEST))
    # The end is after all records that were appended since the first lookup, and one of them may have the time.
    again = await _ask(kafka, options, {partition: specs[partition] for partition in late})
    found |= {partition: offset for partition, offset in again.items() if offset is not None}
    return {partition: _found(partition, offset) for partition, offset in found.items()}


async def _ask(
    kafka: Client, options: ReadOptions, specs: Mapping[TopicPartition, OffsetSpec]
) -> dict[TopicPartition, int | None]:
    if not specs:
        return {}
    isolation = make_config(ConsumerConfig, options.settings.consumer).isolation
    for wait in until_brokers_agree():
        try:
            found = await look_up_offsets(kafka._cluster, specs, _deadline(kafka), isolation)
        except UsageError as error:  # the broker may not know a new partition yet
            if wait is None:
                raise ConfigError(f"cannot look up offsets of {options.topics}: {error}") from error
            await anyio.sleep(wait)
        else:
            return {partition: None if offset is None else offset.offset for partition, offset in found.items()}
    raise AssertionError("unreachable: the last wait is None")


def _deadline(kafka: Client) -> Deadline:
    return kafka._cluster.deadline(kafka._cluster.config.default_api_timeout_ms / 1000)


def until_brokers_agree() -> Iterator[float | None]:
    """Yield for each attempt the seconds to wait if it fails; None for the last attempt."""
    waits = int(_AGREE_AFTER / _BETWEEN)
    yield from [_BETWEEN] * waits
    yield None


def _found(partition: TopicPartition, offset: int | None) -> int:
    if offset is None:
        raise DataLost(f"the leader of {partition} returned no offset for its beginning or end")
    return offset


async def batch_ranges(kafka: Client, options: ReadOptions, pushed: PushedFilters | None = None) -> list[OffsetRange]:
    """Return the offset ranges that a batch query reads, one for each partition, without what ``pushed`` leaves out.

    Raises:
        DataLost: the options name offsets that do not exist, and ``failOnDataLoss`` is on.
        ConfigError, KafkaError: as :func:`partitions_of` and :func:`resolve`.
    """
    partitions = await partitions_now(kafka, options.topics)
    start = await resolve(kafka, options, options.start, partitions)
    end = await resolve(kafka, options, options.end, partitions)
    if options.start.offsets is not None or options.end.offsets is not None:
        start, end = await _within_the_log(kafka, options, start, end)
    if pushed is not None:
        start = {partition: offset for partition, offset in start.items() if pushed.admits(partition)}
        since = {} if pushed.since is None else dict.fromkeys(start, OffsetSpec.at(pushed.since))
        start, end = pushed.narrow(start, end, await _ask(kafka, options, since))
    return ranges_between(start, end)


async def _within_the_log(kafka: Client, options: ReadOptions, start: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
    """Limit the user's offsets to those of the log; raise DataLost for other offsets if ``failOnDataLoss`` is on."""
    first = await ends(kafka, options, start, which=OffsetSpec.EARLIEST)
    last = await ends(kafka, options, start, which=OffsetSpec.LATEST)
    missing = [
        f"{partition} has offsets {first[partition]} to {last[partition]}, but {offset} was requested"
        for offsets in (start, end)
        for partition, offset in sorted(offsets.items())
        if not first[partition] <= offset <= last[partition]
    ]
    data_lost(missing, fail=options.fail_on_data_loss)

    def inside(offsets: Offsets) -> Offsets:
        return {p: max(first[p], min(offset, last[p])) for p, offset in offsets.items()}

    return inside(start), inside(end)


def data_lost(sentences: Collection[str], *, fail: bool) -> None:
    """Report the data losses that ``sentences`` describe, if any: raise DataLost if ``fail``, or else log a warning."""
    if not sentences:
        return
    message = "; ".join(sentences)
    if fail:
        raise DataLost(f"{message}. To continue without these records, set the option failOnDataLoss to false")
    _log.error("records may be lost, continuing because failOnDataLoss is false: %(reason)s", reason=message)
