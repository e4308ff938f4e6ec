"""Keeps a fetch in flight to every leader, and what came until the user reaches it."""

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.offsets import look_up_offsets
from ..cluster.retry import remedy
from ..config import ConsumerConfig
from ..errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    Refresh,
    RequestTimeout,
    TopicNotReady,
    UsageError,
    broker_error,
)
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..types import IsolationLevel, OffsetSpec, TopicPartition
from .fetch import Ask, Fetched, answers, plan, request
from .positions import Place, Positions

__all__ = ("Fetcher",)

# Record batches v2 need v4; topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_BY_ID_OR_NAME = Versions.parse("4+")
_BY_NAME = Versions.parse("4-12")


class Fetcher:
    """The background side of one consumer."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, positions: Positions, lane: str) -> None:
        self._cluster, self._config, self._positions, self._lane = cluster, config, positions, lane
        self.unread: dict[TopicPartition, Fetched] = {}
        """Fetched data by partition, in the order in which it came."""
        self.faults: list[KafkaError] = []
        """Errors that the user has to hear of, in the next iteration."""
        self.arrived: anyio.Event = anyio.Event()
        """Set when there is something new in ``unread`` or ``faults``."""
        self._wake = anyio.Event()
        self._fetching: set[int] = set()
        self._committed = config.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if self._committed else IsolationLevel.READ_UNCOMMITTED
        self._trouble_since: float | None = None
        self._backoff = cluster.backoff()
        self._scope = anyio.CancelScope()
        self.ended: anyio.Event = anyio.Event()
        """Set once nothing is fetched any more."""

    def wake(self) -> None:
        """Something changed: the assignment, a position, what is unread."""
        self._wake.set()

    async def run(self) -> None:
        """Fetch until closed."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    while True:
                        wait = self._ask_what_is_wanted(tasks)
                        with anyio.move_on_after(wait):
                            await self._wake.wait()
                        self._wake = anyio.Event()
        finally:
            self.ended.set()
            self.tell()

    async def close(self) -> None:
        """Stop fetching."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()
            await self._cluster.brokers.close_lanes(self._lane)

    def _ask_what_is_wanted(self, tasks: TaskGroup) -> float | None:
        """Start fetches and lookups. How long to wait for a leader, in seconds; None until something happens."""
        cluster, positions = self._cluster, self._positions
        cluster.use({where.topic for where in positions.assigned})
        self.unread = {where: one for where, one in self.unread.items() if one.ask.is_current}
        lost = positions.to_look_up()
        if lost:
            for place in lost:
                place.looking_up = True
            # By topic: one that cannot be looked up holds up no other.
            for topic in dict.fromkeys(place.where.topic for place in lost):
                tasks.start_soon(self._look_up, [place for place in lost if place.where.topic == topic])
        room = self._config.fetch_max_bytes - sum(len(one.records) for one in self.unread.values())
        if room <= 0:
            return None
        snapshot = cluster.snapshot
        asks, unled = plan(snapshot, positions, self.unread, self._fetching)
        for node_id, wanted in asks.items():
            self._fetching.add(node_id)
            tasks.start_soon(self._fetch, snapshot, node_id, wanted, room)
        if not unled:
            return None
        self._in_trouble(self._why_unled(snapshot, unled))
        cluster.outdated(snapshot)
        return cluster.config.retry_backoff_ms / 1000

    # --- fetching --------------------------------------------------------------------------------------

    async def _fetch(self, snapshot: Snapshot, node_id: int, asks: list[Ask], room: int) -> None:
        """One fetch to one leader. After a failure the leader rests for the backoff."""
        try:
            connection = await self._cluster.connection(snapshot.nodes[node_id], self._lane)
            message = request(snapshot, asks, self._config, room)
            by_name = any(topic.topic_id == ZERO_UUID for topic in message.topics)
            response = await connection.request(message, wanted=_BY_NAME if by_name else _BY_ID_OR_NAME)
            names = {topic.topic_id: topic.topic for topic in message.topics}
            failed = False
            for ask, answer in answers(asks, names, response, committed_only=self._committed, where=connection.where):
                failed |= self._take(snapshot, ask, answer)
        except KafkaError as error:
            failed = True
            self._troubled(snapshot, error)
        if failed:
            await anyio.sleep(self._backoff.next())
        else:
            self._backoff.reset()
            self._trouble_since = None
        self._fetching.discard(node_id)
        self.wake()

    def _take(self, snapshot: Snapshot, ask: Ask, answer: Fetched | KafkaError) -> bool:
        """Keep what one partition's answer brings. True if it brings an error that asks for a pause."""
        place = ask.place
        if not self._is_current(place, ask.epoch):
            return False
        if isinstance(answer, Fetched):
            place.high_watermark = answer.high_watermark
            if answer.records:
                self.unread[place.where] = answer
                self.tell()
            return False
        if isinstance(answer, OffsetOutOfRange):
            if not self._positions.reset(place):
                self._report(OffsetOutOfRange(f"{answer}; auto_offset_reset is 'none', so seek elsewhere"))
                place.paused = True
            return False
        self._troubled(snapshot, answer)
        return True

    # --- lookups ---------------------------------------------------------------------------------------

    async def _look_up(self, places: list[Place]) -> None:
        """Find the offsets that these places should begin at."""
        epochs = {place.where: place.epoch for place in places}
        specs = {place.where: place.spec for place in places if place.spec is not None}
        for place in places:
            if place.spec is None:
                place.paused = True
                self._report(UsageError(f"{place.where} has no position, and auto_offset_reset is 'none': seek first"))
        try:
            offsets = await self._offsets(specs)
        except KafkaError as error:
            # Whoever sought elsewhere or dropped the partitions meanwhile does not want to hear of it.
            if any(self._is_current(place, epochs[place.where]) for place in places):
                self._report(error)
                await anyio.sleep(self._backoff.next())
            offsets = {}
        for place in places:
            if self._is_current(place, epochs[place.where]):
                place.looking_up = False
                if place.where in offsets:
                    place.position, place.spec = offsets[place.where], None
        self.wake()

    def _is_current(self, place: Place, epoch: int) -> bool:
        return place.epoch == epoch and self._positions.get(place.where) is place

    async def _offsets(self, specs: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """The offset for each spec; the end of the log where no record is that late."""
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        found = await look_up_offsets(self._cluster, specs, deadline, self._isolation)
        late = {where: OffsetSpec.LATEST for where, one in found.items() if one is None}
        if late:
            found.update(await look_up_offsets(self._cluster, late, deadline, self._isolation))
        return {where: one.offset for where, one in found.items() if one is not None}

    # --- trouble ---------------------------------------------------------------------------------------

    def _troubled(self, snapshot: Snapshot, error: KafkaError) -> None:
        """A fetch failed. What a retry mends is reported only when it lasts, everything else at once."""
        retry, refresh = remedy(error)
        if refresh is Refresh.METADATA:
            self._cluster.outdated(snapshot)
        if retry:
            self._in_trouble(error)
        else:
            self._report(error)

    def _in_trouble(self, error: KafkaError) -> None:
        now, limit = self._cluster.runtime.now(), self._cluster.config.default_api_timeout_ms / 1000
        if self._trouble_since is None:
            self._trouble_since = now
        if isinstance(error, BrokerError) and not error.retriable:
            self._report(error)
        elif now - self._trouble_since >= limit:
            lasting = RequestTimeout(f"nothing could be fetched for {limit:g} s (default_api_timeout_ms): {error}")
            lasting.__cause__ = error
            self._report(lasting)

    def _why_unled(self, snapshot: Snapshot, where: TopicPartition) -> KafkaError:
        topic = snapshot.topics.get(where.topic)
        if topic is not None and topic.error != ErrorCode.NONE:
            return broker_error(topic.error, f"topic {where.topic!r}")
        return TopicNotReady(f"{where} has no leader that is known")

    def _report(self, error: KafkaError) -> None:
        """Let the user hear of it. Trouble that goes on is told again after as long."""
        self._trouble_since = None
        self.faults.append(error)
        self.tell()

    def tell(self) -> None:
        """Let the iteration look again: at new data, an error, a partition that is resumed."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()
