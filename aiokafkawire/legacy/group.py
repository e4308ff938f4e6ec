"""A member of a consumer group of Kafka 0.7, which registers, claims partitions and commits offsets in ZooKeeper.

Such a group has no leader: every member watches members and partitions, and assigns the partitions by the same rule. A
member can claim a partition once the previous owner has deleted its claim; until then the member retries.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import anyio
import attrs

from ..errors import ConnectionLost, RequestTimeout
from ..event_log import EventLog, TroubleLog
from ..types import Address
from .cluster import Registry
from .errors import NodeExists, NoNode, SessionExpired
from .rebalance import decide
from .registry import BrokerPartition, GroupPaths, LegacySubscription, parse_offset, parse_subscription
from .zookeeper import WatchEvent, ZooKeeper

__all__ = ("Claim", "Claims", "LegacyGroupMember", "GroupPartition")

GroupPartition = tuple[str, BrokerPartition]
"""A topic, and a partition of it on a broker."""

_PATIENCE_SECONDS: Final = 30.0
_SESSIONS_KEPT: Final = 100
_log: Final = EventLog("aiokafkawire.legacy")
_OLD_SESSIONS: Final = 3
"""The number of session timeouts for which the member's name may be taken, by an old session of the same member."""


@attrs.frozen
class Claim:
    """A partition that the member has claimed.

    Attributes:
        partition: the partition.
        thread: the name of the member's stream that claimed the partition.
        committed: the offset that the group has committed; None if it has committed none.
    """

    partition: GroupPartition
    thread: str
    committed: int | None


class Claims(Protocol):
    """An object that reads a member's partitions, such as the consumer; the member calls the methods of this object."""

    def gained(self, claims: list[Claim], brokers: Mapping[int, Address]) -> None:
        """Start to read the partitions of these claims; ``brokers`` has the brokers' addresses."""

    def lost(self, partitions: list[GroupPartition]) -> dict[GroupPartition, int]:
        """Stop reading these partitions; return the offsets to commit for these partitions."""

    def finished(self) -> dict[GroupPartition, int]:
        """Return the offsets to commit: for each partition with newly finished messages, the offset after these."""

    def committed(self, offsets: Mapping[GroupPartition, int]) -> None:
        """Note that these offsets are committed."""

    def expired(self, partitions: list[GroupPartition], error: SessionExpired, *, uncommitted: bool) -> None:
        """Stop reading these partitions without a commit.

        ``uncommitted``: whether offsets of partitions that were given up before are lost, too.
        """


class LegacyGroupMember:
    """A member of a group. The membership lasts as long as :meth:`run` runs.

    Args:
        new_session: makes a session with ZooKeeper. When a session expires, the member joins again in a new session.
        commit_interval: the interval of automatic commits, in seconds; None for no automatic commits.
        backoff: how long to wait before a failed claim of a partition is retried, in seconds.
    """

    def __init__(
        self,
        new_session: Callable[[], ZooKeeper],
        group: str,
        member: str,
        subscription: LegacySubscription,
        claims: Claims,
        *,
        commit_interval: float | None,
        backoff: float,
    ) -> None:
        self._new_session, self._paths, self._member = new_session, GroupPaths(group), member
        self._subscription, self._claims = subscription, claims
        self._commit_interval, self._backoff = commit_interval, backoff
        self._zookeeper: ZooKeeper | None = None
        self._owned: dict[GroupPartition, str] = {}
        self._unsettled: set[GroupPartition] = set()
        """The partitions that nobody reads here, but whose claims this session may have: a call about them failed."""
        self._to_commit: dict[GroupPartition, int] = {}
        self._changed = anyio.Event()
        self._committing = anyio.Lock()
        self._name_free_by = 0.0
        self._sessions: deque[int] = deque(maxlen=_SESSIONS_KEPT)
        """The ids of this member's last sessions."""
        self._group = group
        self._trouble = TroubleLog(_log, anyio.current_time)
        self.balanced: anyio.Event = anyio.Event()
        """Set while the member owns all partitions that are assigned to it."""

    async def run(self) -> None:
        """Join the group, again after each expired session, until the task is cancelled; then leave the group.

        After the first session ZooKeeper may be unreachable for any time: the member joins again afterwards.

        Raises:
            ConnectionLost: the first session could not be opened.
            NodeExists: another member of the group has the same name.
            WireError: the data of a ZooKeeper node is invalid.
            ZooKeeperError: ZooKeeper returned an error.
        """
        while True:
            try:
                async with self._new_session() as zookeeper:
                    if self._sessions:
                        message = "group %(group)r, member %(member_id)r: joining again with a new ZooKeeper session"
                        if not self._trouble.ended("join", message, group=self._group, member_id=self._member):
                            _log.info(message, group=self._group, member_id=self._member)
                    self._sessions.append(zookeeper.session_id)
                    self._zookeeper = zookeeper
                    try:
                        await self._live(zookeeper)
                    finally:
                        self._zookeeper = None
                        with anyio.move_on_after(_PATIENCE_SECONDS, shield=True):
                            await self._leave(zookeeper)
            except SessionExpired as expired:
                self._expired(expired)
            except ConnectionLost as lost:
                if not self._sessions:
                    raise
                message = "group %(group)r, member %(member_id)r: cannot join again, retrying: %(error)s"
                self._trouble.failed("join", message, error=lost, group=self._group, member_id=self._member)
            await anyio.sleep(self._backoff)

    def _expired(self, error: SessionExpired) -> None:
        """Give up all partitions without a commit, since other members may already own them and have committed."""
        _log.warning(
            "group %(group)r, member %(member_id)r: the ZooKeeper session expired; the member gives up %(count)d "
            "partitions and joins again: %(error)s",
            count=len(self._owned),
            error=error,
            group=self._group,
            member_id=self._member,
        )
        self._claims.expired(list(self._owned), error, uncommitted=bool(self._to_commit))
        self._owned.clear()
        self._unsettled.clear()
        self._to_commit = {}
        self._unbalanced()

    async def commit(self) -> None:
        """Commit the offsets after finished messages.

        Raises:
            ConnectionLost, RequestTimeout, ZooKeeperError: the offsets may be committed or not.
        """
        if self._zookeeper is not None:
            await self._commit(self._zookeeper, lambda: {**self._to_commit, **self._claims.finished()})

    # --- one session ------------------------------------------------------------------------------------------------

    async def _live(self, zookeeper: ZooKeeper) -> None:
        self._name_free_by = anyio.current_time() + _OLD_SESSIONS * zookeeper.session_timeout
        while True:
            if await self._tried(zookeeper, self._register):
                break
            await anyio.sleep(self._backoff)
        while True:
            self._changed = anyio.Event()
            settled = await self._tried(zookeeper, self._rebalance)
            with anyio.move_on_after(None if settled else self._backoff):
                await self._commit_until(self._changed, zookeeper)

    async def _tried(self, zookeeper: ZooKeeper, step: Callable[[ZooKeeper], Awaitable[bool]]) -> bool:
        """Call ``step`` and return its result; return False, for a retry, if it fails in a way that may pass.

        That is a lost connection, a timeout, or the deletion of the group by another client at the same time.
        """
        try:
            return await step(zookeeper)
        except (ConnectionLost, RequestTimeout, NoNode):
            return False

    async def _register(self, zookeeper: ZooKeeper) -> bool:
        """Register the member; return whether it is registered by this session."""
        await zookeeper.ensure(self._paths.ids)
        path = self._paths.member(self._member)
        try:
            await zookeeper.create(path, self._subscription.encode(), ephemeral=True)
        except NodeExists:
            # The node is this session's if the answer to create was lost, or the last session's, which will be deleted.
            if await self._is_ours(zookeeper, path):
                return True
            if anyio.current_time() < self._name_free_by or await self._was_ours(zookeeper, path):
                return False
            raise NodeExists(
                f"another member of group {self._paths.group!r} is registered as {self._member!r}:"
                " every member has to have a consumer_id of its own"
            ) from None
        return True

    async def _is_ours(self, zookeeper: ZooKeeper, path: str) -> bool:
        found = await zookeeper.exists(path, self._on_change)
        return found is not None and found.ephemeral_owner == zookeeper.session_id

    async def _was_ours(self, zookeeper: ZooKeeper, path: str) -> bool:
        """Return whether the node was created by an earlier session of this member, or does not exist any more."""
        found = await zookeeper.exists(path, self._on_change)
        return found is None or found.ephemeral_owner in self._sessions

    def _on_change(self, event: WatchEvent) -> None:
        self._changed.set()

    async def _rebalance(self, zookeeper: ZooKeeper) -> bool:
        """Give up and claim partitions as the assignment requires; return whether the member owns all of its share."""
        registry = Registry(zookeeper)
        members = await self._members(zookeeper)
        if self._member not in members:
            # Another client has deleted the registration. Java's ConsoleConsumer deletes the whole group for
            # --from-beginning.
            message = "group %(group)r, member %(member_id)r: the registration is gone from ZooKeeper; joining again"
            _log.warning(message, group=self._group, member_id=self._member)
            self._unbalanced()
            await self._release(zookeeper, list(self._owned))
            await self._register(zookeeper)
            return False
        brokers = await registry.brokers(self._on_change)
        topics = await self._topics(registry, members)
        wanted = decide(self._member, members, topics)
        gone = [partition for partition, thread in self._owned.items() if wanted.get(partition) != thread]
        if gone or self._unsettled:
            self._unbalanced()
            await self._release(zookeeper, gone)
        self._claims.gained([], brokers)
        for partition, thread in wanted.items():
            if partition not in self._owned and await self._claim(zookeeper, partition, thread):
                claim = Claim(partition, thread, await self._committed(zookeeper, partition))
                self._owned[partition] = thread
                self._unsettled.discard(partition)
                self._claims.gained([claim], brokers)
        settled = len(self._owned) == len(wanted)
        if settled:
            self.balanced.set()
        else:
            self._unbalanced()
        return settled

    def _unbalanced(self) -> None:
        if self.balanced.is_set():  # if it is not set, tasks may wait for this event
            self.balanced = anyio.Event()

    async def _members(self, zookeeper: ZooKeeper) -> dict[str, LegacySubscription]:
        found: dict[str, LegacySubscription] = {}
        try:
            names = await zookeeper.children(self._paths.ids, self._on_change)
        except NoNode:
            return {}
        for name in names:
            path = self._paths.member(name)
            try:
                data, _ = await zookeeper.get(path)
            except NoNode:
                continue
            found[name] = parse_subscription(data, path)
        return found

    async def _topics(self, registry: Registry, members: Mapping[str, LegacySubscription]) -> dict[str, dict[int, int]]:
        """Return the partitions of all topics that this member may read, by topic and broker."""
        names = set(self._subscription.topics)
        if self._subscription.pattern is not None:
            names |= set(self._subscription.of(dict.fromkeys(await registry.topics(self._on_change))))
        elif any(member.pattern is not None for member in members.values()):
            names |= set(await registry.topics(self._on_change))
        return {name: await registry.partitions(name, self._on_change) for name in sorted(names)}

    async def _claim(self, zookeeper: ZooKeeper, partition: GroupPartition, thread: str) -> bool:
        topic, broker_partition = partition
        await zookeeper.ensure(self._paths.owners(topic))
        path = self._paths.owner(topic, broker_partition)
        self._unsettled.add(partition)
        try:
            await zookeeper.create(path, thread.encode(), ephemeral=True)
        except NodeExists:
            if not await self._is_ours(zookeeper, path):
                self._unsettled.discard(partition)
                return False
        return True

    async def _committed(self, zookeeper: ZooKeeper, partition: GroupPartition) -> int | None:
        path = self._paths.offset(*partition)
        try:
            data, _ = await zookeeper.get(path)
        except NoNode:
            return None
        return parse_offset(data, path)

    # --- giving up ---------------------------------------------------------------------------------------------------

    async def _release(self, zookeeper: ZooKeeper, partitions: list[GroupPartition]) -> None:
        """Commit the partitions' offsets, from which the next owners continue; then delete the claims.

        If that fails, the next call goes on with it.
        """
        self._to_commit |= self._claims.lost(partitions)
        for partition in partitions:
            self._owned.pop(partition, None)
            self._unsettled.add(partition)
        await self._commit(zookeeper, lambda: self._to_commit)
        self._to_commit = {}
        for partition in sorted(self._unsettled):
            path = self._paths.owner(*partition)
            # An earlier attempt may have deleted the claim, and another member may have made its own.
            found = await zookeeper.exists(path)
            if found is not None and found.ephemeral_owner == zookeeper.session_id:
                with suppress(NoNode):
                    await zookeeper.delete(path)
            self._unsettled.discard(partition)

    async def _leave(self, zookeeper: ZooKeeper) -> None:
        if zookeeper.expired:
            return
        try:
            await self._release(zookeeper, list(self._owned))
            await zookeeper.delete(self._paths.member(self._member))
        except (ConnectionLost, RequestTimeout, NoNode, SessionExpired):
            pass  # the remaining nodes are deleted with the session

    async def _commit_until(self, changed: anyio.Event, zookeeper: ZooKeeper) -> None:
        while not changed.is_set():
            with anyio.move_on_after(self._commit_interval):
                await changed.wait()
            if not changed.is_set():
                try:
                    await self._commit(zookeeper, self._claims.finished)
                except (ConnectionLost, RequestTimeout, NoNode):
                    continue  # retry after the next interval

    async def _commit(self, zookeeper: ZooKeeper, of: Callable[[], Mapping[GroupPartition, int]]) -> None:
        """Commit the result of ``of``; call it once no other commit runs, as partitions may be lost while waiting."""
        async with self._committing:
            offsets = of()
            for partition, offset in offsets.items():
                path, data = self._paths.offset(*partition), b"%d" % offset
                try:
                    await zookeeper.set(path, data)
                except NoNode:
                    await zookeeper.ensure(path)
                    await zookeeper.set(path, data)
            self._claims.committed(offsets)
