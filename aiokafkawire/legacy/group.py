"""A member of a consumer group of Kafka 0.7: it registers in ZooKeeper, claims its share, and keeps its offsets there.

Nobody leads such a group: every member watches who is there and what there is to read, and decides alone by the same
rule. What one gives up, the next can claim; until then its node stands in the way, and the claim is tried again.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import anyio
import attrs

from ..errors import ConnectionLost, RequestTimeout
from ..types import Address
from .cluster import Registry
from .errors import NodeExists, NoNode, SessionExpired
from .rebalance import decide
from .registry import BrokerPartition, GroupPaths, Subscription, parse_offset, parse_subscription
from .zookeeper import WatchEvent, ZooKeeper

__all__ = ("Claim", "Claims", "GroupMember", "Place")

Place = tuple[str, BrokerPartition]
"""A topic, and a partition of it on a broker."""

_PATIENCE_SECONDS: Final = 30.0
_SESSIONS_KEPT: Final = 100
_log: Final = logging.getLogger("aiokafkawire.legacy")
_OLD_SESSIONS: Final = 3
"""How many session timeouts a name may be taken: it may be an old session's of the same member."""


@attrs.frozen
class Claim:
    """A partition that the member has come to own.

    Attributes:
        place: which.
        thread: the name under which it was claimed.
        committed: the offset to begin at; None if the group has committed none.
    """

    place: Place
    thread: str
    committed: int | None


class Claims(Protocol):
    """What reads the partitions of a member."""

    def gained(self, claims: list[Claim], brokers: Mapping[int, Address]) -> None:
        """Read these from now on; brokers listen there."""

    def lost(self, places: list[Place]) -> dict[Place, int]:
        """Read these no longer; the offsets to commit for them."""

    def finished(self) -> dict[Place, int]:
        """The offsets to commit now, of those that have changed."""

    def committed(self, offsets: Mapping[Place, int]) -> None:
        """These are committed."""

    def expired(self, places: list[Place], error: SessionExpired, *, uncommitted: bool) -> None:
        """Read these no longer, and commit nothing for them; ``uncommitted`` if offsets of others are lost as well."""


class GroupMember:
    """Keeps one member in a group, for as long as :meth:`run` runs.

    Args:
        new_session: makes a session with ZooKeeper; after one has expired another is made, and all begins anew.
        commit_interval: how often offsets are committed, in seconds; None for never by itself.
        backoff: how long to wait before a claim that failed is tried again, in seconds.
    """

    def __init__(
        self,
        new_session: Callable[[], ZooKeeper],
        group: str,
        member: str,
        subscription: Subscription,
        claims: Claims,
        *,
        commit_interval: float | None,
        backoff: float,
    ) -> None:
        self._new_session, self._paths, self._member = new_session, GroupPaths(group), member
        self._subscription, self._claims = subscription, claims
        self._commit_interval, self._backoff = commit_interval, backoff
        self._zookeeper: ZooKeeper | None = None
        self._owned: dict[Place, str] = {}
        self._to_commit: dict[Place, int] = {}
        self._changed = anyio.Event()
        self._committing = anyio.Lock()
        self._name_free_by = 0.0
        self._sessions: deque[int] = deque(maxlen=_SESSIONS_KEPT)
        """The numbers of the last sessions."""
        self._told = f"group {group!r}, member {member!r}"
        self.balanced: anyio.Event = anyio.Event()
        """Set while the member owns all that the rule gives it."""

    async def run(self) -> None:
        """Be a member, in one session after the other, until it is cancelled; then leave.

        Once there was a session, ZooKeeper may be away for as long as it likes: the member goes on when it returns.

        Raises:
            ConnectionLost: the first session could not be opened.
            NodeExists: another member has this one's name, and keeps it.
            WireError: what others have registered cannot be read.
            ZooKeeperError: ZooKeeper refuses.
        """
        while True:
            try:
                async with self._new_session() as zookeeper:
                    if self._sessions:
                        _log.info("%s: a new ZooKeeper session is open; the member joins again", self._told)
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
                _log.warning("%s: cannot join again, trying on: %s", self._told, lost)
            await anyio.sleep(self._backoff)

    def _expired(self, error: SessionExpired) -> None:
        """Give up all partitions: others may own them by now, and what they commit is not to be overwritten."""
        told = "%s: the ZooKeeper session expired; the member gives up %d partitions, and joins again in a new one: %s"
        _log.warning(told, self._told, len(self._owned), error)
        self._claims.expired(list(self._owned), error, uncommitted=bool(self._to_commit))
        self._owned.clear()
        self._to_commit = {}
        self._unbalanced()

    async def commit(self) -> None:
        """Commit what is finished.

        Raises:
            ConnectionLost, RequestTimeout, ZooKeeperError: it may be committed or not.
        """
        if self._zookeeper is not None:
            await self._commit(self._zookeeper, self._claims.finished)

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
        """Whether a step was done to its end; one that lost its connection is begun anew, and looks what is there."""
        try:
            return await step(zookeeper)
        except (ConnectionLost, RequestTimeout):
            return False

    async def _register(self, zookeeper: ZooKeeper) -> bool:
        """Whether the member is registered by this session."""
        await zookeeper.ensure(self._paths.ids)
        path = self._paths.member(self._member)
        try:
            await zookeeper.create(path, self._subscription.encode(), ephemeral=True)
        except NodeExists:
            # Our own, whose answer was lost; or the last session's, which will go.
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
        found = await zookeeper.exists(path, self._hear)
        return found is not None and found.ephemeral_owner == zookeeper.session_id

    async def _was_ours(self, zookeeper: ZooKeeper, path: str) -> bool:
        """Whether a session before this one has made the node, or it is gone."""
        found = await zookeeper.exists(path, self._hear)
        return found is None or found.ephemeral_owner in self._sessions

    def _hear(self, event: WatchEvent) -> None:
        self._changed.set()

    async def _rebalance(self, zookeeper: ZooKeeper) -> bool:
        """Give up what is no longer ours, and claim what is; whether all of that was to be had."""
        registry = Registry(zookeeper)
        members = await self._members(zookeeper)
        if self._member not in members:
            # Somebody has deleted it, as Java's ConsoleConsumer deletes the whole group for --from-beginning.
            _log.warning("%s: its registration is gone from ZooKeeper; the member joins again", self._told)
            self._unbalanced()
            await self._release(zookeeper, list(self._owned))
            await self._register(zookeeper)
            return False
        brokers = await registry.brokers(self._hear)
        topics = await self._topics(registry, members)
        wanted = decide(self._member, members, topics)
        gone = [place for place, thread in self._owned.items() if wanted.get(place) != thread]
        if gone:
            self._unbalanced()
            await self._release(zookeeper, gone)
        self._claims.gained([], brokers)
        for place, thread in wanted.items():
            if place not in self._owned and await self._claim(zookeeper, place, thread):
                claim = Claim(place, thread, await self._committed(zookeeper, place))
                self._owned[place] = thread
                self._claims.gained([claim], brokers)
        settled = len(self._owned) == len(wanted)
        if settled:
            self.balanced.set()
        else:
            self._unbalanced()
        return settled

    def _unbalanced(self) -> None:
        if self.balanced.is_set():  # else somebody may wait for it
            self.balanced = anyio.Event()

    async def _members(self, zookeeper: ZooKeeper) -> dict[str, Subscription]:
        found: dict[str, Subscription] = {}
        try:
            names = await zookeeper.children(self._paths.ids, self._hear)
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

    async def _topics(self, registry: Registry, members: Mapping[str, Subscription]) -> dict[str, dict[int, int]]:
        """All that any member might read: what another reads matters only where this one reads it too."""
        names = set(self._subscription.topics)
        if self._subscription.pattern is not None:
            names |= set(self._subscription.of(dict.fromkeys(await registry.topics(self._hear))))
        elif any(member.pattern is not None for member in members.values()):
            names |= set(await registry.topics(self._hear))
        return {name: await registry.partitions(name, self._hear) for name in sorted(names)}

    async def _claim(self, zookeeper: ZooKeeper, place: Place, thread: str) -> bool:
        topic, partition = place
        await zookeeper.ensure(self._paths.owners(topic))
        path = self._paths.owner(topic, partition)
        try:
            await zookeeper.create(path, thread.encode(), ephemeral=True)
        except NodeExists:
            return await self._is_ours(zookeeper, path)
        return True

    async def _committed(self, zookeeper: ZooKeeper, place: Place) -> int | None:
        path = self._paths.offset(*place)
        try:
            data, _ = await zookeeper.get(path)
        except NoNode:
            return None
        return parse_offset(data, path)

    # --- giving up ---------------------------------------------------------------------------------------------------

    async def _release(self, zookeeper: ZooKeeper, places: list[Place]) -> None:
        """Commit first, so that whoever claims them next goes on where this one has ended."""
        self._to_commit |= self._claims.lost(places)
        await self._commit(zookeeper, lambda: self._to_commit)
        self._to_commit = {}
        for place in places:
            with suppress(NoNode):
                await zookeeper.delete(self._paths.owner(*place))
            self._owned.pop(place, None)

    async def _leave(self, zookeeper: ZooKeeper) -> None:
        if zookeeper.expired:
            return
        try:
            await self._release(zookeeper, list(self._owned))
            await zookeeper.delete(self._paths.member(self._member))
        except (ConnectionLost, RequestTimeout, NoNode, SessionExpired):
            pass  # closing the session takes the rest away, or its end does

    async def _commit_until(self, changed: anyio.Event, zookeeper: ZooKeeper) -> None:
        while not changed.is_set():
            with anyio.move_on_after(self._commit_interval):
                await changed.wait()
            if not changed.is_set():
                try:
                    await self._commit(zookeeper, self._claims.finished)
                except (ConnectionLost, RequestTimeout):
                    continue  # it is tried again at the next time

    async def _commit(self, zookeeper: ZooKeeper, of: Callable[[], Mapping[Place, int]]) -> None:
        """Commit one after the other; which offsets is asked when it is their turn, for some may be lost by then."""
        async with self._committing:
            offsets = of()
            for (topic, partition), offset in offsets.items():
                path, data = self._paths.offset(topic, partition), b"%d" % offset
                try:
                    await zookeeper.set(path, data)
                except NoNode:
                    await zookeeper.ensure(path)
                    await zookeeper.set(path, data)
            self._claims.committed(offsets)
