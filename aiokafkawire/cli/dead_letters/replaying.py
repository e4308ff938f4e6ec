"""Writes dead letters back to their origin topics, and commits which are replayed."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final

import anyio
import attrs

from ...config import ProducerOptions
from ...consumer.consumer import Consumer
from ...errors import KafkaError
from ...processing.failures import Failure, failure_of
from ...producer.producer import Producer
from ...records.batch import Delivery
from ...types import OffsetAndMetadata, TopicPartition
from ..error_text import error_text
from ..exit_status import CommandFailed
from ..records.formats import Record
from ..shell.output import note
from ..shell.partition_names import partition_text
from ..shell.session import Session
from .reading import Bounds, bounds_of, consumer_options, progress_bar, reader
from .replayed_offsets import ReplayedOffsets
from .selection import Selection, replayed_headers

__all__ = ("GROUP_PREFIX", "ReplayOptions", "replay")

GROUP_PREFIX: Final = "aiokafkawire-replay-"
"""How the id of the group begins whose commits say which dead letters of a topic are replayed."""
_RETENTION_MS: Final = 10 * 365 * 86_400_000
"""How long brokers keep the commits: the group has no members, and its commits would expire after seven days."""
_CHUNK_RECORDS: Final = 500
_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""The records, and their bytes, that are in flight before a commit; a crash may repeat these."""
_ORIGINS: Final = 100_000
"""The number of dead letters that are remembered, to replay each record once."""
_CHUNKS_PER_SECOND: Final = 10
"""The number of chunks per second if there is a rate."""


@attrs.frozen(kw_only=True)
class ReplayOptions:
    """The dead letters to replay, and how."""

    topic: str
    selection: Selection
    limit: int | None = None
    """The number of records after which to stop."""
    rate: int | None = None
    """The most records per second."""
    dry_run: bool = False
    quiet: bool = False


async def replay(session: Session, options: ReplayOptions) -> dict[str, int]:
    """Replay dead letters; return how many by origin topic, or with ``dry_run`` how many would be.

    Raises:
        UnknownTopicOrPartition: the topic does not exist.
        CommandFailed: a record cannot be written, or its replay cannot be committed.
        KafkaError: reading fails, or the group's commits.
    """
    replayed = _Replayed()
    try:
        return await _replay_topic(session, options, replayed)
    except CommandFailed:  # says it itself
        raise
    except BaseException:  # Ctrl-C, or an error of reading
        if replayed.committed:
            note(f"{replayed.committed:,} records are replayed and committed; another replay goes on after them")
        raise


@attrs.define
class _Replayed:
    """The number of records that are acknowledged, and of those that a commit has."""

    acknowledged: int = 0
    committed: int = 0


async def _replay_topic(session: Session, options: ReplayOptions, replayed: _Replayed) -> dict[str, int]:
    bounds = await bounds_of(session, options.topic)
    settings = consumer_options(session)
    settings["group_id"] = GROUP_PREFIX + options.topic
    settings["enable_auto_commit"] = False
    async with AsyncExitStack() as stack:
        group = await stack.enter_async_context(session.kafka.consumer(**settings))
        committed = await group.committed(bounds)
        finished = _finished(bounds, committed)
        unread = {partition: state.begin for partition, state in finished.items() if state.begin < bounds[partition][1]}
        if not unread:
            return {}
        write: _Writer | None = None
        if not options.dry_run:
            producer_settings: ProducerOptions = {**session.settings.producer, "acks": "all"}
            producer_settings.pop("transactional_id", None)
            producer = await stack.enter_async_context(session.kafka.producer(**producer_settings))
            write = _Writer(producer, group, finished, replayed)
            await write.commit(unread)  # so that missing rights are found before anything is written
        length = sum(bounds[partition][1] - begin for partition, begin in unread.items())
        advance = stack.enter_context(progress_bar(options.topic, length, quiet=options.quiet))
        return await _replay(session, options, finished, unread, write, advance)


def _finished(
    bounds: Bounds, committed: "dict[TopicPartition, OffsetAndMetadata | None]"
) -> dict[TopicPartition, ReplayedOffsets]:
    found = {}
    for partition, (first, end) in bounds.items():
        state = ReplayedOffsets.of_commit(committed.get(partition), first)
        if state.begin > end:
            group = GROUP_PREFIX + partition.topic
            raise CommandFailed(
                f"group {group!r} has committed offset {state.begin} of {partition_text(partition)}, which ends at "
                f"{end}: is it a new topic of this name? 'aiokafkawire groups delete {group}' forgets what was replayed"
            )
        found[partition] = state
    return found


async def _replay(
    session: Session,
    options: ReplayOptions,
    finished: dict[TopicPartition, ReplayedOffsets],
    unread: dict[TopicPartition, int],
    write: "_Writer | None",
    advance: Callable[[int], object],
) -> dict[str, int]:
    counts: dict[str, int] = {}
    chunk = _Chunk(options.rate)
    total = 0
    pace, replayed = _Pace(options.rate), _Origins()
    async with reader(session, options.topic, unread) as records:
        async for record in records:
            partition = TopicPartition(record.topic, record.partition)
            previous, unread[partition] = unread[partition], record.offset + 1
            advance(record.offset + 1 - previous)
            failure = failure_of(record.headers)
            if record.offset in finished[partition]:
                if failure is not None:
                    replayed.add(failure)
                continue
            if failure is None:  # no header names its topic, so it is never replayed
                chunk.passed.append((partition, previous, record.offset + 1))
            elif options.selection.has(failure, record.timestamp):
                if not replayed.add(failure):
                    chunk.passed.append((partition, previous, record.offset + 1))
                    continue
                chunk.add(partition, previous, record, failure)
                counts[failure.topic] = counts.get(failure.topic, 0) + 1
                total += 1
            else:
                continue
            if total == options.limit:
                break
            if chunk.is_full:
                if write is not None:
                    await pace.wait(total - len(chunk.letters))
                    await write(chunk)
                chunk = _Chunk(options.rate)
    if write is not None:
        await pace.wait(total - len(chunk.letters))
        await write(chunk)
    return counts


class _Origins:
    """The records whose dead letters were replayed last: a crash may have left two of one."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int, int, int, str], None] = {}

    def add(self, failure: Failure) -> bool:
        """Add the record of a dead letter; return False if another one of this record and group was added before."""
        key = (*failure.origin, failure.timestamp_ms, failure.group)
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > _ORIGINS:
            del self._seen[next(iter(self._seen))]
        return True


class _Pace:
    """Delays chunks so that no more records than the rate are written per second."""

    def __init__(self, rate: int | None) -> None:
        self._rate, self._began = rate, anyio.current_time()

    async def wait(self, written: int) -> None:
        """Wait until the next record may be written after so many."""
        if self._rate is not None:
            await anyio.sleep_until(self._began + written / self._rate)


class _Chunk:
    """Dead letters that are written together, and then committed."""

    def __init__(self, rate: int | None) -> None:
        self.letters: list[tuple[TopicPartition, int, Record, Failure]] = []
        self.passed: list[tuple[TopicPartition, int, int]] = []
        """The offsets that have nothing to be replayed."""
        self._bytes = 0
        self._limit = _CHUNK_RECORDS
        if rate is not None:
            self._limit = min(_CHUNK_RECORDS, max(1, rate // _CHUNKS_PER_SECOND))

    def add(self, partition: TopicPartition, previous: int, record: Record, failure: Failure) -> None:
        """Add a dead letter, with the offset after the record that was read before it."""
        self.letters.append((partition, previous, record, failure))
        self._bytes += len(record.raw_key or b"") + len(record.raw_value or b"")

    @property
    def is_full(self) -> bool:
        """Whether it is to be written before more records are read."""
        return len(self.letters) >= self._limit or len(self.passed) >= _CHUNK_RECORDS or self._bytes >= _CHUNK_BYTES


class _Writer:
    """Writes chunks to the origin topics, and commits for the group what is acknowledged.

    Args:
        producer: writes the records.
        group: commits.
        finished: what is finished of each partition, which is updated.
        replayed: how many records are replayed, which is updated, too.
    """

    def __init__(
        self,
        producer: Producer[Any, Any],
        group: Consumer[Any, Any],
        finished: dict[TopicPartition, ReplayedOffsets],
        replayed: _Replayed,
    ) -> None:
        self._producer, self._group, self._finished, self._replayed = producer, group, finished, replayed

    async def __call__(self, chunk: _Chunk) -> None:
        """Write the records, wait for the acknowledgements, and commit.

        Ctrl-C waits until this is done, so that it repeats nothing.

        Raises:
            CommandFailed: a record is not written; those that are acknowledged are committed. Or there is no room in
                the commit; then nothing of the chunk is written. Or the commit failed.
        """
        self._check_room(chunk)
        with anyio.CancelScope(shield=True):
            done, touched = self._replayed, {partition for partition, _, _ in chunk.passed}
            for partition, start, stop in chunk.passed:
                self._finished[partition].finish(start, stop)
            deliveries, error = await self._enqueue(chunk)
            for (partition, previous, record, _), delivery in zip(chunk.letters, deliveries, strict=False):
                try:
                    await delivery
                except KafkaError as refused:
                    error = error or (refused, record)
                else:
                    done.acknowledged += 1
                    self._finished[partition].finish(previous, record.offset + 1)
                    touched.add(partition)
            try:
                await self.commit(touched)
            except KafkaError as failed:
                repeated = done.acknowledged - done.committed
                raise CommandFailed(
                    f"{done.committed:,} records are replayed and committed, and {repeated:,} perhaps only replayed, "
                    f"so that another replay repeats these: {error_text(failed)}"
                ) from failed
            done.committed = done.acknowledged
        if error is not None:
            cause, record = error
            place = f"{record.topic}:{record.partition}, offset {record.offset}"
            raise CommandFailed(
                f"{place}: not replayed: {error_text(cause)}; {done.acknowledged:,} others are replayed and committed"
            ) from cause

    async def _enqueue(self, chunk: _Chunk) -> tuple[list[Delivery], tuple[KafkaError, Record] | None]:
        """Return the deliveries of the records, up to the first that the producer refuses, and its error."""
        deliveries: list[Delivery] = []
        for _, _, record, failure in chunk.letters:
            headers = replayed_headers(record.headers, record.topic, record.partition, record.offset)
            try:
                deliveries.append(
                    await self._producer.enqueue(failure.topic, record.raw_value, key=record.raw_key, headers=headers)
                )
            except KafkaError as error:
                return deliveries, (error, record)
        return deliveries, None

    def _check_room(self, chunk: _Chunk) -> None:
        trials: dict[TopicPartition, ReplayedOffsets] = {}
        ranges = [(partition, previous, record.offset + 1) for partition, previous, record, _ in chunk.letters]
        for partition, start, stop in [*chunk.passed, *ranges]:
            if partition not in trials:
                trials[partition] = self._finished[partition].copy()
            trials[partition].finish(start, stop)
        before = f"{self._replayed.committed:,} before are replayed and committed"
        for partition, trial in trials.items():
            if not trial.fits:
                raise CommandFailed(
                    f"the records to replay are too scattered over {partition_text(partition)}: the commit of group "
                    f"{GROUP_PREFIX + partition.topic!r} has no room for which are replayed; {before}; replay the "
                    f"others, too, from offset {trial.begin} on"
                )

    async def commit(self, partitions: "set[TopicPartition] | dict[TopicPartition, int]") -> None:
        """Commit what is finished of these partitions."""
        offsets = {partition: self._finished[partition].commit for partition in partitions}
        if offsets:
            await self._group.commit(offsets, retention_ms=_RETENTION_MS)
