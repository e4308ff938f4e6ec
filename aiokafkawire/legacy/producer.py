"""A producer for a cluster of Kafka 0.7 that is registered in ZooKeeper."""

from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias, Unpack

import anyio

from ..argument_checks import is_integer, shown
from ..errors import ConfigError, ConnectionLost, KafkaError, UsageError
from ..event_log import EventLog, TroubleLog
from ..network.connector import Connector, connect_tcp
from ..runtime import Owner, Runtime
from .cluster import BrokerClients, Registry
from .errors import SessionExpired
from .registry import BrokerPartition
from .requests import check_legacy_topic
from .settings import LegacyOptions
from .zookeeper import EventType, Watch, WatchEvent, ZooKeeper

__all__ = ("LegacyProducer", "LegacyPartitioner", "java_hash_partitioner")

_log: Final = EventLog("aiokafkawire.legacy")
_PAUSE_SECONDS: Final = 0.1

LegacyPartitioner: TypeAlias = Callable[[str, int], int]
"""A function that receives a key and the number of partitions, and returns the index of a partition."""


def java_hash_partitioner(key: str, count: int) -> int:
    """Choose a partition as Java's clients of 0.7: the absolute value of the string's hash code, modulo ``count``."""
    number = 0
    data = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        number = (31 * number + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    if number >= 2**31:
        number = 2**32 - number
    # In Java the absolute value of the smallest integer is negative, which is no valid partition.
    return (number if number < 2**31 else 0) % count


class LegacyProducer:
    """A producer that sends to all partitions of a topic, on all registered brokers; use it as ``async with``.

    The partitioner returns an index into the registered partitions, ordered by broker and number. Messages for a topic
    that no broker has are sent to partition 0 of a broker, which creates the topic.

    While ZooKeeper is unreachable, the producer sends to the partitions that it already knows; messages for other
    topics wait up to ``zookeeper_timeout_ms``. Once ZooKeeper is reachable, the producer reads the partitions again.

    Args:
        servers: ZooKeeper's servers, as :class:`~aiokafkawire.legacy.zookeeper.ZooKeeper` takes them.
        partitioner: chooses the partition of messages with a key.
        session_timeout_ms: the timeout of the session with ZooKeeper.
        zookeeper_timeout_ms: how long ZooKeeper may take for one request, and to open a session.
        options: settings of the connections to brokers, see :class:`~aiokafkawire.legacy.settings.LegacyConfig`.
    """

    def __init__(
        self,
        servers: str,
        *,
        partitioner: LegacyPartitioner = java_hash_partitioner,
        session_timeout_ms: int = 6_000,
        zookeeper_timeout_ms: int = 30_000,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
        **options: Unpack[LegacyOptions],
    ) -> None:
        if not callable(partitioner):
            raise ConfigError(f"partitioner must be a function of a key and a number, got {shown(partitioner)}")
        self._runtime = runtime or Runtime()
        self._partitioner = partitioner
        self._new_session: Callable[[], ZooKeeper] = partial(
            ZooKeeper,
            servers,
            session_timeout_ms=session_timeout_ms,
            request_timeout_ms=zookeeper_timeout_ms,
        )
        self._zookeeper = self._new_session()
        self._clients = BrokerClients(connector=connector, runtime=self._runtime, **options)
        self._owner = Owner()
        self._patience = zookeeper_timeout_ms / 1000
        self._renewed: anyio.Event | None = None
        """Set once the new session with ZooKeeper is open; None while no session is being opened."""
        self._last_cause = ""
        self._lookup_lock = anyio.Lock()
        self._brokers_known = False
        self._brokers: list[int] = []
        self._partitions: dict[str, list[BrokerPartition]] = {}
        self._earlier_partitions: dict[str, list[BrokerPartition]] = {}
        """The partitions read before the connection to ZooKeeper was lost, used until the partitions are read again."""
        self._cacheable: set[str] = set()
        self._watches: dict[str, Watch] = {}

    async def __aenter__(self) -> Self:
        await self._owner.open()
        try:
            await self._zookeeper.__aenter__()
        except BaseException:
            await self._owner.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._owner.close()
            await self._clients.__aexit__(kind, error, trace)
        finally:
            await self._zookeeper.__aexit__(kind, error, trace)

    async def send(self, topic: str, values: Iterable[bytes], *, key: str | None = None) -> BrokerPartition:
        """Send messages to one partition, chosen by the key, or at random without one; return the partition.

        Brokers do not acknowledge messages: see :meth:`~aiokafkawire.legacy.client.LegacyClient.produce`.

        Raises:
            ConnectionLost: no broker is registered, or the chosen broker cannot be reached or has refused earlier
                messages.
            ZooKeeperError, RequestTimeout: ZooKeeper returned an error, or did not answer.
        """
        check_legacy_topic(topic)
        if key is not None and not isinstance(key, str) and self._partitioner is java_hash_partitioner:
            raise UsageError(f"key must be a string or None, got {shown(key)}")
        partitions = await self._partitions_of(topic)
        if not partitions:
            raise ConnectionLost("no broker is registered in ZooKeeper")
        index = (
            self._runtime.chance.randrange(len(partitions)) if key is None else self._partitioner(key, len(partitions))
        )
        if not is_integer(index, 0, len(partitions) - 1):
            raise UsageError(f"the partitioner chose {index} of {len(partitions)} partitions")
        partition = partitions[index]
        client = await self._clients.of(partition.broker)
        await client.produce(topic, values, partition=partition.partition)
        return partition

    async def confirm(self) -> None:
        """Check that no broker has refused messages, by calling ``LegacyClient.confirm`` for each broker."""
        for client in self._clients.opened:
            await client.confirm()

    async def _partitions_of(self, topic: str) -> list[BrokerPartition]:
        while True:
            if not self._zookeeper.expired:
                try:
                    async with self._lookup_lock:
                        return await self._look_up(topic)
                except SessionExpired as expired:
                    self._last_cause = str(expired)
            renewed = self._renew()
            known = self._partitions.get(topic) or self._earlier_partitions.get(topic)
            if known:
                return known
            with anyio.move_on_after(self._patience):
                await renewed.wait()
                continue
            raise ConnectionLost(
                f"the partitions of {topic} are not known, and there is no session with ZooKeeper, since"
                f" {self._patience:g} s (zookeeper_timeout_ms): {self._last_cause}"
            )

    def _renew(self) -> anyio.Event:
        """Start to open a new session, unless one is being opened; return an event that is set when it is open."""
        if self._renewed is None:
            self._renewed = anyio.Event()
            self._owner.spawn(self._open_session, self._renewed)
        return self._renewed

    async def _open_session(self, renewed: anyio.Event) -> None:
        _log.warning("producer: the ZooKeeper session expired; the producer opens a new one")
        await self._zookeeper.__aexit__(None, None, None)  # the producer has no nodes in the session
        trouble = TroubleLog(_log, self._runtime.now)
        while True:
            fresh = self._new_session()
            try:
                await fresh.__aenter__()
                trouble.ended("session", "producer: a new ZooKeeper session is open")
                break
            except KafkaError as cause:
                self._last_cause = str(cause)
                message = "producer: cannot open a new ZooKeeper session, retrying: %(error)s"
                trouble.failed("session", message, error=cause)
            await anyio.sleep(_PAUSE_SECONDS)
        self._zookeeper, self._renewed = fresh, None
        self._brokers_known = False
        self._earlier_partitions |= self._partitions
        self._partitions = {}
        renewed.set()

    async def _look_up(self, topic: str) -> list[BrokerPartition]:
        registry = Registry(self._zookeeper)
        if not self._brokers_known:
            self._brokers_known = True  # set before the request, so that a change during the request resets it
            try:
                found = await registry.brokers(self._on_brokers_change)
            except BaseException:
                self._brokers_known = False
                raise
            self._brokers = sorted(found)
            if found or not self._earlier_partitions:
                self._clients.know(found)
                self._earlier_partitions = {}
        partitions = self._partitions.get(topic)
        if partitions is None:
            self._cacheable.add(topic)  # a change removes the topic, even during the request
            counts = await registry.partitions(topic, self._watch(topic))
            partitions = sorted(BrokerPartition(broker, at) for broker, count in counts.items() for at in range(count))
            if partitions and topic in self._cacheable:
                self._partitions[topic] = partitions
        return (
            partitions
            or [BrokerPartition(broker, 0) for broker in self._brokers]
            or self._earlier_partitions.get(topic, [])
        )

    def _watch(self, topic: str) -> Watch:
        """Return the topic's watch. It is always the same object, so that it is not registered twice."""

        def on_change(event: WatchEvent) -> None:
            if event.type is EventType.EXPIRED:  # the known partitions are used until a new session is open
                return
            self._cacheable.discard(topic)
            partitions = self._partitions.pop(topic, None)
            if partitions is not None and event.type is EventType.RECONNECTED:  # ZooKeeper may become unreachable again
                self._earlier_partitions[topic] = partitions

        return self._watches.setdefault(topic, on_change)

    def _on_brokers_change(self, event: WatchEvent) -> None:
        if event.type is not EventType.EXPIRED:
            self._brokers_known = False
