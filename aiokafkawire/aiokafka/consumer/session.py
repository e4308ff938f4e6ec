"""Reads a subscription, or partitions assigned by hand, for a consumer of aiokafka's API."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import anyio
import attrs

from ...cluster.retry import Deadline
from ...consumer.consumer import Consumer
from ...consumer.topic_subscription import RebalanceListeners, RebalancePatience, TopicSubscription
from ...errors import KafkaError
from ...event_log import EventLog
from ...runtime import finish, is_being_cancelled, stray_cancellation
from ...types import OffsetSpec, TopicPartition
from ..abc import ConsumerRebalanceListener
from .shared_reader import SharedReader

__all__ = ("Session", "Wanted", "prefix_pattern")

_log = EventLog("aiokafkawire.aiokafka")

_POSITIONS_SECONDS: Final = 5.0
"""The seconds that the start waits for positions at most: a partition may have no leader for a while."""
_INLINE_FLAGS: Final = re.compile(r"\(\?[aiLmsux]+\)")


@attrs.frozen
class Wanted:
    """The topics, the pattern or the partitions that the user has asked to read."""

    topics: tuple[str, ...] = ()
    pattern: "re.Pattern[str] | None" = None
    partitions: tuple[TopicPartition, ...] | None = None
    listener: ConsumerRebalanceListener | None = None
    with_internal: bool = False

    @property
    def kind(self) -> str:
        """The kind of request, of which a consumer may have one at a time."""
        if self.partitions is not None:
            return "partitions"
        return "topics" if self.pattern is None else "a pattern"

    def subscription(self, listeners: RebalanceListeners) -> TopicSubscription:
        """Return the subscription to the topics or the pattern."""
        pattern = None if self.pattern is None else prefix_pattern(self.pattern)
        return TopicSubscription(self.topics, pattern, listeners, with_internal=self.with_internal)


def prefix_pattern(pattern: "re.Pattern[str]") -> "re.Pattern[str]":
    """Return the pattern for whole names that begin with what ``pattern`` matches, as aiokafka's patterns do."""
    flags = _INLINE_FLAGS.match(pattern.pattern)
    body = pattern.pattern[flags.end() :] if flags is not None else pattern.pattern
    return re.compile(f"(?:{body}\n).*" if pattern.flags & re.VERBOSE else f"(?:{body}).*", pattern.flags)


class Session:
    """One consumer of this client, from its first request to read until :meth:`end`.

    Args:
        consumer: the consumer, which is open.
        reader: hands out its records.
        patience: for how long a rebalance waits for the consumer.
        after: is set when the session before has ended; a subscription begins then.
    """

    def __init__(
        self, consumer: Consumer[bytes, bytes], reader: SharedReader, patience: RebalancePatience, after: anyio.Event
    ) -> None:
        self.consumer: Consumer[bytes, bytes] = consumer
        self.reader: SharedReader = reader
        self.wanted: Wanted | None = None
        """What the session reads."""
        self.assigned: anyio.Event = anyio.Event()
        """Set once there is an assignment, as long as it is not about to be replaced."""
        self.ended: anyio.Event = anyio.Event()
        """Set when the consumer is closed."""
        self._patience, self._after = patience, after
        self._cluster = consumer._cluster
        self._following: anyio.CancelScope | None = None
        self._has_begun = False

    @property
    def is_listening(self) -> bool:
        """Whether the caller is the listener of a rebalance, which waits for it."""
        return self.consumer._commits is not None and self.consumer._commits.is_listening

    # --- reading -----------------------------------------------------------------------------------------

    def read(self, wanted: Wanted) -> None:
        """Read what is ``wanted`` instead of what was read before."""
        self.wanted = wanted
        self._replace_assigned()
        if wanted.partitions is not None:
            self.consumer.assign(wanted.partitions)
            self.assigned.set()
        elif self._has_begun:
            pass  # the subscription before has not begun, and takes the newer request
        elif self._after.is_set():
            self._subscribe()
        else:
            self._has_begun = True
            self._cluster.owner.spawn(self._subscribe_later)

    async def read_first(self, wanted: Wanted) -> None:
        """Read what is ``wanted``, and wait until that has begun; a pattern matches the topics that exist now."""
        metadata = self._cluster.metadata
        if wanted.pattern is not None:
            with metadata.all_topics():
                deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
                await metadata.refresh(metadata.snapshot, deadline)
                self.read(wanted)
                await self.wait_until_assigned()
        else:
            self.read(wanted)
            await self.wait_until_assigned()
        await self._wait_for_positions()

    async def _wait_for_positions(self) -> None:
        """Wait until reading has begun: records that are sent after the start are then read, with "latest", too."""
        deadline = self._cluster.deadline(_POSITIONS_SECONDS)
        positions, pending = self.consumer._positions, self.consumer._iteration.pending_errors
        while any(state.position is None and not state.lost for state in positions) and not pending:
            left = deadline.left(self._cluster.runtime.now())
            if left <= 0 or self.reader.has_ended:
                return
            await self.wait_for_change(left)

    async def _subscribe_later(self) -> None:
        await self._after.wait()
        self._has_begun = False
        if not self.reader.has_ended and self.wanted is not None:
            self._subscribe()

    def _subscribe(self) -> None:
        assert self.wanted is not None
        if self.consumer._commits is None:
            if self._following is not None:
                self._following.cancel()
            self._following = anyio.CancelScope()
            self._cluster.owner.spawn(self._follow, self.wanted, self._following)
            return
        is_first = self.consumer._in_group is None
        listeners = RebalanceListeners(self._on_assigned, self._on_revoked, called_if_empty=True)
        coordinator = self.consumer._subscribe(self.wanted.subscription(listeners), self._patience)
        if not is_first:
            for state in self.consumer._positions:
                self.consumer._positions.withhold(state, True)
            coordinator.driver.request_rejoin("the user has subscribed again")

    def _replace_assigned(self) -> None:
        """Mark the assignment as about to be replaced, and wake the tasks that wait for it."""
        self.assigned = anyio.Event()
        self.consumer._fetcher.notify()

    # --- in a group ----------------------------------------------------------------------------------------

    async def _on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._replace_assigned()
        listener = None if self.wanted is None else self.wanted.listener
        if listener is not None:
            await self._call(listener.on_partitions_revoked, partitions)

    async def _on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned.set()
        self.consumer._fetcher.notify()
        listener = None if self.wanted is None else self.wanted.listener
        if listener is not None:
            await self._call(listener.on_partitions_assigned, partitions)

    async def _call(self, function: Callable[[set[TopicPartition]], Any], partitions: Iterable[TopicPartition]) -> None:
        """Call the user's listener, whose errors are logged, as aiokafka does."""
        try:
            result = function(set(partitions))
            if inspect.isawaitable(result):
                await result
        except Exception as error:
            _report(function, error)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            _report(function, stray_cancellation("a rebalance listener", cancelled))

    # --- without a group -----------------------------------------------------------------------------------

    async def _follow(self, wanted: Wanted, scope: anyio.CancelScope) -> None:
        """Assign all partitions of the requested topics, including topics that are created later."""
        metadata, subscription = self._cluster.metadata, wanted.subscription(RebalanceListeners())
        watching = metadata.all_topics() if wanted.pattern is not None else metadata.following(lambda: wanted.topics)
        with scope, watching:
            try:
                deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
                await metadata.refresh(metadata.snapshot, deadline)
            except KafkaError as error:
                self.consumer._iteration.report(error)
            snapshot, is_first = metadata.snapshot, True
            while True:
                found = [
                    TopicPartition(name, partition.index)
                    for name in subscription.topics_in(snapshot)
                    if (topic := snapshot.topics.get(name)) is not None
                    for partition in topic.partitions
                ]
                self._take(found, is_first=is_first)
                snapshot, is_first = await metadata.wait_for_update(snapshot), False

    def _take(self, found: Sequence[TopicPartition], *, is_first: bool) -> None:
        known = self.consumer.assignment
        new = [partition for partition in found if partition not in known]
        if is_first:
            self.consumer._positions.assign(dict.fromkeys(found))
        elif new:  # from their beginning, so that nothing is missed
            self.consumer._positions.appeared(new)
        self.consumer._fetcher.wake()
        if not self.assigned.is_set():
            self.assigned.set()
            self.consumer._fetcher.notify()

    # --- what is read ----------------------------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """The topics subscribed to, those that the pattern matches, or those of the assigned partitions."""
        wanted = self.wanted
        if wanted is None:
            return frozenset()
        if wanted.partitions is not None:
            return frozenset(partition.topic for partition in wanted.partitions)
        if wanted.pattern is None:
            return frozenset(wanted.topics)
        if self.consumer._in_group is not None:
            return frozenset(self.consumer._in_group.topics.chosen)
        return frozenset(partition.topic for partition in self.consumer.assignment)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions; none while another subscription is about to replace them."""
        wanted = self.wanted
        if wanted is None:
            return frozenset()
        assigned = self.consumer.assignment
        if wanted.partitions is None and wanted.pattern is None:
            return frozenset(partition for partition in assigned if partition.topic in wanted.topics)
        return frozenset(assigned)

    async def wait_until_assigned(self) -> None:
        """Wait for the assignment; raise the error of the group if there is one."""
        while not self.assigned.is_set() and not self.reader.has_ended:
            arrived = self.consumer._fetcher.arrived
            self.reader.raise_pending()
            if not self.assigned.is_set():
                await arrived.wait()

    async def wait_for_change(self, timeout: float) -> None:
        """Wait until positions or the assignment may have changed, for ``timeout`` seconds at most."""
        with anyio.move_on_after(timeout):
            await self.consumer._fetcher.arrived.wait()

    async def seek(self, partitions: Iterable[TopicPartition], to: OffsetSpec, deadline: Deadline) -> bool:
        """Look up and set the positions of partitions; return whether that was done before the deadline."""
        wanted = list(partitions)
        for partition in wanted:
            self.consumer.seek(partition, to)
        positions = self.consumer._positions

        def are_known() -> bool:
            states = [positions.get(partition) for partition in wanted]
            return all(state is None or state.position is not None for state in states)

        while not are_known() and not self.reader.has_ended:
            left = deadline.left(self._cluster.runtime.now())
            if left <= 0:
                return False
            self.reader.raise_pending()
            await self.wait_for_change(left)
        return all(positions.get(partition) is not None for partition in wanted)

    # --- the end -----------------------------------------------------------------------------------------------

    async def end(self, *, finishes: bool, quietly: bool = False) -> None:
        """Commit, leave the group and close the consumer.

        Args:
            finishes: whether the records handed out count as finished.
            quietly: whether the listener is not called, as after ``unsubscribe()``.
        """
        if quietly:
            self.wanted = None
        if finishes and not self.reader.has_ended:
            self.reader.finish_all()
        if self._following is not None:
            self._following.cancel()
        try:
            await finish(self.consumer.close)
        finally:
            self.ended.set()


def _report(function: Callable[..., Any], error: Exception) -> None:
    listener = getattr(function, "__qualname__", repr(function))
    message = "the rebalance listener %(listener)s failed: %(error)r"
    _log.error(message, text={"listener": listener}, error=error, exc_info=error)
