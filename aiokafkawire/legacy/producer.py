"""A producer for a cluster of Kafka 0.7 that ZooKeeper knows."""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias, Unpack

import anyio

from ..argument_checks import is_integer, shown
from ..errors import ConfigError, ConnectionLost, KafkaError, UsageError
from ..network.connector import Connector, connect_tcp
from ..runtime import Owner, Runtime
from .cluster import BrokerClients, Registry
from .errors import SessionExpired
from .jute import EventType, WatchEvent
from .registry import BrokerPartition
from .requests import check_legacy_topic
from .settings import LegacyOptions
from .watches import Watch
from .zookeeper import ZooKeeper

__all__ = ("LegacyProducer", "LegacyPartitioner", "java_hash_partitioner")

_log: Final = logging.getLogger("aiokafkawire.legacy")
_PAUSE_SECONDS: Final = 0.1

LegacyPartitioner: TypeAlias = Callable[[str, int], int]
"""Takes a key, and of how many partitions to choose; returns an index."""


def java_hash_partitioner(key: str, count: int) -> int:
    """As Java's clients of 0.7 choose for a string: the absolute value of its hash code, modulo ``count``."""
    number = 0
    data = key.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        number = (31 * number + int.from_bytes(data[at : at + 2])) & 0xFFFFFFFF
    if number >= 2**31:
        number = 2**32 - number
    # The absolute value of the least number is itself in Java, where that partition could not be.
    return (number if number < 2**31 else 0) % count


class LegacyProducer:
    """Sends messages to any of a topic's partitions, on any broker; use it as ``async with``.

    Partitions are those that brokers have registered, ordered by broker and number. A topic that no broker has yet is
    sent to partition 0 of one of them, which creates it.

    While ZooKeeper is away, topics that were sent to before are sent to as their partitions were known last; others
    wait for it, up to ``zookeeper_timeout_ms``. When it returns, what is registered is read again.

    Args:
        servers: ZooKeeper's, as :class:`~aiokafkawire.legacy.zookeeper.ZooKeeper` takes them.
        partitioner: chooses by key.
        session_timeout_ms: of the session with ZooKeeper.
        zookeeper_timeout_ms: how long ZooKeeper may take for one request, and to be found.
        options: of the connections to brokers, see :class:`~aiokafkawire.legacy.settings.LegacyConfig`.
    """

    def __init__(
        self,
        servers: str,
        *,
        partitioner: LegacyPartitioner = java_hash_partitioner,
        session_timeout_ms: int = 6_000,
        zookeeper_timeout_ms: int = 30_000,
        zookeeper_connector: Connector = connect_tcp,
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
            connector=zookeeper_connector,
            runtime=self._runtime,
        )
        self._zookeeper = self._new_session()
        self._clients = BrokerClients(connector=connector, runtime=self._runtime, **options)
        self._owner = Owner()
        self._patience = zookeeper_timeout_ms / 1000
        self._renewed: anyio.Event | None = None
        """Set once there is a new session with ZooKeeper; None while none is being opened."""
        self._last_cause = ""
        self._looking = anyio.Lock()
        self._brokers_known = False
        self._brokers: list[int] = []
        self._places: dict[str, list[BrokerPartition]] = {}
        self._before: dict[str, list[BrokerPartition]] = {}
        """What was known before the session expired; it will do until brokers have registered themselves again."""
        self._asked: set[str] = set()
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
        """Send messages to one partition, chosen by the key, or by chance without one; which it was.

        Nothing is acknowledged: see :meth:`~aiokafkawire.legacy.client.LegacyClient.produce`.

        Raises:
            ConnectionLost: no broker is up, or the one chosen cannot be reached, or refused what was sent before.
            ZooKeeperError, RequestTimeout: ZooKeeper was needed, and did not help.
        """
        check_legacy_topic(topic)
        if key is not None and not isinstance(key, str) and self._partitioner is java_hash_partitioner:
            raise UsageError(f"key must be a string or None, got {shown(key)}")
        places = await self._places_of(topic)
        if not places:
            raise ConnectionLost("no broker is registered in ZooKeeper")
        index = self._runtime.chance.randrange(len(places)) if key is None else self._partitioner(key, len(places))
        if not is_integer(index, 0, len(places) - 1):
            raise UsageError(f"the partitioner chose {index} of {len(places)} partitions")
        place = places[index]
        client = await self._clients.of(place.broker)
        await client.produce(topic, values, partition=place.partition)
        return place

    async def confirm(self) -> None:
        """Make sure that no broker has refused by hanging up: ``LegacyClient.confirm`` for each that was sent to."""
        for client in self._clients.opened:
            await client.confirm()

    async def _places_of(self, topic: str) -> list[BrokerPartition]:
        while True:
            if not self._zookeeper.expired:
                try:
                    async with self._looking:
                        return await self._looked_up(topic)
                except SessionExpired as expired:
                    self._last_cause = str(expired)
            renewed = self._renew()
            if self._places.get(topic):
                return self._places[topic]
            with anyio.move_on_after(self._patience):
                await renewed.wait()
                continue
            raise ConnectionLost(
                f"the partitions of {topic} are not known, and there is no session with ZooKeeper, since"
                f" {self._patience:g} s (zookeeper_timeout_ms): {self._last_cause}"
            )

    def _renew(self) -> anyio.Event:
        """Open a new session in the background, if that is not being done; what is set once it is open."""
        if self._renewed is None:
            self._renewed = anyio.Event()
            self._owner.spawn(self._open_session, self._renewed)
        return self._renewed

    async def _open_session(self, renewed: anyio.Event) -> None:
        _log.warning("producer: the ZooKeeper session expired; a new one is being opened")
        await self._zookeeper.__aexit__(None, None, None)  # nothing of ours went with it
        while True:
            fresh = self._new_session()
            try:
                await fresh.__aenter__()
                break
            except KafkaError as cause:
                self._last_cause = str(cause)
                _log.warning("producer: no new ZooKeeper session, trying on: %s", cause)
            await anyio.sleep(_PAUSE_SECONDS)
        self._zookeeper, self._renewed = fresh, None
        self._before, self._brokers_known = self._places, False
        self._places = {}
        renewed.set()

    async def _looked_up(self, topic: str) -> list[BrokerPartition]:
        registry = Registry(self._zookeeper)
        if not self._brokers_known:
            self._brokers_known = True  # a change while it is asked for must not be missed
            try:
                found = await registry.brokers(self._brokers_changed)
            except BaseException:
                self._brokers_known = False
                raise
            self._brokers = sorted(found)
            if found or not self._before:
                self._clients.know(found)
                self._before = {}
        places = self._places.get(topic)
        if places is None:
            self._asked.add(topic)  # a change takes it out, also one while it is asked for
            counts = await registry.partitions(topic, self._watch(topic))
            places = sorted(BrokerPartition(broker, at) for broker, count in counts.items() for at in range(count))
            if places and topic in self._asked:
                self._places[topic] = places
        return places or [BrokerPartition(broker, 0) for broker in self._brokers] or self._before.get(topic, [])

    def _watch(self, topic: str) -> Watch:
        """The same for each topic always, so that it is set once however often it is asked for."""

        def hear(event: WatchEvent) -> None:
            if event.type is EventType.NONE:  # the session is over: what was known will do until there is another
                return
            self._asked.discard(topic)
            self._places.pop(topic, None)

        return self._watches.setdefault(topic, hear)

    def _brokers_changed(self, event: WatchEvent) -> None:
        if event.type is not EventType.NONE:
            self._brokers_known = False
