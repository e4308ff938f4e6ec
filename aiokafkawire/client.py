"""The client: the front door to a cluster."""

from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from .admin.admin import Admin
from .cluster.cluster import Cluster
from .config import (
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    make,
    parse_servers,
)
from .consumer.consumer import Consumer
from .errors import ConfigError, UsageError
from .network.stream import Connector, connect_tcp
from .producer.producer import Producer
from .runtime import Runtime
from .types import ProducerIdentity

__all__ = ("Client",)

K = TypeVar("K")
V = TypeVar("V")


class Client:
    """A Kafka cluster, as seen from here; use it as ``async with``.

    Opening it finds a broker; producers, consumers and the admin share its connections and metadata. It may be
    opened in one task and closed in another.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of such; one that answers is enough.
        connector: opens byte streams, TCP if not given; tests give an in-process broker's.
        runtime: clock, chance and threads; simulations give their own.
        options: see :class:`~aiokafkawire.config.ClientConfig`.

    Raises:
        ConfigError: an address or a setting is wrong.
        NoBrokerReachable: entering found no broker within ``bootstrap_timeout_ms``.
        WireError: what answers at the address is not Kafka.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        config = make(ClientConfig, options)
        self._cluster = Cluster(parse_servers(bootstrap_servers), config, connector, runtime or Runtime())
        self._admin = Admin(self._cluster)
        self._lanes = count(1)
        self._state = "new"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Find a broker and learn the cluster from it; what ``async with`` does on entering."""
        if self._state != "new":
            raise UsageError(f"this client is {self._state}: make another")
        # Whatever comes of it, it is not to be opened twice.
        self._state = "closed"
        await self._cluster.open()
        self._state = "open"

    async def close(self) -> None:
        """Close all connections; what ``async with`` does on leaving. May be called again, from any task."""
        self._state = "closed"
        await self._cluster.close()

    @property
    def admin(self) -> Admin:
        """Topics and offsets."""
        return self._admin

    @overload
    def producer(
        self, *, identity: ProducerIdentity | None = None, **options: Unpack[ProducerOptions]
    ) -> Producer[bytes, bytes]: ...
    @overload
    def producer(
        self,
        *,
        key_serializer: Callable[[K], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, bytes]: ...
    @overload
    def producer(
        self,
        *,
        value_serializer: Callable[[V], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[bytes, V]: ...
    @overload
    def producer(
        self,
        *,
        key_serializer: Callable[[K], bytes],
        value_serializer: Callable[[V], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, V]: ...
    def producer(
        self,
        *,
        key_serializer: Callable[[Any], bytes] | None = None,
        value_serializer: Callable[[Any], bytes] | None = None,
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[Any, Any]:
        """A producer, to be used as ``async with``.

        Args:
            key_serializer: makes bytes of keys; without one they are bytes.
            value_serializer: makes bytes of values; without one they are bytes.
            identity: another producer's, which has a transaction open, to write into that.
            options: see :class:`~aiokafkawire.config.ProducerConfig`.

        Raises:
            ConfigError: a setting is wrong.
        """
        shared = identity.transactional_id if identity is not None else options.get("transactional_id")
        if options.setdefault("transactional_id", shared) != shared:
            raise ConfigError(f"transactional_id is {shared!r} with this identity")
        config = make(ProducerConfig, options)
        lane = f"produce-{next(self._lanes)}"
        return Producer(self._cluster, config, lane, key_serializer, value_serializer, identity)

    @overload
    def consumer(self, *topics: str, **options: Unpack[ConsumerOptions]) -> Consumer[bytes, bytes]: ...
    @overload
    def consumer(
        self, *topics: str, key_deserializer: Callable[[bytes], K], **options: Unpack[ConsumerOptions]
    ) -> Consumer[K, bytes]: ...
    @overload
    def consumer(
        self, *topics: str, value_deserializer: Callable[[bytes], V], **options: Unpack[ConsumerOptions]
    ) -> Consumer[bytes, V]: ...
    @overload
    def consumer(
        self,
        *topics: str,
        key_deserializer: Callable[[bytes], K],
        value_deserializer: Callable[[bytes], V],
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, V]: ...
    def consumer(
        self,
        *topics: str,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any, Any]:
        """A consumer, to be used as ``async with``.

        Args:
            topics: read all partitions of these; without any, ``assign`` says which partitions are read.
            key_deserializer: reads keys; without one they are bytes.
            value_deserializer: reads values; without one they are bytes.
            options: see :class:`~aiokafkawire.config.ConsumerConfig`.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: a topic's name is not allowed.
        """
        config = make(ConsumerConfig, options)
        limit = self._cluster.config.request_timeout_ms
        if config.fetch_max_wait_ms >= limit:
            raise ConfigError(
                f"fetch_max_wait_ms must be less than request_timeout_ms ({limit}): idle brokers answer late"
            )
        lane = f"fetch-{next(self._lanes)}"
        return Consumer(self._cluster, config, lane, topics, key_deserializer, value_deserializer)
