"""The consumer: what users call."""

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import anyio

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.offsets import look_up_offsets
from ..cluster.retry import Deadline
from ..config import ConsumerConfig
from ..errors import UsageError
from ..types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    OffsetSpec,
    TopicPartition,
    check_partition,
    check_start,
    check_topic_name,
)
from .fetcher import Fetcher
from .positions import Positions
from .reading import ConsumerBatch, ReadsRecords

if TYPE_CHECKING:  # many a consumer has no group
    from .group_offsets import GroupOffsets

__all__ = ("Consumer", "ConsumerBatch")

K = TypeVar("K")
V = TypeVar("V")

_RESETS = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST, "none": None}


class Consumer(ReadsRecords[K, V]):
    """Reads records; made by :meth:`Client.consumer`, and used as ``async with``.

    Iterate it for records, or :meth:`batches` for whole batches. An error ends neither: enter the loop again, and
    it goes on where it was. One task iterates at a time.

    With a ``group_id``, partitions begin at what the group has committed, and :meth:`commit` commits; which ones are
    read is up to the caller, for it joins no group.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        lane: str,
        topics: tuple[str, ...] = (),
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
    ) -> None:
        for topic in topics:
            check_topic_name(topic)
        group = None
        if config.group_id is not None:
            from .group_offsets import GroupOffsets

            group = GroupOffsets(cluster, config.group_id)
        self._group = group
        positions = Positions(_RESETS[config.auto_offset_reset], in_group=group is not None)
        fetcher = Fetcher(cluster, config, positions, lane, group)
        super().__init__(cluster, config, positions, fetcher, key_deserializer, value_deserializer)
        self._topics = topics
        self._following = anyio.CancelScope()

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this consumer is {self._state}: ask the client for another")
        self._cluster.owner.spawn(self._fetcher.run)
        self._state = "open"
        try:
            if self._topics:
                await self._take_all_partitions()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop fetching. May be called again."""
        if self._state == "open":
            self._state = "closed"
            self._following.cancel()
            await self._fetcher.close()

    # --- what to read ----------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int | OffsetSpec]) -> None:
        """Read these partitions and no others.

        A mapping says where each begins: an offset or an OffsetSpec. Otherwise partitions that were assigned before
        keep their position, and new ones begin at what the group has committed, or where ``auto_offset_reset`` says.

        Raises:
            UsageError: the topics are given already, or what is given is no partition.
        """
        self._require_open()
        if self._topics:
            raise UsageError("this consumer reads all partitions of its topics: make one without topics to assign")
        starts = dict(partitions) if isinstance(partitions, Mapping) else dict.fromkeys(partitions)
        checked: dict[TopicPartition, int | OffsetSpec | None] = {}
        for given, start in starts.items():
            where = check_partition(given)
            if start is not None:
                check_start(where, start)
            checked[where] = start
        self._positions.assign(checked)
        self._fetcher.wake()

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        """The partitions that are read."""
        return self._positions.assigned

    def seek(self, partition: TopicPartition, to: int | OffsetSpec) -> None:
        """Go on from an offset, or from where an OffsetSpec leads once it was looked up.

        Raises:
            UsageError: the partition is not assigned, or the offset is negative.
        """
        self._require_open()
        check_start(partition, to)
        self._positions.seek(partition, to)
        self._fetcher.wake()

    def position(self, partition: TopicPartition) -> int | None:
        """The offset after the last record handed out; None while the first is being looked up.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(partition).position

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions until :meth:`resume`; what was fetched is kept.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo :meth:`pause`.

        Raises:
            UsageError: one is not assigned.
        """
        self._set_paused(partitions, paused=False)

    def _set_paused(self, partitions: Iterable[TopicPartition], *, paused: bool) -> None:
        for place in [self._positions.require(partition) for partition in partitions]:
            place.paused = paused
        self._fetcher.wake()
        self._fetcher.tell()

    @property
    def paused(self) -> tuple[TopicPartition, ...]:
        """The partitions that :meth:`pause` named."""
        return tuple(place.where for place in self._positions if place.paused)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The end of the partition's log when it was last fetched; None before the first fetch.

        Raises:
            UsageError: the partition is not assigned.
        """
        return self._positions.require(partition).high_watermark

    async def offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look offsets up: the beginning, the end, or by time; None where no record is that late.

        ``timeout`` is in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout, TopicNotReady: not all were found in time.
            UsageError: a topic has no such partition.
        """
        asked = {check_partition(where): spec for where, spec in specs.items()}
        return await look_up_offsets(self._cluster, asked, self._deadline(timeout), self._config.isolation)

    def _deadline(self, timeout: float | None) -> Deadline:
        allowed = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        return self._cluster.deadline(allowed)

    # --- the group's offsets ---------------------------------------------------------------------------

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where to read on, after the last record handed out, to be committed as it is.

        Partitions whose position is still being looked up are not in it.
        """
        return {
            place.where: OffsetAndMetadata(place.position, leader_epoch=place.leader_epoch)
            for place in self._positions
            if place.position is not None
        }

    def group_metadata(self) -> GroupMetadata:
        """Who commits, for ``transaction.commit_offsets(offsets, group=...)`` (KIP-447).

        Raises:
            UsageError: the consumer was made without a ``group_id``.
        """
        return self._in_group().group

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets for the group: where it reads on, once this consumer is gone.

        Args:
            offsets: of the next record to read; without them :meth:`positions`.
            timeout: in seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            UnknownMemberId: the group has members, and only they commit.
            OffsetMetadataTooLarge, GroupAuthorizationFailed, ...: what the broker answers; some may be committed.
            UsageError: the consumer was made without a ``group_id``, or what is given is no offset.
        """
        self._require_open()
        group = self._in_group()
        given = self.positions() if offsets is None else offsets
        if given:
            await group.commit(given, self._deadline(timeout))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for these partitions; None where that is nothing.

        An offset that an open transaction commits is waited for (KIP-447), on brokers from 2.5 on. ``timeout`` is in
        seconds, ``default_api_timeout_ms`` if not given.

        Raises:
            RequestTimeout: not in time; the message has the last cause.
            GroupAuthorizationFailed, ...: what the broker answers.
            UsageError: the consumer was made without a ``group_id``.
        """
        self._require_open()
        group, asked = self._in_group(), [check_partition(where) for where in partitions]
        return await group.committed(asked, self._deadline(timeout)) if asked else {}

    def _in_group(self) -> "GroupOffsets":
        if self._group is None:
            raise UsageError("offsets are committed for a group: make the consumer with a group_id")
        return self._group

    # --- all partitions of topics ----------------------------------------------------------------------

    async def _take_all_partitions(self) -> None:
        """A consumer that joins no group reads every partition of its topics."""
        deadline = self._deadline(None)
        starts: dict[TopicPartition, int | OffsetSpec | None] = {}
        for name in self._topics:
            known = await self._cluster.topic(name, deadline)
            starts |= {TopicPartition(name, partition.index): None for partition in known.partitions}
        self._positions.assign(starts)
        self._fetcher.wake()
        self._cluster.owner.spawn(self._follow_new_partitions)

    async def _follow_new_partitions(self) -> None:
        snapshot = self._cluster.snapshot
        with self._following:
            while True:
                snapshot = await self._cluster.newer(snapshot)
                self._take_new_partitions(snapshot)

    def _take_new_partitions(self, snapshot: Snapshot) -> None:
        known = set(self.assignment)
        found = [
            TopicPartition(name, partition.index)
            for name in self._topics
            if (topic := snapshot.topics.get(name)) is not None
            for partition in topic.partitions
        ]
        appeared = [where for where in found if where not in known]
        if appeared:
            self._positions.appeared(appeared)
            self._fetcher.wake()
