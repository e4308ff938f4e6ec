"""Keeps a fetch in flight to every broker that is read from, and what came until the user reaches it."""

import logging
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node, Snapshot
from ..cluster.retry import Backoff, remedy
from ..config import ConsumerConfig
from ..errors import ErrorCode, InconsistentTopicId, KafkaError, Refresh, WireError, as_kafka_error, broker_error
from ..network.connection import Connection
from ..protocol.api import choose_version
from ..protocol.messages.fetch import FetchRequest, FetchResponse
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..runtime import Worker
from ..types import Address, IsolationLevel, TopicPartition
from .fetch import CompletedFetch, PartitionFetch, plan, rooms, within
from .fetch_buffer import FetchBuffer, FetchContext
from .fetch_messages import answers, leaders_named, request
from .fetch_scope import FetchScope
from .fetch_session import FetchSession, FetchSessionRequest
from .offset_fetcher import OffsetFetcher
from .partition_errors import PartitionErrors
from .position_validation import PositionValidator
from .subscription_state import PartitionState, SubscriptionState, some_of

if TYPE_CHECKING:  # many a consumer has no group
    from ..group.committed_offsets import GroupOffsets

__all__ = ("Fetcher",)

_log = logging.getLogger("aiokafkawire.consumer")

# Topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_BY_ID_SINCE: Final = 13
_BY_ID_OR_NAME: Final = Versions.parse("0+")
_BY_NAME: Final = Versions.parse("0-12")
_ISOLATES: Final = 4
"""The first version of Fetch that says which records are wanted while transactions are open (KIP-98)."""
_SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
_GRACE: Final = 5.0


class Fetcher:
    """The background side of one consumer. Places begin at what ``group`` has committed, if there is one."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        lane: str,
        group: "GroupOffsets | None" = None,
    ) -> None:
        self._cluster, self._config, self._positions, self._lane = cluster, config, positions, lane
        self.arrived: anyio.Event = anyio.Event()
        """Set when there is something new: data or an error."""
        self._worker = Worker(self._ask_what_is_wanted, self.tell)
        # The brokers that are asked now, and how many bytes each may bring.
        self._promised: dict[int, int] = {}
        self.patience: float = config.fetch_max_wait_ms / 1000 + _GRACE
        """For how many seconds a broker that is asked may say nothing, before that is strange."""
        self._sessions: dict[int, FetchSession] = {}
        self.answered: dict[int, float] = {}
        """When each broker has last answered a fetch."""
        self._backoffs: dict[int, Backoff] = {}
        self._committed = config.isolation is IsolationLevel.READ_COMMITTED
        settings = cluster.config
        self._troubles = PartitionErrors(positions, settings.default_api_timeout_ms / 1000)
        self._arrivals = FetchBuffer(
            positions,
            self._troubles,
            replica_age=settings.metadata_max_age_ms / 1000,
            largest=settings.receive_message_max_bytes,
        )
        self._lookup = OffsetFetcher(cluster, positions, self._troubles, config.isolation, self._changed, group)
        self._validation = PositionValidator(cluster, positions, self._troubles, self._changed)
        self._attention = FetchScope(positions)

    @property
    def unread(self) -> dict[TopicPartition, CompletedFetch]:
        """Fetched data by partition, in the order in which it came."""
        return self._arrivals.unread

    def used_up(self, fetched: CompletedFetch) -> None:
        """The user has read this, or cannot: there is room for more."""
        if self._arrivals.used_up(fetched):
            self.tell()
        self.wake((fetched.ask.place,))

    @property
    def has_ended(self) -> bool:
        """Whether nothing is fetched any more."""
        return self._worker.ended.is_set()

    def wake(self, places: Iterable[PartitionState] = ()) -> None:
        """Something changed: the assignment, a position, what is unread; if ``places`` are given, of these alone."""
        self._attention.turn_to(places)
        self._worker.wake()

    def tell(self) -> None:
        """Let the iteration look again: at new data, an error, a partition that is resumed."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()

    def _changed(self, places: Iterable[PartitionState] = ()) -> None:
        self.wake(places)
        self.tell()

    async def run(self) -> None:
        """Fetch until closed."""
        # A partition may have another leader while the old one, and others, keep long polls or rest.
        with self._cluster.watched(self.wake):
            await self._worker.run()

    async def close(self) -> None:
        """Stop fetching."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self._lane)

    def trouble(self, where: TopicPartition) -> KafkaError | None:
        """What keeps a partition from being read now."""
        return self._troubles.of(where)

    def next_fault(self) -> KafkaError | None:
        """An error that the user has not heard of yet."""
        return self._troubles.next()

    def _ask_what_is_wanted(self, tasks: TaskGroup) -> float | None:
        """Start fetches and lookups. How long to wait for a leader, in seconds; None until something happens."""
        cluster, now = self._cluster, self._cluster.runtime.now()
        snapshot = cluster.snapshot
        places = self._attention.take(snapshot, now)
        if places is None:
            places = list(self._positions)
            self._arrivals.drop_stale()
            self._troubles.forget_all_but(place.where for place in places if not place.rests)
            for some in self._lookup.take_due():
                tasks.start_soon(self._lookup.run, some)
        cluster.use(self._attention.topics)
        self._validation.start_due(tasks, snapshot, places, self.unread)
        most = self._config.max_partition_fetch_bytes
        ahead = self._arrivals.ahead
        asks, unled = plan(snapshot, places, self.unread, ahead, self._promised, max_bytes=most, now=now)
        if asks:
            self._start_fetches(tasks, snapshot, asks)
        if not unled:
            return None
        self._attention.turn_to()
        self._troubled(snapshot, [self._positions.require(unled)], _why_unled(snapshot, unled), now)
        cluster.outdated(snapshot)
        return cluster.config.retry_backoff_ms / 1000

    def _start_fetches(self, tasks: TaskGroup, snapshot: Snapshot, asks: dict[int, list[PartitionFetch]]) -> None:
        limit = self._config.fetch_max_bytes
        kept = chain(self.unread.values(), self._arrivals.ahead.values())
        found = rooms(asks, self._attention.brokers, kept, self._promised.values(), limit)
        self._promised |= found
        for node_id, room in found.items():
            tasks.start_soon(self._fetch, snapshot, node_id, asks[node_id], room)
        if len(found) < len(asks):
            # Whoever makes room may be of another broker.
            self._attention.turn_to()

    async def _fetch(self, snapshot: Snapshot, node_id: int, asks: list[PartitionFetch], room: int) -> None:
        """One fetch to one broker, and the rest that it gets after it."""
        began = self._cluster.runtime.now()
        session = self._sessions.setdefault(node_id, FetchSession())
        told = False
        try:
            rest, told = await self._exchange(snapshot, node_id, asks, room, session)
        except Exception as raised:
            session.restart()
            rest = self._failed(node_id)
            error = as_kafka_error(raised, f"fetching {some_of([ask.place.where for ask in asks])}")
            _log.debug("fetching from broker %d again in %.0f ms: %s", node_id, rest * 1000, error)
            wanted = [ask for ask in asks if self._positions.is_current(ask.place, ask.epoch)]
            for ask in wanted:
                ask.place.replica = None
            # Who still has something to read before it is not troubled yet.
            self._troubled(snapshot, [ask.place for ask in wanted if self._arrivals.is_next(ask)], error, began)
        self._promised[node_id] = 0
        if rest > 0:
            if told:
                self.tell()
            # Some of its partitions may be another's by now.
            self.wake()
            await anyio.sleep(rest)
        del self._promised[node_id]
        # Those that were asked for may be another broker's by now, and others wait for this one.
        self.wake([*(ask.place for ask in asks), *self._attention.one_of(node_id)])
        if told and rest <= 0:
            if any(self._arrivals.has_much(ask.place.where) for ask in asks):
                # Who reads may keep the loop for ten milliseconds. So the worker begins the next fetch before, and that
                # sends its request.
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
            self.tell()

    async def _exchange(
        self, snapshot: Snapshot, node_id: int, asks: list[PartitionFetch], room: int, session: FetchSession
    ) -> tuple[float, bool]:
        """Ask, and take the answer. How long the broker is to rest, in seconds, and whether there is something new."""
        began = self._cluster.runtime.now()
        connection = await self._cluster.connection(snapshot.nodes[node_id], self._lane)
        ids = {topic: snapshot.topic_id(topic) for topic in dict.fromkeys(ask.place.where.topic for ask in asks)}
        wanted = _BY_NAME if ZERO_UUID in ids.values() else _BY_ID_OR_NAME
        if self._committed and connection.known is not None and connection.known.is_untold:
            # Who tells that it is of 0.10 has no transactions; this one has not, and might give what was aborted, too.
            wanted = Versions(max(wanted.first, _ISOLATES), wanted.last)
        version = choose_version(FetchRequest, connection.versions, wanted, connection.where)
        turn = session.next(within(asks, version, room), ids, by_id=version >= _BY_ID_SINCE)
        response = await self._ask(connection, turn, version, room)
        if response.error_code != ErrorCode.NONE:
            session.refused(response.error_code)
            if response.error_code in _SESSION_ERRORS and not turn.is_full:
                return 0.0, False
            raise broker_error(response.error_code, f"{connection.where} to Fetch")
        session.answered(turn, response.session_id)
        now = self.answered[node_id] = self._cluster.runtime.now()
        failed, waits, told = self._take(
            turn, response, session, connection.where, FetchContext(snapshot, began, now, version)
        )
        if failed:
            return self._failed(node_id), told
        self._backoffs.pop(node_id, None)
        if response.throttle_time_ms > 0:
            return float(response.throttle_time_ms) / 1000, told
        # Asked to wait for data, it said at once that there is none. Nothing is wrong with that, once.
        hurried = waits and now - began < self._config.fetch_max_wait_ms / 2000
        return self._cluster.config.retry_backoff_ms / 1000 if hurried else 0.0, told

    async def _ask(self, connection: Connection, turn: FetchSessionRequest, version: int, room: int) -> FetchResponse:
        long_poll = self._config.fetch_max_wait_ms / 1000
        return await connection.request(
            request(turn, self._config, room),
            timeout=long_poll + self._cluster.config.default_api_timeout_ms / 1000,
            wanted=Versions(version, version),
        )

    def _take(
        self, turn: FetchSessionRequest, response: FetchResponse, session: FetchSession, where: str, came: FetchContext
    ) -> tuple[bool, bool, bool]:
        """Whether something failed, whether there was nothing to do at all, and whether there is something new."""
        self._use_leaders(turn, response)
        failed, waits, told = False, True, False
        quiet = dict(turn.asks)
        for ask, answer in answers(turn, response, committed_only=self._committed, where=where):
            outcome = self._arrivals.take(ask, answer, came)
            if isinstance(answer, WireError | InconsistentTopicId):
                session.restart()
            if outcome.outdated:
                self._cluster.outdated(came.snapshot)
            del quiet[ask.place.where]
            failed, told = failed or outcome.failed, told or outcome.told
            waits = waits and not outcome.moved and not (isinstance(answer, CompletedFetch) and answer.records)
        self._troubles.all_over(quiet)
        return failed, waits, told

    def _use_leaders(self, turn: FetchSessionRequest, response: FetchResponse) -> None:
        leaders = leaders_named(turn, response)
        if leaders:
            nodes = [Node(one.node_id, Address(one.host, one.port), one.rack) for one in response.node_endpoints]
            self._cluster.use_leaders(leaders, nodes)

    def _failed(self, node_id: int) -> float:
        return self._backoffs.setdefault(node_id, self._cluster.backoff()).next()

    def _troubled(self, snapshot: Snapshot, places: list[PartitionState], error: KafkaError, began: float) -> None:
        if remedy(error).refresh is Refresh.METADATA:
            self._cluster.outdated(snapshot)
        self._troubles.failed(places, error, began, self._cluster.runtime.now())
        self.tell()


def _why_unled(snapshot: Snapshot, where: TopicPartition) -> KafkaError:
    topic = snapshot.topics.get(where.topic)
    if topic is not None and topic.error != ErrorCode.NONE:
        return broker_error(topic.error, f"topic {where.topic!r}")
    # What the broker would say, and like it a matter of time.
    return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, f"{where} has no leader that is known")
