"""Keeps a fetch in flight to every broker, and buffers the data until the user reads it."""

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Backoff, retry_action
from ..config import ConsumerConfig
from ..errors import (
    ConnectionLost,
    ErrorCode,
    InconsistentTopicId,
    KafkaError,
    Refresh,
    WireError,
    as_kafka_error,
    broker_error,
)
from ..event_log import EventLog
from ..network.connection import Connection
from ..observe import FetchEnded
from ..protocol.api import choose_version
from ..protocol.messages.fetch import FetchRequest, FetchResponse
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..protocol.throttling import client_waits, throttle_seconds
from ..runtime import Worker
from ..types import Address, IsolationLevel, TopicPartition
from .changed_partitions import ChangedPartitions
from .completed_fetch import CompletedFetch, PartitionFetch, records_in
from .fetch_buffer import FetchBuffer, FetchContext
from .fetch_messages import answers, leaders_named, received, request
from .fetch_planner import fetch_budgets, limit_bytes, plan
from .fetch_session import FetchSession, FetchSessionRequest
from .initial_positions import InitialPositions
from .pending_errors import PendingErrors
from .position_validation import PositionValidator
from .recreated_topics import RecreatedTopics
from .subscription_state import PartitionState, SubscriptionState, format_partitions

if TYPE_CHECKING:  # consumers without a group do not need it
    from ..group.group_offsets import GroupOffsets

__all__ = ("Fetcher",)

_log = EventLog("aiokafkawire.consumer")

# Fetch v13 and later have topic ids only (KIP-516), and v12 and earlier have topic names only.
_BY_ID_SINCE: Final = 13
_BY_ID_OR_NAME: Final = Versions.parse("0+")
_BY_NAME: Final = Versions.parse("0-12")
_ISOLATES: Final = 4
"""The first version of Fetch with an isolation level (KIP-98)."""
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
_GRACE: Final = 5.0


class Fetcher:
    """The background fetcher of one consumer. Reading begins at the offsets that ``group`` has committed, if any."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        lane: str,
        group: "GroupOffsets | None" = None,
    ) -> None:
        self._cluster, self._config, self._positions = cluster, config, positions
        self.lane: str = lane
        """The consumer's name, which its connections for fetches have as well."""
        self.arrived: anyio.Event = anyio.Event()
        """Set when there is new data or a new error."""
        self._worker = Worker(self._start_due, self.notify)
        # The brokers with a fetch in flight, and the bytes that each may return.
        self._promised: dict[int, int] = {}
        self.patience: float = config.fetch_max_wait_ms / 1000 + _GRACE
        """For how many seconds a broker may leave a fetch unanswered before it counts as silent."""
        self._sessions: dict[int, FetchSession] = {}
        self.answered: dict[int, float] = {}
        """When each broker last responded to a fetch, by node id."""
        self.asked: dict[int, float] = {}
        """When each broker that has not responded since then was asked for records, by node id."""
        self._backoffs: dict[int, Backoff] = {}
        self._committed = config.isolation is IsolationLevel.READ_COMMITTED
        settings = cluster.config
        self._errors = PendingErrors(positions, settings.default_api_timeout_ms / 1000)
        self._buffer = FetchBuffer(
            positions,
            self._errors,
            replica_age=settings.metadata_max_age_ms / 1000,
            largest=settings.receive_message_max_bytes,
        )
        self._initial_positions = InitialPositions(
            cluster, positions, self._errors, config.isolation, self._changed, group
        )
        self._validator = PositionValidator(cluster, positions, self._errors, self._changed)
        self._recreated = RecreatedTopics(positions, self._errors)
        self._changed_partitions = ChangedPartitions(positions)

    @property
    def unread(self) -> dict[TopicPartition, CompletedFetch]:
        """Fetched data by partition, in the order of arrival."""
        return self._buffer.unread

    def discard(self, fetched: CompletedFetch) -> None:
        """Drop data that was read or is unusable, and fetch more."""
        if self._buffer.discard(fetched):
            self.notify()
        self.wake((fetched.ask.state,))

    @property
    def has_ended(self) -> bool:
        """Whether the background fetching has ended, for any reason."""
        return self._worker.ended.is_set()

    def wake(self, states: Iterable[PartitionState] = ()) -> None:
        """Start due work soon, after a change of the assignment, of positions or of unread data.

        If ``states`` are given, consider only the brokers of these partitions.
        """
        self._changed_partitions.mark_dirty(states)
        self._worker.wake()

    def notify(self) -> None:
        """Notify the iteration of new data, an error, or a partition that is resumed."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()

    def _changed(self, states: Iterable[PartitionState] = ()) -> None:
        self.wake(states)
        self.notify()

    async def run(self) -> None:
        """Fetch until closed."""
        # A partition may move to another leader during the long polls and backoffs of others.
        with self._cluster.metadata.on_update(self.wake):
            await self._worker.run()

    async def close(self) -> None:
        """Stop fetching, and close the connections for fetches."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self.lane)

    def error_of(self, partition: TopicPartition) -> KafkaError | None:
        """Return the error that keeps a partition from being read now, if there is one."""
        return self._errors.get(partition)

    def next_fault(self) -> KafkaError | None:
        """Return an error to raise to the user, if there is one; each is returned once."""
        return self._errors.next()

    def _start_due(self, tasks: TaskGroup) -> float | None:
        """Start the due fetches and lookups.

        Return the seconds until the next step if a partition has no leader, otherwise None to wait for :meth:`wake`.
        """
        cluster, now = self._cluster, self._cluster.runtime.now()
        snapshot = cluster.metadata.snapshot
        states = self._changed_partitions.take(snapshot, now)
        if states is None:
            self._recreated.check(snapshot)
            states = list(self._positions)
            self._buffer.drop_stale()
            self._errors.forget_all_but(state.partition for state in states if not state.is_suspended)
            for group in self._initial_positions.take_due():
                tasks.start_soon(self._initial_positions.run, group)
        cluster.metadata.track_topics(self._changed_partitions.topics)
        self._validator.start_due(tasks, snapshot, states, self.unread)
        max_bytes = self._config.max_partition_fetch_bytes
        ahead = self._buffer.ahead
        asks, unled = plan(snapshot, states, self.unread, ahead, self._promised, max_bytes=max_bytes, now=now)
        if asks:
            self._start_fetches(tasks, snapshot, asks)
        if not unled:
            return None
        self._changed_partitions.mark_dirty()
        self._record_error(snapshot, [self._positions.require(unled)], _why_unled(snapshot, unled), now)
        cluster.metadata.mark_stale(snapshot)
        return cluster.config.retry_backoff_ms / 1000

    def _start_fetches(self, tasks: TaskGroup, snapshot: Snapshot, asks: dict[int, list[PartitionFetch]]) -> None:
        limit = self._config.fetch_max_bytes
        kept = chain(self.unread.values(), self._buffer.ahead.values())
        found = fetch_budgets(asks, self._changed_partitions.brokers, kept, self._promised.values(), limit)
        self._promised |= found
        for node_id, budget in found.items():
            tasks.start_soon(self._fetch, snapshot, node_id, asks[node_id], budget)
        if len(found) < len(asks):
            # Budget may become free when the user reads data of another broker.
            self._changed_partitions.mark_dirty()

    async def _fetch(self, snapshot: Snapshot, node_id: int, asks: list[PartitionFetch], budget: int) -> None:
        """Send one fetch to one broker, and back off if needed."""
        began = self._cluster.runtime.now()
        session = self._sessions.setdefault(node_id, FetchSession())
        notify = is_unreachable = False
        try:
            delay, notify = await self._exchange(snapshot, node_id, asks, budget, session)
        except Exception as raised:
            session.restart()
            delay = self._failed(node_id)
            error = as_kafka_error(raised, f"fetching {format_partitions([ask.state.partition for ask in asks])}")
            is_unreachable = isinstance(error, ConnectionLost)
            retry_at = self._cluster.brokers.retry_at(snapshot.nodes[node_id].address, self.lane)
            if retry_at > self._cluster.runtime.now():
                delay = retry_at - self._cluster.runtime.now()  # before then an attempt would fail at once
            message = "fetching from broker %(node_id)d again in %(delay).3f s: %(error)s"
            _log.debug(message, node_id=node_id, delay=delay, error=error)
            wanted = [ask for ask in asks if self._positions.is_current(ask.state, ask.epoch)]
            for ask in wanted:
                ask.state.replica = None
            # An error matters only once the user has read the data before it.
            self._record_error(snapshot, [ask.state for ask in wanted if self._buffer.is_next(ask)], error, began)
        self._promised[node_id] = 0
        if delay > 0:
            if notify:
                self.notify()
            # The broker's partitions may have moved to other brokers.
            self.wake()
            with anyio.move_on_after(delay):
                await (self._cluster.brokers.recovered.wait() if is_unreachable else anyio.sleep_forever())
        del self._promised[node_id]
        # The fetched partitions may have moved to another broker, and other partitions wait for a fetch from this one.
        self.wake([*(ask.state for ask in asks), *self._changed_partitions.any_of(node_id)])
        if notify and delay <= 0:
            if any(self._buffer.has_much(ask.state.partition) for ask in asks):
                # User code may keep the loop busy for ten milliseconds: first let the worker send the next fetch.
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
            self.notify()

    async def _exchange(
        self, snapshot: Snapshot, node_id: int, asks: list[PartitionFetch], budget: int, session: FetchSession
    ) -> tuple[float, bool]:
        """Send a fetch and handle its response; return the backoff in seconds, and whether to notify the iteration.

        Without a connection, only open it.
        """
        began = self._cluster.runtime.now()
        self.asked.setdefault(node_id, began)
        node = snapshot.nodes[node_id]
        connection = self._cluster.brokers.opened(node.address, self.lane)
        if connection is None:
            # No data arrives meanwhile, so a broker that becomes the leader may use the budget.
            self._promised[node_id] = 0
            await self._cluster.connection(node, self.lane)
            return 0.0, False
        ids = {topic: snapshot.topic_id(topic) for topic in dict.fromkeys(ask.state.partition.topic for ask in asks)}
        wanted = _BY_NAME if ZERO_UUID in ids.values() else _BY_ID_OR_NAME
        if self._committed and connection.known is not None and connection.known.is_untold:
            # The release of this broker was inferred from its answers. If it is in fact newer, with transactions, it
            # would return aborted records in an older version.
            wanted = Versions(max(wanted.first, _ISOLATES), wanted.last)
        version = choose_version(FetchRequest, connection.versions, wanted, connection.broker)
        session_request = session.next(limit_bytes(asks, version, budget), ids, by_id=version >= _BY_ID_SINCE)
        response = await self._send_fetch(connection, session_request, version, budget)
        if response.error_code != ErrorCode.NONE:
            session.refused(response.error_code)
            if response.error_code in _SESSION_ERRORS and not session_request.is_full:
                return 0.0, False
            raise broker_error(response.error_code, f"{connection.broker} to Fetch")
        session.answered(session_request, response.session_id)
        now = self.answered[node_id] = self._cluster.runtime.now()
        self.asked.pop(node_id, None)
        failed, waits, notify = self._take(
            session_request, response, session, connection.broker, FetchContext(snapshot, began, now, version)
        )
        if self._cluster.observers.fetch_ended is not None:
            self._report(session_request, response, node_id, connection.broker, now - began)
        if failed:
            return self._failed(node_id), notify
        self._backoffs.pop(node_id, None)
        if response.throttle_time_ms > 0 and client_waits(FetchRequest.api_key, version):
            return throttle_seconds(response), notify
        # An early empty response is no error: the broker has not waited for data, although requested to.
        is_early = waits and now - began < self._config.fetch_max_wait_ms / 2000
        return self._cluster.config.retry_backoff_ms / 1000 if is_early else 0.0, notify

    async def _send_fetch(
        self, connection: Connection, session_request: FetchSessionRequest, version: int, budget: int
    ) -> FetchResponse:
        long_poll = self._config.fetch_max_wait_ms / 1000
        return await connection.request(
            request(session_request, self._config, budget),
            timeout=long_poll + self._cluster.config.default_api_timeout_ms / 1000,
            wanted=Versions(version, version),
        )

    def _take(
        self,
        session_request: FetchSessionRequest,
        response: FetchResponse,
        session: FetchSession,
        broker: str,
        context: FetchContext,
    ) -> tuple[bool, bool, bool]:
        """Handle the partitions' results.

        Return whether any failed, whether the broker had to wait for data, and whether to notify the iteration.
        """
        self._use_leaders(session_request, response)
        failed, waits, notify = False, True, False
        without_news = dict(session_request.asks)
        refused: set[PartitionFetch] = set()
        for ask, answer in answers(session_request, response, committed_only=self._committed, broker=broker):
            outcome = self._buffer.take(ask, answer, context)
            if isinstance(answer, WireError | InconsistentTopicId):
                session.restart()
            if outcome.outdated:
                self._cluster.metadata.mark_stale(context.snapshot)
            del without_news[ask.state.partition]
            failed, notify = failed or outcome.failed, notify or outcome.notify
            waits = waits and not outcome.moved and not (isinstance(answer, CompletedFetch) and answer.records)
            if isinstance(answer, KafkaError):
                refused.add(ask)
        self._errors.clear_all(without_news)
        self._recreated.fetched((ask for ask in session_request.named if ask not in refused), context.snapshot)
        if context.snapshot is not self._cluster.metadata.snapshot:
            self.wake()  # a topic may have been created again since the request
        return failed, waits, notify

    def _report(
        self, session_request: FetchSessionRequest, response: FetchResponse, node_id: int, broker: str, seconds: float
    ) -> None:
        """Report a fetch to the observers."""
        brought = received(session_request, response)
        counts, sizes = [records_in(data) for data in brought.values()], [len(data) for data in brought.values()]
        if (notify := self._cluster.observers.fetch_ended) is not None:
            notify(
                FetchEnded(
                    broker=broker,
                    node_id=node_id,
                    lane=self.lane,
                    group=self._config.group_id,
                    partitions=tuple(brought),
                    records=None if None in counts else sum(count or 0 for count in counts),
                    counts=counts,
                    size=sum(sizes),
                    sizes=sizes,
                    seconds=seconds,
                )
            )

    def _use_leaders(self, session_request: FetchSessionRequest, response: FetchResponse) -> None:
        leaders = leaders_named(session_request, response)
        if leaders:
            nodes = [
                Node(endpoint.node_id, Address(endpoint.host, endpoint.port), endpoint.rack)
                for endpoint in response.node_endpoints
            ]
            self._cluster.metadata.use_leaders(leaders, nodes)

    def _failed(self, node_id: int) -> float:
        return self._backoffs.setdefault(node_id, self._cluster.backoff()).next()

    def _record_error(self, snapshot: Snapshot, states: list[PartitionState], error: KafkaError, began: float) -> None:
        if retry_action(error).refresh is Refresh.METADATA:
            self._cluster.metadata.mark_stale(snapshot)
        self._errors.failed(states, error, began, self._cluster.runtime.now())
        self.notify()


def _why_unled(snapshot: Snapshot, partition: TopicPartition) -> KafkaError:
    topic = snapshot.topics.get(partition.topic)
    if topic is not None and topic.error != ErrorCode.NONE:
        return broker_error(topic.error, f"topic {partition.topic!r}")
    # Brokers return this error too if there is no leader; it is retriable.
    return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no known leader")
