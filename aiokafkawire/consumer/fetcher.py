"""Keeps a fetch in flight to every leader, and what came until the user reaches it."""

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.offsets import look_up_offsets
from ..cluster.retry import Backoff, remedy
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
from .positions import Place, Positions, some_of

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
        self.arrived: anyio.Event = anyio.Event()
        """Set when there is something new: data or an error."""
        # Errors that the user has to hear of, in the next iteration. The newest of each partition will do.
        self._faults: dict[TopicPartition, tuple[Place, int, KafkaError]] = {}
        self._wake = anyio.Event()
        # The leaders that are asked now, and how many bytes each may bring.
        self._promised: dict[int, int] = {}
        self._committed = config.isolation_level == "read_committed"
        self._isolation = IsolationLevel.READ_COMMITTED if self._committed else IsolationLevel.READ_UNCOMMITTED
        # Since when nothing comes of a partition. One leader's data says nothing about another's.
        self._troubles: dict[TopicPartition, float] = {}
        self._backoffs: dict[int, Backoff] = {}
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
        # What was fetched for a place that is gone would keep its partition out of every fetch.
        self.unread = {
            where: one for where, one in self.unread.items() if self._is_current(one.ask.place, one.ask.epoch)
        }
        wanted = {place.where for place in positions if not place.paused}
        self._troubles = {where: since for where, since in self._troubles.items() if where in wanted}
        for places in self._to_look_up():
            tasks.start_soon(self._look_up, places)
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
        self._in_trouble([positions.require(unled)], self._why_unled(snapshot, unled), cluster.runtime.now())
        cluster.outdated(snapshot)
        return cluster.config.retry_backoff_ms / 1000

    def _room(self, snapshot: Snapshot) -> int:
        """How many bytes the next fetch may bring: no leader gets so much that another has to wait for it."""
        kept = sum(len(one.records) for one in self.unread.values() if not one.ask.place.paused)
        leaders = {node.node_id for place in self._positions if (node := snapshot.leader(place.where)) is not None}
        room = self._config.fetch_max_bytes - kept - sum(self._promised.values())
        return min(room, max(1, self._config.fetch_max_bytes // max(1, len(leaders))))

    # --- fetching --------------------------------------------------------------------------------------

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
        except KafkaError as error:
            failed = True
            self._troubled(snapshot, self._still_wanted(asks), error, began)
        except Exception as bug:
            # What a stream raises, or a mistake of ours, must not end the other fetches.
            failed = True
            fault = KafkaError(f"fetching {some_of([ask.place.where for ask in asks])} failed in this client: {bug!r}")
            fault.__cause__ = bug
            self._troubled(snapshot, self._still_wanted(asks), fault, began)
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

    def _still_wanted(self, asks: list[Ask]) -> list[Place]:
        return [ask.place for ask in asks if self._is_current(ask.place, ask.epoch)]

    def _take(self, snapshot: Snapshot, ask: Ask, answer: Fetched | KafkaError, began: float) -> bool:
        """Keep what one partition's answer brings. True if it brings an error that asks for a pause."""
        place = ask.place
        if not self._is_current(place, ask.epoch):
            return False
        if isinstance(answer, Fetched):
            self._troubles.pop(place.where, None)
            place.high_watermark = answer.high_watermark
            if answer.records:
                self.unread[place.where] = answer
                self.tell()
            return False
        if isinstance(answer, OffsetOutOfRange):
            if self._positions.reset(place):
                # A broker that finds every offset out of range is not asked for ever without a word.
                self._in_trouble([place], answer, began)
                return True
            place.lost = True
            self._report(place, OffsetOutOfRange(f"{answer}; auto_offset_reset is 'none', so seek elsewhere"))
            return False
        self._troubled(snapshot, [place], answer, began)
        return True

    # --- lookups ---------------------------------------------------------------------------------------

    def _to_look_up(self) -> list[list[Place]]:
        """The places to look up now, by topic: one that cannot be looked up holds up no other.

        Nor does a partition without a leader, of a topic that is known: it is looked up alone.
        """
        snapshot = self._cluster.snapshot
        groups: dict[str | TopicPartition, list[Place]] = {}
        for place in self._positions.to_look_up():
            if place.spec is None:
                place.lost = True
                why = "has no position, and auto_offset_reset is 'none': seek first"
                self._report(place, UsageError(f"{place.where} {why}"))
                continue
            place.looking_up = True
            topic = snapshot.topics.get(place.where.topic)
            alone = topic is not None and topic.partitions and snapshot.leader(place.where) is None
            groups.setdefault(place.where if alone else place.where.topic, []).append(place)
        return list(groups.values())

    async def _look_up(self, places: list[Place]) -> None:
        """Find the offsets that these places should begin at."""
        epochs = {place.where: place.epoch for place in places}
        specs = {place.where: place.spec for place in places if place.spec is not None}
        offsets: dict[TopicPartition, int] = {}
        try:
            offsets = await self._offsets(specs)
        except Exception as error:
            # Whoever sought elsewhere or dropped the partitions meanwhile does not want to hear of it.
            current = [place for place in places if self._is_current(place, epochs[place.where])]
            if current:
                told = error
                if not isinstance(told, KafkaError):
                    told = KafkaError(f"looking up {some_of(specs)} failed in this client: {error!r}")
                    told.__cause__ = error
                self._report(current[0], told)
                self._cluster.outdated(self._cluster.snapshot)
                await anyio.sleep(self._cluster.config.retry_backoff_max_ms / 1000)
        for place in places:
            if self._is_current(place, epochs[place.where]):
                place.looking_up = False
                if place.where in offsets:
                    place.position, place.spec = offsets[place.where], None
        self.wake()

    def _is_current(self, place: Place, epoch: int) -> bool:
        return place.epoch == epoch and self._positions.get(place.where) is place

    async def _offsets(self, specs: dict[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        """The offset for each spec; the end of the log where no record is that late.

        None at all where the topic just became known: then it is known what can be looked up together.
        """
        deadline = self._cluster.deadline(self._cluster.config.default_api_timeout_ms / 1000)
        for topic in {where.topic for where in specs}:
            await self._cluster.topic(topic, deadline)
        if len(specs) > 1 and not all(map(self._cluster.snapshot.leader, specs)):
            return {}
        found = await look_up_offsets(self._cluster, specs, deadline, self._isolation)
        late = {where: OffsetSpec.LATEST for where, one in found.items() if one is None}
        if late:
            found.update(await look_up_offsets(self._cluster, late, deadline, self._isolation))
        return {where: one.offset for where, one in found.items() if one is not None}

    # --- trouble ---------------------------------------------------------------------------------------

    def _troubled(self, snapshot: Snapshot, places: list[Place], error: KafkaError, began: float) -> None:
        """A fetch failed. What a retry mends is reported only when it lasts, everything else at once."""
        retry, refresh = remedy(error)
        if refresh is Refresh.METADATA:
            self._cluster.outdated(snapshot)
        if places and retry:
            self._in_trouble(places, error, began)
        elif places:
            self._report(places[0], error)

    def _in_trouble(self, places: list[Place], error: KafkaError, began: float) -> None:
        """Nothing came of these places since ``began``, or since longer. Trouble that goes on is told again."""
        if isinstance(error, BrokerError) and not error.retriable and not isinstance(error, OffsetOutOfRange):
            self._report(places[0], error)
            return
        for place in places:
            self._troubles.setdefault(place.where, began)
        now, limit = self._cluster.runtime.now(), self._cluster.config.default_api_timeout_ms / 1000
        lasting = [place.where for place in places if now - self._troubles[place.where] >= limit]
        if lasting:
            told = f"nothing could be fetched of {some_of(lasting)} for {limit:g} s (default_api_timeout_ms): {error}"
            timeout = RequestTimeout(told)
            timeout.__cause__ = error
            self._report(places[0], timeout)
            for where in lasting:
                del self._troubles[where]

    def _why_unled(self, snapshot: Snapshot, where: TopicPartition) -> KafkaError:
        topic = snapshot.topics.get(where.topic)
        if topic is not None and topic.error != ErrorCode.NONE:
            return broker_error(topic.error, f"topic {where.topic!r}")
        return TopicNotReady(f"{where} has no leader that is known")

    def _report(self, place: Place, error: KafkaError) -> None:
        """Let the user hear of it."""
        self._faults[place.where] = place, place.epoch, error
        self.tell()

    def next_fault(self) -> KafkaError | None:
        """An error that the user has not heard of yet; not one of a place that was left meanwhile."""
        while self._faults:
            place, epoch, error = self._faults.pop(next(iter(self._faults)))
            if self._is_current(place, epoch):
                return error
        return None

    def tell(self) -> None:
        """Let the iteration look again: at new data, an error, a partition that is resumed."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()
