"""The client: the front door to a cluster."""

import inspect
from collections.abc import Callable, Collection, Sequence
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

import anyio

from .admin.admin import Admin
from .argument_checks import check_flag, flattened, items_of, shown
from .cluster.cluster import Cluster
from .config import (
    AutoOffsetReset,
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    make_config,
    parse_servers,
)
from .consumer.consumer import Consumer
from .errors import ConfigError, UsageError
from .network.connector import Connector, connect_tcp
from .other_clients_names import CLIENT, add_hints
from .producer.producer import Producer
from .runtime import Runtime, finish, opened_at, warn_unclosed
from .types import BytesLike, OffsetSpec, ProducerIdentity, check_topic_name

if TYPE_CHECKING:
    from .bounded_reads import BoundedBatches, BoundedRecords, Bounds
    from .group.assignors import Assignor
    from .transform import Process

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
        AuthenticationFailed: entering found brokers, and they and this client do not trust one another: a password, a
            certificate, TLS or SASL where the broker has none.
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
        config = make_config(ClientConfig, options)
        if not callable(connector):
            raise ConfigError(f"connector must be a coroutine function of host and port, got {shown(connector)}")
        if runtime is not None and not isinstance(runtime, Runtime):
            raise ConfigError(f"runtime must be a Runtime or None, got {shown(runtime)}")
        self._cluster = Cluster(parse_servers(bootstrap_servers), config, connector, runtime or Runtime())
        self._connector = connector
        self._admin = Admin(self._cluster)
        self._lanes = count(1)
        self._state = "new"
        self._opened_at = ""

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
        self._opened_at = opened_at()
        await self._cluster.open()
        self._state = "open"

    async def close(self) -> None:
        """Close all connections; what ``async with`` does on leaving. May be called again, from any task.

        A cancellation does not keep it from that: it is raised afterwards.

        Raises:
            UsageError: this is another event loop than the one on which the client was opened. The client stays open
                if that loop still lives, to be closed there.
        """
        if self._cluster.owner.has_lost_loop:
            if self._state == "closed":
                return
            self._state = "closed"
        self._cluster.owner.require_own_loop()
        self._state = "closed"
        await finish(self._cluster.close)

    def __del__(self) -> None:
        if getattr(self, "_state", "new") == "open":
            warn_unclosed(self, "client", self._opened_at)

    @property
    def admin(self) -> Admin:
        """Topics, groups and offsets."""
        return self._admin

    @overload
    def producer(
        self, *, identity: ProducerIdentity | None = None, **options: Unpack[ProducerOptions]
    ) -> Producer[BytesLike, BytesLike]: ...
    @overload
    def producer(
        self,
        *,
        key_serializer: Callable[[K], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[K, BytesLike]: ...
    @overload
    def producer(
        self,
        *,
        value_serializer: Callable[[V], bytes],
        identity: ProducerIdentity | None = None,
        **options: Unpack[ProducerOptions],
    ) -> Producer[BytesLike, V]: ...
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
            key_serializer: makes bytes of keys; without one they are bytes, bytearrays or memoryviews.
            value_serializer: makes bytes of values; without one they are the same.
            identity: another producer's, which has a transaction open, to write into that.
            options: see :class:`~aiokafkawire.config.ProducerConfig`.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: there is no event loop here, or another than the client's.
        """
        _check_functions(key_serializer=key_serializer, value_serializer=value_serializer)
        if identity is not None and not isinstance(identity, ProducerIdentity):
            raise UsageError(f"identity must be the identity of another producer, got {shown(identity)}")
        shared = identity.transactional_id if identity is not None else options.get("transactional_id")
        if options.setdefault("transactional_id", shared) != shared:
            raise ConfigError(f"transactional_id is {shared!r} with this identity")
        config = make_config(ProducerConfig, options)
        self._cluster.owner.require_loop("producer")
        lane = f"produce-{next(self._lanes)}"
        return Producer(self._cluster, config, lane, key_serializer, value_serializer, identity)

    @overload
    def consumer(
        self, *topics: str | Collection[str], assignors: Sequence["Assignor"] = (), **options: Unpack[ConsumerOptions]
    ) -> Consumer[bytes, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: Callable[[bytes], K],
        assignors: Sequence["Assignor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, bytes]: ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        value_deserializer: Callable[[bytes], V],
        assignors: Sequence["Assignor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[bytes, V]: ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: Callable[[bytes], K],
        value_deserializer: Callable[[bytes], V],
        assignors: Sequence["Assignor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[K, V]: ...
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        assignors: Sequence["Assignor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> Consumer[Any, Any]:
        """A consumer, to be used as ``async with``.

        Args:
            topics: names, or one list of names: with a ``group_id`` share the partitions of these with the group,
                without one read all of them; without topics, ``subscribe`` or ``assign`` says what is read.
            key_deserializer: reads keys; without one they are bytes.
            value_deserializer: reads values; without one they are bytes.
            assignors: of your own, instead of those that ``partition_assignment_strategy`` names; for this consumer
                alone.
            options: see :class:`~aiokafkawire.config.ConsumerConfig`.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: a topic's name is not allowed, or there is no event loop here, or another than the client's.
        """
        names = flattened(topics)
        return self._consumer(names, options, key_deserializer, value_deserializer, assignors)

    def _consumer(
        self,
        topics: tuple[str, ...],
        options: ConsumerOptions,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        assignors: Sequence["Assignor"] = (),
        *,
        joins: bool = True,
    ) -> Consumer[Any, Any]:
        config = make_config(ConsumerConfig, options)
        _check_membership(config)
        _check_functions(key_deserializer=key_deserializer, value_deserializer=value_deserializer)
        _check_assignors(assignors)
        if config.heartbeat_thread and self._connector is not connect_tcp:
            raise ConfigError("heartbeat_thread makes TCP connections of its own, but the client has its own connector")
        if config.heartbeat_thread:
            _check_blocking(self._cluster.config)
        limit = self._cluster.config.request_timeout_ms
        if config.fetch_max_wait_ms >= limit:
            raise ConfigError(
                f"fetch_max_wait_ms must be less than request_timeout_ms ({limit}): idle brokers answer late"
            )
        self._cluster.owner.require_loop("consumer")
        lane = str(next(self._lanes))
        return Consumer(
            self._cluster, config, lane, topics, key_deserializer, value_deserializer, assignors, joins=joins
        )

    @overload
    def read_records(
        self, topic: str, *, start: "Bounds" = ..., end: "Bounds | None" = None, **options: Unpack[ConsumerOptions]
    ) -> "BoundedRecords[bytes, bytes]": ...
    @overload
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = ...,
        end: "Bounds | None" = None,
        key_deserializer: Callable[[bytes], K],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[K, bytes]": ...
    @overload
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = ...,
        end: "Bounds | None" = None,
        value_deserializer: Callable[[bytes], V],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[bytes, V]": ...
    @overload
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = ...,
        end: "Bounds | None" = None,
        key_deserializer: Callable[[bytes], K],
        value_deserializer: Callable[[bytes], V],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[K, V]": ...
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        key_deserializer: Callable[[bytes], Any] | None = None,
        value_deserializer: Callable[[bytes], Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[Any, Any]":
        """Read a topic from a start to an end, record by record; the iteration ends by itself.

        It ends on topics with transactions, compacted ones and empty ones too, whose last offset may be no record's.

        Args:
            topic: all of its partitions are read, or those that a mapping names.
            start: where to begin, for all partitions or by partition: an offset, or an OffsetSpec. Nothing is read of a
                partition that has no record so late.
            end: the offset after the last record to read, given likewise. None: the ends as they are when it begins.
                An offset may not be beyond the end of the log; a transaction that is open before it is waited for.
            key_deserializer, value_deserializer: as for :meth:`consumer`.
            options: see :class:`~aiokafkawire.config.ConsumerConfig`. The default of ``isolation_level`` is
                ``"read_committed"`` here, so that only records that count are read, up to the first open transaction;
                that of ``auto_offset_reset`` is ``"none"``, so that records that were deleted raise OffsetOutOfRange.

        Raises:
            ConfigError: a setting is wrong, or there is a ``group_id``.
            UsageError: what is given is no topic, no offset, or not of this topic.
        """
        from .bounded_reads import BoundedRecords, reader_options

        consumer = self._consumer((), reader_options(options), key_deserializer, value_deserializer)
        return BoundedRecords(consumer, topic, start, end)

    def read_batches(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        columns: Sequence[str] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedBatches":
        """Read a topic from a start to an end as ``pyarrow.RecordBatch``, in bounded memory; see :meth:`read_records`.

        Args:
            topic, start, end, options: as for :meth:`read_records`.
            columns: some of those that :meth:`ConsumerBatch.to_arrow` has, in this order; None for all.

        Raises:
            ConfigError, UsageError: as :meth:`read_records`; also if there is no such column.
            ImportError: pyarrow is not installed (``pip install aiokafkawire[arrow]``).
        """
        from .bounded_reads import BoundedBatches, reader_options

        return BoundedBatches(self._consumer((), reader_options(options)), topic, start, end, columns)

    async def transform(
        self,
        source: str | Sequence[str],
        process: "Process",
        *,
        group_id: str,
        transactional_id: str,
        max_records: int = 500,
        commit_interval_ms: int = 100,
        auto_offset_reset: AutoOffsetReset = "earliest",
        stop: anyio.Event | None = None,
        until_end: bool = False,
        consumer_options: ConsumerOptions | None = None,
        producer_options: ProducerOptions | None = None,
    ) -> int:
        """Consume, process, produce, each record exactly once, in transactions (KIP-98, KIP-447).

        It goes on until it is stopped, cancelled, or fails; called again, it goes on behind the last transaction that
        was committed. All partitions of the topics are read. Readers of committed records see the outcome of each
        record once; what else ``process`` does may be done again for records whose transaction was not committed.

        Args:
            source: a topic, or several; records of open and aborted transactions are not read.
            process: is called with records, and returns a list of :class:`~.transform.OutgoingRecord` to send, or None.
            group_id: under whose name offsets are committed.
            transactional_id: whoever transforms for this group has to have the same one: then the last to begin fences
                those before it, whose next transaction fails, and no two count the same record.
            max_records: the most records of one transaction.
            commit_interval_ms: how long records are gathered for one transaction; they are seen so much later.
            auto_offset_reset: where to begin if the group has committed nothing.
            stop: once it is set, it ends after the transaction that is being made; no further one begins.
            until_end: ends when it has reached the ends of the partitions as they were when it began.
            consumer_options, producer_options: as for :meth:`consumer` and :meth:`producer`.

        Returns:
            How many records were read and committed.

        Raises:
            Exception: what ``process`` raises; its records do not count.
            ProducerFenced, InvalidTxnState: another has the transactional id, or a transaction was open for too long.
            KafkaError: reading or writing fails, at once or for ``default_api_timeout_ms``, and retries do not mend it.
            ConfigError: a setting is wrong, or is said twice.
        """
        from .transform import TransformLoop, joined

        topics = (source,) if isinstance(source, str) else tuple(items_of("source", source, "'orders' or ['orders']"))
        if not topics:
            raise UsageError("transform() needs a topic to read")
        for topic in topics:
            check_topic_name(topic)
        _check_transform(process, stop, until_end, consumer_options, producer_options)
        reads = ConsumerOptions(
            group_id=group_id,
            auto_offset_reset=auto_offset_reset,
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        writes = ProducerOptions(transactional_id=transactional_id)
        consumer = self._consumer(topics, joined(consumer_options, reads), joins=False)
        producer = self.producer(**joined(producer_options, writes))
        limits = {"max_records": max_records, "commit_interval_ms": commit_interval_ms}
        loop = TransformLoop(self._cluster, consumer, producer, process, **limits)
        # First the producer: it ends what another with its id has left open, and so the offsets are settled.
        async with producer, consumer:
            return await loop.run(stop, until_end=until_end)


add_hints(Client, CLIENT)


def _check_functions(**given: object) -> None:
    for name, function in given.items():
        if function is not None and not callable(function):
            raise ConfigError(f"{name} must be a function, got {shown(function)}")


def _check_assignors(given: object) -> None:
    """Raise ConfigError unless they are assignors, as :class:`~.group.assignors.Assignor` describes one."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(
            "assignors must be a sequence of assignors of your own, got "
            f"{shown(given)}; partition_assignment_strategy names those of Kafka"
        )
    for one in given:
        if not callable(getattr(one, "assign", None)):
            raise ConfigError(f"assignors must be objects with a method assign(), got {shown(one)}")


def _check_transform(
    process: object, stop: object, until_end: object, consumer_options: object, producer_options: object
) -> None:
    if not callable(process):
        raise UsageError(f"process must be a function that takes records, got {shown(process)}")
    if stop is not None and not (hasattr(stop, "wait") and hasattr(stop, "is_set")):
        raise UsageError(f"stop must be an anyio.Event or None, got {shown(stop)}")
    check_flag("until_end", until_end)
    for name, options in (("consumer_options", consumer_options), ("producer_options", producer_options)):
        if options is not None and not (isinstance(options, dict) and all(isinstance(one, str) for one in options)):
            raise UsageError(f"{name} must be a dict of settings or None, got {shown(options)}")


def _check_blocking(config: ClientConfig) -> None:
    for setting in ("sasl_oauthbearer_token", "sasl_aws_credentials"):
        if inspect.iscoroutinefunction(getattr(config, setting)):
            raise ConfigError(f"heartbeat_thread needs {setting} to be a plain function: the loop may be blocked")


def _check_membership(config: ConsumerConfig) -> None:
    if config.group_id == "":
        raise ConfigError("group_id must not be empty")
    if config.group_instance_id is not None and (not config.group_instance_id or config.group_id is None):
        raise ConfigError("group_instance_id must be a name, and needs a group_id")
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        least = f"less than session_timeout_ms ({config.session_timeout_ms})"
        raise ConfigError(f"heartbeat_interval_ms must be {least}, got {config.heartbeat_interval_ms}")
