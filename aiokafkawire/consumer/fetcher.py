"""Keeps a fetch in flight to every leader, and what came until the user reaches it."""

from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Backoff, remedy
from ..config import ConsumerConfig
from ..errors import ErrorCode, KafkaError, OffsetOutOfRange, Refresh, as_kafka_error, broker_error
from ..protocol.primitives import ZERO_UUID
from ..protocol.schema import Versions
from ..runtime import Worker
from ..types import IsolationLevel, TopicPartition
from .fetch import Ask, Fetched, answers, plan, request
from .lookup import Lookup
from .positions import Place, Positions, some_of
from .trouble import Troubles

if TYPE_CHECKING:  # many a consumer has no group
    from .group_offsets import GroupOffsets

__all__ = ("Fetcher",)

# Record batches v2 need v4; topics have no names from v13 on (KIP-516), so without their ids v12 is the last.
_BY_ID_OR_NAME = Versions.parse("4+")
_BY_NAME = Versions.parse("4-12")


class Fetcher:
    """The background side of one consumer. Places begin at what ``group`` has committed, if there is one."""

    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: Positions,
        lane: str,
        group: "GroupOffsets | None" = None,
    ) -> None:
        self._cluster, self._config, self._positions, self._lane = cluster, config, positions, lane
        self.unread: dict[TopicPartition, Fetched] = {}
        """Fetched data by partition, in the order in which it came."""
        self.arrived: anyio.Event = anyio.Event()
        """Set when there is something new: data or an error."""
        self._worker = Worker(self._ask_what_is_wanted, self.tell)
        # The leaders that are asked now, and how many bytes each may bring.
        self._promised: dict[int, int] = {}
        self._served = 0
        self._backoffs: dict[int, Backoff] = {}
        self._committed = config.isolation is IsolationLevel.READ_COMMITTED
        self._troubles = Troubles(positions, cluster.config.default_api_timeout_ms / 1000)
        self._lookup = Lookup(cluster, positions, self._troubles, config.isolation, self._changed, group)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is fetched any more."""
        return self._worker.ended.is_set()

    def wake(self) -> None:
        """Something changed: the assignment, a position, what is unread."""
        self._worker.wake()

    def tell(self) -> None:
        """Let the iteration look again: at new data, an error, a partition that is resumed."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()

    def _changed(self) -> None:
        self.wake()
        self.tell()

    async def run(self) -> None:
        """Fetch until closed."""
        await self._worker.run()

    async def close(self) -> None:
        """Stop fetching."""
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self._lane)

    def next_fault(self) -> KafkaError | None:
        """An error that the user has not heard of yet."""
        return self._troubles.next()

    def _ask_what_is_wanted(self, tasks: TaskGroup) -> float | None:
        """Start fetches and lookups. How long to wait for a leader, in seconds; None until something happens."""
        cluster, positions = self._cluster, self._positions
        cluster.use(dict.fromkeys(where.topic for where in positions.assigned))
        # What was fetched for a place that is gone would keep its partition out of every fetch.
        self.unread = {
            where: one for where, one in self.unread.items() if positions.is_current(one.ask.place, one.ask.epoch)
        }
        self._troubles.forget_all_but(place.where for place in positions if not place.paused)
        for places in self._lookup.take_due():
            tasks.start_soon(self._lookup.run, places)
        snapshot = cluster.snapshot
        asks, unled = plan(snapshot, positions, self.unread, self._promised)
        for node_id, some in asks.items():
            room = self._room(snapshot)
            if room <= 0:
                break
            self._promised[node_id] = room
            tasks.start_soon(self._fetch, snapshot, node_id, some, room)
        if not unled:
            return None
        now = cluster.runtime.now()
        self._troubled(snapshot, [positions.require(unled)], _why_unled(snapshot, unled), now)
        cluster.outdated(snapshot)
        return cluster.config.retry_backoff_ms / 1000

    def _room(self, snapshot: Snapshot) -> int:
        """How many bytes the next fetch may bring: no leader gets so much that another has to wait for it."""
        kept = sum(len(one.records) for one in self.unread.values() if not one.ask.place.paused)
        leaders = {node.node_id for place in self._positions if (node := snapshot.leader(place.where)) is not None}
        room = self._config.fetch_max_bytes - kept - sum(self._promised.values())
        return min(room, max(1, self._config.fetch_max_bytes // max(1, len(leaders))))

    async def _fetch(self, snapshot: Snapshot, node_id: int, asks: list[Ask], room: int) -> None:
        """One fetch to one leader. After a failure the leader rests for the backoff."""
        clock, config = self._cluster.runtime.now, self._cluster.config
        began, long_poll = clock(), self._config.fetch_max_wait_ms / 1000
        failed, empty = False, True
        try:
            connection = await self._cluster.connection(snapshot.nodes[node_id], self._lane)
            message = request(snapshot, asks, self._config, room)
            by_name = any(topic.topic_id == ZERO_UUID for topic in message.topics)
            response = await connection.request(
                message,
                timeout=long_poll + config.default_api_timeout_ms / 1000,
                wanted=_BY_NAME if by_name else _BY_ID_OR_NAME,
            )
            names = {topic.topic_id: topic.topic for topic in message.topics}
            for ask, answer in answers(asks, names, response, committed_only=self._committed, where=connection.where):
                failed |= self._take(snapshot, ask, answer, began)
                empty &= not (isinstance(answer, Fetched) and answer.records)
        except Exception as raised:
            failed = True
            error = as_kafka_error(raised, f"fetching {some_of([ask.place.where for ask in asks])}")
            wanted = [ask.place for ask in asks if self._positions.is_current(ask.place, ask.epoch)]
            self._troubled(snapshot, wanted, error, began)
        self._promised[node_id] = 0
        if failed:
            await anyio.sleep(self._backoffs.setdefault(node_id, self._cluster.backoff()).next())
        else:
            self._backoffs.pop(node_id, None)
            if empty and clock() - began < long_poll / 2:
                # Asked to wait for data, it said at once that there is none. Nothing is wrong with that, once.
                await anyio.sleep(config.retry_backoff_ms / 1000)
        del self._promised[node_id]
        self.wake()

    def _take(self, snapshot: Snapshot, ask: Ask, answer: Fetched | KafkaError, began: float) -> bool:
        """Keep what one partition's answer brings. True if it brings an error that asks for a pause."""
        place = ask.place
        if not self._positions.is_current(place, ask.epoch):
            return False
        if isinstance(answer, Fetched):
            self._troubles.over(place.where)
            place.high_watermark = answer.high_watermark
            if answer.records:
                self._served += 1
                place.served = self._served
                self.unread[place.where] = answer
                self.tell()
            return False
        if isinstance(answer, OffsetOutOfRange):
            if self._positions.reset(place):
                # A broker that finds every offset out of range is not asked for ever without a word.
                self._troubled(snapshot, [place], answer, began)
                return True
            place.lost = True
            self._troubles.report(place, OffsetOutOfRange(f"{answer}; auto_offset_reset is 'none', so seek elsewhere"))
            self.tell()
            return False
        self._troubled(snapshot, [place], answer, began)
        return True

    def _troubled(self, snapshot: Snapshot, places: list[Place], error: KafkaError, began: float) -> None:
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
