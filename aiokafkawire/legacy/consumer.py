"""A consumer in a group of Kafka 0.7, whose members share topics, and commit offsets in ZooKeeper."""

import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Literal, Self, Unpack

import anyio
import attrs

from ..argument_checks import INT32, is_integer, shown
from ..config import make_config
from ..errors import (
    ConfigError,
    ConnectionLost,
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    RequestTimeout,
    copy_for_reraise,
)
from ..network.connector import Connector, connect_tcp
from ..runtime import Owner, Runtime
from ..types import Address
from .client import LegacyClient
from .cluster import BrokerClients
from .errors import SessionExpired, legacy_error
from .group import Claim, GroupPartition, LegacyGroupMember
from .messages import LegacyMessage
from .partition_reader import PartitionReader, Turns
from .registry import LegacySubscription, check_segment
from .requests import check_legacy_topic
from .settings import LegacyConfig, LegacyOptions
from .topic_filter import compile_filter, normalize_filter
from .zookeeper import ZooKeeper

__all__ = ("LegacyConsumer", "LegacyRecord")

_RESETS: Final = ("earliest", "latest", "none")
_TROUBLE_SECONDS: Final = 60.0
"""How long a broker may be unreachable before reading fails. Usually ZooKeeper reports earlier that the broker is
down."""


@attrs.frozen
class LegacyRecord:
    """A message and its partition. Offsets are those of :class:`~aiokafkawire.legacy.messages.LegacyMessage`."""

    topic: str
    broker: int
    partition: int
    value: bytes
    offset: int
    next_offset: int


@attrs.define(eq=False)
class _Part:
    """A partition that is being read."""

    partition: GroupPartition
    committed: int | None
    """The offset that the group has committed; None if it has committed none."""
    finished: int | None = None
    """The offset to commit: after the last message that the user has finished."""
    reader: PartitionReader | None = None
    client: LegacyClient | None = None
    """The client of the reader."""
    alive: bool = True
    troubled_since: float | None = None


class LegacyConsumer:
    """A consumer in a group; use it as ``async with``, and iterate by ``async for record in consumer``.

    A message is finished once the user requests the next one. The member commits finished messages at intervals, before
    it gives up a partition, and when it leaves the group. So the next owner of a partition reads at most the current
    message again, and the messages that were compressed together with it.

    Args:
        servers: ZooKeeper's servers, as :class:`~aiokafkawire.legacy.zookeeper.ZooKeeper` takes them.
        group: the group's name.
        topics: the topics to read, or a mapping of each topic to the member's number of streams (by default 1). Each
            stream of the group gets a share of the partitions.
        pattern: instead of topics, a filter as in Java's clients of Kafka 0.7: a Java regular expression in which a
            comma means ``|`` and blanks are ignored. It selects the topics whose whole name matches, including future
            topics.
        consumer_id: the member's name in the group; a unique name by default.
        auto_offset_reset: where to begin if no offset is committed, or if the next offset is out of range: "earliest"
            or "latest". "none" begins at the earliest offset if none is committed, and raises OffsetOutOfRange if the
            next offset is out of range.
        auto_commit_interval_ms: the interval of commits; None to commit only when partitions are given up and by
            :meth:`commit`.
        session_timeout_ms: how long ZooKeeper keeps the partitions of an unresponsive member. If ZooKeeper is
            unreachable for longer, the member stops reading, and joins again when ZooKeeper is reachable.
        zookeeper_timeout_ms: how long ZooKeeper may take for one request, and to open the first session.
        rebalance_backoff_ms: how long to wait before a failed claim of a partition is retried.
        options: settings of the connections to brokers, see :class:`~aiokafkawire.legacy.settings.LegacyConfig`.

    Raises:
        ConfigError: an argument is invalid, or kazoo is not installed.

    Entering does not wait until the member has joined. If joining fails, the next call, such as reading, raises the
    error.
    """

    def __init__(
        self,
        servers: str,
        group: str,
        topics: Sequence[str] | Mapping[str, int] = (),
        *,
        pattern: str | None = None,
        consumer_id: str | None = None,
        auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest",
        auto_commit_interval_ms: int | None = 10_000,
        session_timeout_ms: int = 6_000,
        zookeeper_timeout_ms: int = 30_000,
        rebalance_backoff_ms: int = 2_000,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
        **options: Unpack[LegacyOptions],
    ) -> None:
        check_segment("the group", group)
        if auto_offset_reset not in _RESETS:
            raise ConfigError(f"auto_offset_reset must be one of {', '.join(_RESETS)}, got {auto_offset_reset!r}")
        _check_times(auto_commit_interval_ms=auto_commit_interval_ms, rebalance_backoff_ms=rebalance_backoff_ms)
        self._config = make_config(LegacyConfig, options)
        self._runtime = runtime or Runtime()
        self._reset = auto_offset_reset
        self.member: str = f"{group}_{consumer_id or self._made_up_id()}"
        """The name under which the member is registered in ZooKeeper."""
        check_segment("the consumer id", self.member)
        new_session: Callable[[], ZooKeeper] = partial(
            ZooKeeper,
            servers,
            session_timeout_ms=session_timeout_ms,
            request_timeout_ms=zookeeper_timeout_ms,
        )
        new_session()  # raises ConfigError here, and not in the background, if a setting is invalid
        interval = None if auto_commit_interval_ms is None else auto_commit_interval_ms / 1000
        self._member = LegacyGroupMember(
            new_session,
            group,
            self.member,
            _subscription(topics, pattern),
            self,
            commit_interval=interval,
            backoff=rebalance_backoff_ms / 1000,
        )
        self._clients = BrokerClients(connector=connector, runtime=self._runtime, **options)
        self._owner = Owner(self._failed)
        self._scope = anyio.CancelScope()
        self._ended = anyio.Event()
        self._fault: KafkaError | None = None
        self._parts: dict[GroupPartition, _Part] = {}
        self._woken = anyio.Event()
        self._wait = self._config.backoff_ms
        self._reading: _Part | None = None
        """The partition of the current message."""
        self._current: LegacyMessage | None = None
        self._dropped: SessionExpired | None = None
        """The error for the next :meth:`commit`: the session expired before received messages were committed."""
        self._turns = Turns()

    def _made_up_id(self) -> str:
        return f"{socket.gethostname()}-{self._runtime.wall_ms()}-{self._runtime.chance.getrandbits(32):08x}"

    async def __aenter__(self) -> Self:
        await self._owner.open()
        self._owner.spawn(self._run)
        return self

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._member.run()
        finally:
            self._ended.set()

    def _failed(self, fault: Exception) -> None:
        self._fault = fault if isinstance(fault, KafkaError) else KafkaError(f"the group member failed: {fault!r}")
        self._fault.__cause__ = fault.__cause__
        self._woken.set()
        self._member.balanced.set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()  # the member commits and leaves, in bounded time
        await self._owner.close()
        await self._clients.__aexit__(kind, error, trace)

    @property
    def assignment(self) -> list[GroupPartition]:
        """The partitions that the member reads now."""
        return sorted(self._parts)

    async def settled(self) -> None:
        """Wait until the member owns its share of the partitions.

        Raises:
            KafkaError: the member has failed.
        """
        await self._member.balanced.wait()
        self._raise_fault()

    async def commit(self) -> None:
        """Commit the finished messages and the current message.

        Raises:
            SessionExpired: the session with ZooKeeper has expired; the messages are not committed, and will be read
                again.
            ConnectionLost, RequestTimeout, ZooKeeperError: the messages may be committed or not.
        """
        self._raise_fault()
        self._finish()
        await self._member.commit()
        dropped, self._dropped = self._dropped, None
        if dropped is not None:
            raise copy_for_reraise(dropped)

    # --- reading ------------------------------------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LegacyRecord:
        """Return the next message of any partition.

        Raises:
            NodeExists: another member of the group has the same ``consumer_id``.
            OffsetOutOfRange: the committed offset was deleted, and ``auto_offset_reset`` is "none".
            CorruptBatch, RecordTooLarge: a message cannot be read.
            ConnectionLost: a broker was unreachable for a minute, or ZooKeeper was unreachable before the first session
                was open. Later ZooKeeper may be unreachable for any time: reading continues afterwards.
            WireError: a ZooKeeper node's data, or a broker's answer, is invalid in Kafka 0.7.
        """
        self._owner.require_open()
        await self._turns.pause()
        self._finish()
        while True:
            self._raise_fault()
            part = self._reading
            if part is not None and part.alive and part.reader is not None:
                self._current = part.reader.take()
                if self._current is not None:
                    self._dropped = None
                    self._wait = self._config.backoff_ms
                    return _record(part, self._current)
            self._reading = None
            if not await self._fill():
                with anyio.move_on_after(self._wait / 1000):
                    await self._woken.wait()
                self._woken = anyio.Event()
                self._wait = min(2 * self._wait, self._config.backoff_max_ms)

    def _finish(self) -> None:
        """Mark the current message as finished."""
        message, self._current = self._current, None
        if message is not None and self._reading is not None:  # a lost partition may be marked too
            self._reading.finished = message.next_offset

    def _raise_fault(self) -> None:
        if self._fault is not None:
            raise copy_for_reraise(self._fault)

    async def _fill(self) -> bool:
        """Fetch from one partition after the other until messages are found; return whether they were found."""
        for partition in list(self._parts):
            part = self._parts.get(partition)
            if part is None:
                continue
            # Move the partition to the end, so that the next round begins after it even if it cannot be read.
            self._parts[partition] = self._parts.pop(partition)
            try:
                found = await self._poll(part)
            except (ConnectionLost, RequestTimeout):
                now = self._runtime.now()
                part.troubled_since = now if part.troubled_since is None else part.troubled_since
                if part.alive and now - part.troubled_since >= _TROUBLE_SECONDS:
                    raise
                continue
            part.troubled_since = None
            if found and part.alive:
                self._reading = part
                return True
        return False

    async def _poll(self, part: _Part) -> bool:
        """Fetch messages of a partition; return whether there are any."""
        topic, broker_partition = part.partition
        client = await self._clients.of(broker_partition.broker)
        if part.reader is None or part.client is not client:  # another client: the broker has another address now
            begin = await self._begin(part, client) if part.reader is None else part.reader.position
            part.reader, part.client = client.read(topic, broker_partition.partition, begin), client
        try:
            return await part.reader.fill()
        except OffsetOutOfRange:
            if self._reset == "none":
                raise
            part.reader.seek(await self._reset_offset(part, client))
            return False

    async def _begin(self, part: _Part, client: LegacyClient) -> int:
        """Return the offset at which to start reading a partition."""
        committed = part.committed
        if committed is not None and committed < 0 and self._reset == "none":
            topic, broker_partition = part.partition
            raise legacy_error(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{topic} {broker_partition}: the group has committed {committed}"
            )
        # Java's consumers commit -1 if they could not get an offset, and treat it as out of range.
        if committed is None or committed < 0:
            return await self._reset_offset(part, client)
        return committed

    async def _reset_offset(self, part: _Part, client: LegacyClient) -> int:
        topic, broker_partition = part.partition
        return await (client.latest if self._reset == "latest" else client.earliest)(topic, broker_partition.partition)

    # --- called by the member; group.Claims describes these methods ------------------------------------------------

    def gained(self, claims: list[Claim], brokers: Mapping[int, Address]) -> None:
        self._clients.know(dict(brokers))
        for claim in claims:
            self._parts[claim.partition] = _Part(claim.partition, claim.committed)
        self._woken.set()

    def lost(self, partitions: list[GroupPartition]) -> dict[GroupPartition, int]:
        found = {partition: offset for partition, offset in self.finished().items() if partition in partitions}
        for partition in partitions:
            part = self._parts.pop(partition, None)
            if part is not None:
                part.alive = False
        self._woken.set()
        return found

    def finished(self) -> dict[GroupPartition, int]:
        return {
            partition: part.finished
            for partition, part in self._parts.items()
            if part.finished is not None and part.finished != part.committed
        }

    def expired(self, partitions: list[GroupPartition], error: SessionExpired, *, uncommitted: bool) -> None:
        has_current = self._current is not None and self._reading is not None and self._reading.alive
        if self.lost(partitions) or has_current or uncommitted:
            self._dropped = SessionExpired(f"what was read was not committed, and will be read again: {error}")

    def committed(self, offsets: Mapping[GroupPartition, int]) -> None:
        for partition, offset in offsets.items():
            if partition in self._parts:
                self._parts[partition].committed = offset


def _check_times(**given: int | None) -> None:
    for name, value in given.items():
        if value is None and name == "auto_commit_interval_ms":
            continue
        if not is_integer(value, 1, INT32):
            raise ConfigError(f"{name} must be a whole number from 1 to {INT32}, got {shown(value)}")


def _record(part: _Part, message: LegacyMessage) -> LegacyRecord:
    topic, broker_partition = part.partition
    return LegacyRecord(
        topic, broker_partition.broker, broker_partition.partition, message.value, message.offset, message.next_offset
    )


def _subscription(topics: Sequence[str] | Mapping[str, int], pattern: str | None) -> LegacySubscription:
    if not isinstance(topics, Sequence | Mapping):
        raise ConfigError(f"topics must be a sequence of names or a mapping, got {shown(topics)}")
    if isinstance(topics, str) or bool(topics) is (pattern is not None):
        raise ConfigError("a consumer reads topics, given as a sequence of names or a mapping, or else a pattern")
    if pattern is not None:
        if not isinstance(pattern, str):
            raise ConfigError(f"pattern must be a string or None, got {shown(pattern)}")
        compile_filter(pattern)  # before registering: an invalid filter prevents all rebalances
        return LegacySubscription(pattern=normalize_filter(pattern))
    for topic in topics:
        check_legacy_topic(topic)
    counts = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
    for topic, streams in counts.items():
        if isinstance(streams, bool) or not isinstance(streams, int) or streams < 1:
            raise ConfigError(f"the streams of {topic} must be a whole number from 1 on, got {streams!r}")
    return LegacySubscription(counts)
