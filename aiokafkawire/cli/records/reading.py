"""Reads assigned partitions, or a group's, and stops at the end."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import anyio

from ...consumer.consumer import Consumer
from ...types import OffsetSpec, TopicPartition
from .formats import Record
from .points import BeforeEnd, Point

__all__ = ("Handle", "read_group", "read_partitions", "resolve_point")

Handle: TypeAlias = Callable[[Iterable[Record]], bool]
"""Takes records, and returns whether to stop."""

_Reader: TypeAlias = Consumer[Any, Any]
_Offsets: TypeAlias = Mapping[TopicPartition, int]

_CHECK_EVERY: Final = 0.05
"""Seconds between two checks whether the ends are reached, which records of aborted transactions may precede."""
_COMMIT_SECONDS: Final = 5.0


async def resolve_point(
    consumer: _Reader, point: Point, earliest: _Offsets, ends: _Offsets
) -> dict[TopicPartition, int]:
    """Return the offset of a point in each partition, which is never outside of the partition's log.

    Args:
        consumer: looks up the offsets of times.
        point: the point. A time after the last record is the end.
        earliest: the first offset of each partition.
        ends: the end of each partition.
    """
    if isinstance(point, BeforeEnd):
        wanted = {partition: end - point.count for partition, end in ends.items()}
    elif isinstance(point, int):
        wanted = dict.fromkeys(ends, point)
    elif point in (OffsetSpec.EARLIEST, OffsetSpec.LATEST):
        wanted = dict(earliest if point == OffsetSpec.EARLIEST else ends)
    else:
        found = await consumer.offsets(dict.fromkeys(ends, point))
        wanted = {partition: ends[partition] if at is None else at.offset for partition, at in found.items()}
    return {partition: min(max(at, earliest[partition]), ends[partition]) for partition, at in wanted.items()}


async def read_partitions(consumer: _Reader, starts: _Offsets, ends: _Offsets | None, handle: Handle) -> None:
    """Read partitions from their starts, until ``handle`` returns true or, with ends, until these are reached."""
    unfinished = {} if ends is None else {partition: end for partition, end in ends.items() if starts[partition] < end}
    if ends is not None and not unfinished:
        return
    consumer.assign({partition: at for partition, at in starts.items() if ends is None or partition in unfinished})
    async with anyio.create_task_group() as tasks:
        if ends is not None:
            tasks.start_soon(_watch_positions, consumer, unfinished, tasks.cancel_scope)
        async for batch in consumer.batches():
            partition = TopicPartition(batch.topic, batch.partition)
            end = unfinished.get(partition)
            records: Iterable[Record] = batch
            if ends is not None and (end is None or batch.next_offset > end):
                records = [record for record in batch if end is not None and record.offset < end]
            if handle(records):
                break
            if end is not None and batch.next_offset >= end:
                consumer.pause(partition)
                del unfinished[partition]
                if not unfinished:
                    break
        tasks.cancel_scope.cancel()


async def _watch_positions(consumer: _Reader, unfinished: dict[TopicPartition, int], scope: anyio.CancelScope) -> None:
    """Cancel the scope once all positions are at their ends; no batch shows this if the last records are hidden."""
    while unfinished:
        await anyio.sleep(_CHECK_EVERY)
        for partition, end in list(unfinished.items()):
            position = consumer.position(partition)
            if position is not None and position >= end:
                consumer.pause(partition)
                del unfinished[partition]
    scope.cancel()


async def read_group(
    consumer: _Reader, *, follow: bool, handle: Handle, limit: Callable[[], int | None], commits: bool
) -> None:
    """Read the partitions that the group assigns, and commit the offsets of the records that were handled.

    Args:
        consumer: a consumer that has subscribed.
        follow: whether to wait for new records; otherwise reading ends at the ends of the assigned partitions.
        handle: takes the records, and returns whether to stop.
        limit: returns how many records ``handle`` takes at most until it stops; None for no limit.
        commits: whether to commit at the end, and if the task is cancelled; nothing is committed after an error.
    """
    try:
        async with anyio.create_task_group() as tasks:
            if not follow:
                tasks.start_soon(_watch_assignment, consumer, tasks.cancel_scope)
            if limit() is None:
                async for batch in consumer.batches():
                    handle(batch)
            else:
                while not handle(await consumer.poll(limit() or 1)):
                    pass
            tasks.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        if commits:
            with anyio.CancelScope(shield=True):
                await consumer.commit(timeout=_COMMIT_SECONDS)
        raise
    if commits:
        await consumer.commit()


async def _watch_assignment(consumer: _Reader, scope: anyio.CancelScope) -> None:
    """Cancel the scope once all assigned partitions are read up to the ends that they had when they were assigned."""
    ends: dict[TopicPartition, int] = {}
    while True:
        await anyio.sleep(_CHECK_EVERY)
        assigned = consumer.assignment
        new = [partition for partition in assigned if partition not in ends]
        if new:
            found = await consumer.offsets(dict.fromkeys(new, OffsetSpec.LATEST))
            ends |= {partition: at.offset for partition, at in found.items() if at is not None}
        elif assigned and all(_is_at_end(consumer, partition, ends[partition]) for partition in assigned):
            break
    scope.cancel()


def _is_at_end(consumer: _Reader, partition: TopicPartition, end: int) -> bool:
    position = consumer.position(partition)
    return position is not None and position >= end
