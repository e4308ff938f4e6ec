"""The client of a Kafka cluster, which makes producers, consumers and the admin client."""

import inspect
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar, Unpack, overload

from .argument_checks import check_flag, check_stop, flattened, items_of, shown
from .cluster.metrics_push import MetricsPush
from .config import (
    AutoOffsetReset,
    ClientConfig,
    ClientOptions,
    ConsumerConfig,
    ConsumerOptions,
    ProducerConfig,
    ProducerOptions,
    ShareConsumerConfig,
    ShareConsumerOptions,
    make_config,
    parse_servers,
)
from .errors import ConfigError, UsageError
from .network.connector import Connector, connect_tcp
from .observe import Observers
from .other_clients_names import CLIENT, add_hints
from .runtime import Runtime, finish, opened_at, warn_unclosed
from .serialization import AnyDeserializer, AnySerializer, check_converters, knows_record
from .tracing import new_client_hooks
from .types import (
    Address,
    BytesLike,
    OffsetSpec,
    ProducerIdentity,
    SubscriptionPattern,
    TopicPartition,
    check_topic_name,
)

if TYPE_CHECKING:
    import anyio
    import pyarrow as pa

    from .admin.admin import Admin
    from .bounded_reads import BoundedBatches, BoundedRecords, Bounds
    from .client_health import ClientHealth
    from .consumer.consumer import Consumer
    from .group.assignors import Assignor
    from .interceptors import ConsumerInterceptor, ConsumerInterceptors, ProducerInterceptor, ProducerInterceptors
    from .metrics.client_metrics import ClientMetrics
    from .metrics.metric import Metric
    from .processing.lanes import Ordering
    from .processing.processing_run import OnProgress
    from .processing.retry import Retry
    from .processing.retry_topics import RetryTopic
    from .processing.summary import ProcessSummary
    from .producer.many_records import ArrowData
    from .producer.producer import Producer
    from .protocol.schema import Request, Response
    from .records.deserialization import FailureHandler
    from .share.share_consumer import ShareConsumer
    from .transform import Process

__all__ = ("Client",)

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound="Response")

_DEAD_LETTER_BYTES: Final = 128 * 1024 * 1024
"""The maximum size of a record in a dead-letter topic, which is larger than brokers usually allow."""


class Client(MetricsPush):
    """A client of one Kafka cluster; use it as ``async with``.

    Entering connects to a broker. Producers, consumers and the admin share the client's connections and metadata. The
    client may be opened in one task and closed in another.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of ``"host:port"``; one server that answers is
            enough. Leave it out to speak to controllers (``bootstrap_controllers``).
        connector: opens byte streams, by default over TCP; tests use the connector of an in-process broker.
        runtime: the clock, random numbers and threads, which simulations replace.
        observers: objects to notify of connections, requests, batches, fetches, commits, rebalances and
            transactions; see :class:`~aiokafkawire.observe.Observer`.
        options: see :class:`~aiokafkawire.config.ClientConfig`.

    Raises:
        ConfigError: an address, a setting or, on entering, a file that a setting names is wrong.
        AuthenticationFailed: on entering, a broker was reached, but authentication failed: for example, the password or
            the certificate is wrong, or the client uses SASL and the listener does not.
        NoBrokerReachable: on entering, no broker was reached within ``bootstrap_timeout_ms``.
        WireError: on entering, the server does not speak Kafka's protocol, or only one side uses TLS.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        connector: Connector = connect_tcp,
        runtime: Runtime | None = None,
        observers: Iterable[object] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        # Connections, records and messages take longer to load than all that importing this module loads.
        from .cluster.cluster import Cluster
        from .health_monitor import HealthMonitor
        from .metrics.live import LiveClient

        config = make_config(ClientConfig, options)
        if not callable(connector):
            raise ConfigError(f"connector must be a coroutine function of host and port, got {shown(connector)}")
        if runtime is not None and not isinstance(runtime, Runtime):
            raise ConfigError(f"runtime must be a Runtime or None, got {shown(runtime)}")
        addresses = _addresses(bootstrap_servers, config)
        self._cluster = Cluster(addresses, config, connector, runtime or Runtime(), Observers(observers))
        self._connector = connector
        self._admin: Admin | None = None
        self._live = LiveClient(self._cluster)
        self._health = HealthMonitor(self._live)
        self._metrics: ClientMetrics | None = None
        self._lanes = count(1)
        self._state = "new"
        self._opened_at = ""
        for prepare in tuple(new_client_hooks):
            prepare(self)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect to a broker and fetch the cluster's metadata, as ``async with`` does on entering."""
        if self._state != "new":
            raise UsageError(f"this client is {self._state}: make another")
        # A client whose open() fails cannot be opened again.
        self._state = "closed"
        self._opened_at = opened_at()
        if not self._cluster.config.enable_metrics_push:
            await self._cluster.open()
        else:
            from .metrics.resource_labels import resource_labels

            self.metrics()  # counts from here on
            await self._cluster.open()
            labels = partial(resource_labels, self._live)
            self._cluster.owner.spawn(self._cluster.telemetry.run, self.metrics, labels)
        self._state = "open"
        self._cluster.owner.spawn(self._health.run)

    async def close(self) -> None:
        """Close all connections, as ``async with`` does on leaving. Any task may call this method, repeatedly.

        Close producers before: records that they have not sent by then fail. Consumers that are still open commit
        nothing, and do not leave their groups.

        If the caller is cancelled, the cancellation is raised only after the connections are closed.

        Raises:
            UsageError: the client was opened on another event loop. If that loop still exists, the client stays open
                and must be closed on that loop.
        """
        if self._cluster.owner.has_lost_loop:
            if self._state == "closed":
                return
            self._state = "closed"
        self._cluster.owner.require_own_loop()
        self._state = "closed"
        await finish(self._close)

    async def _close(self) -> None:
        try:
            if self._cluster.config.enable_metrics_push:
                await self._cluster.telemetry.terminate()
        finally:
            await self._cluster.close()

    def __del__(self) -> None:
        if getattr(self, "_state", "new") == "open":
            warn_unclosed(self, "client", self._opened_at)

    @property
    def admin(self) -> "Admin":
        """The admin client, for topics, groups and offsets."""
        if self._admin is None:
            from .admin.admin import Admin

            self._admin = Admin(self._cluster)
        return self._admin

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, as of the last metadata; None before the client is opened, and before Kafka 0.10.1."""
        return self._cluster.metadata.snapshot.cluster_id

    def health(self) -> "ClientHealth":
        """Return at once whether the client is ready and live, and why, with the health of its producers and consumers.

        See docs/health.md. The method sends no request itself. It may be called before the client is opened, and after
        it is closed.

        Raises:
            UsageError: the client is open, and another event loop than its own is running, or none.
        """
        return self._health.health(self._state)

    def metrics(self) -> "tuple[Metric, ...]":
        """Return what the client measures, under the names of the Java client's metrics; see docs/metrics.md.

        The client counts from the first call on: call this method once at the start. Before, it costs nothing. Values
        of the present, such as lag, free buffers and open connections, are right from the first call. Any thread may
        call this method.
        """
        return self._client_metrics().metrics()

    def _client_metrics(self) -> "ClientMetrics":
        if self._metrics is None:
            from .metrics.client_metrics import ClientMetrics

            self._metrics = ClientMetrics(self._live)
            self._metrics.start()
        return self._metrics

    @overload
    def producer(
        self,
        *,
        identity: ProducerIdentity | None = None,
        interceptors: Sequence["ProducerInterceptor"] = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[BytesLike, BytesLike]": ...
    @overload
    def producer(
        self,
        *,
        key_serializer: AnySerializer[K],
        identity: ProducerIdentity | None = None,
        interceptors: Sequence["ProducerInterceptor"] = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[K, BytesLike]": ...
    @overload
    def producer(
        self,
        *,
        value_serializer: AnySerializer[V],
        identity: ProducerIdentity | None = None,
        interceptors: Sequence["ProducerInterceptor"] = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[BytesLike, V]": ...
    @overload
    def producer(
        self,
        *,
        key_serializer: AnySerializer[K],
        value_serializer: AnySerializer[V],
        identity: ProducerIdentity | None = None,
        interceptors: Sequence["ProducerInterceptor"] = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[K, V]": ...
    def producer(
        self,
        *,
        key_serializer: AnySerializer[Any] | None = None,
        value_serializer: AnySerializer[Any] | None = None,
        identity: ProducerIdentity | None = None,
        interceptors: Sequence["ProducerInterceptor"] = (),
        **options: Unpack[ProducerOptions],
    ) -> "Producer[Any, Any]":
        """Make a producer; use it as ``async with``.

        Args:
            key_serializer: converts keys to bytes: a function, or an object that knows the record, see
                :class:`~aiokafkawire.serialization.Serializer`; without it keys must be bytes, bytearrays or
                memoryviews.
            value_serializer: converts values to bytes, as ``key_serializer`` does with keys.
            identity: the identity of another producer, to send records in that producer's open transaction.
            interceptors: objects that see, and may change, each record before it is serialized, and see its result;
                see :class:`~aiokafkawire.interceptors.ProducerInterceptor`.
            options: see :class:`~aiokafkawire.config.ProducerConfig`.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: no event loop is running, or the running loop is not the client's.
        """
        check_converters("serialize", key_serializer=key_serializer, value_serializer=value_serializer)
        chain = _producer_interceptors(interceptors)
        if identity is not None and not isinstance(identity, ProducerIdentity):
            raise UsageError(f"identity must be the identity of another producer, got {shown(identity)}")
        _check_brokers(self._cluster.config, "producer")
        shared = identity.transactional_id if identity is not None else options.get("transactional_id")
        if options.setdefault("transactional_id", shared) != shared:
            raise ConfigError(
                f"transactional_id must be {shared!r}, which the identity has, or be left out",
                setting="transactional_id",
            )
        config = make_config(ProducerConfig, options)
        self._cluster.owner.require_loop("producer")
        from .producer.producer import Producer

        lane = f"produce-{next(self._lanes)}"
        functions: tuple[Any, Any] = key_serializer, value_serializer
        producer: Producer[Any, Any]
        if chain is None and not any(knows_record(serializer, "serialize") for serializer in functions):
            producer = Producer(self._cluster, config, lane, *functions, identity)
        elif chain is None:
            from .producer.serializing_producer import SerializingProducer

            producer = SerializingProducer(self._cluster, config, lane, *functions, identity)
        else:
            from .producer.intercepted_producer import InterceptedProducer

            producer = InterceptedProducer(self._cluster, config, lane, *functions, identity, chain)
        self._live.add_producer(producer)
        return producer

    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        assignors: Sequence["Assignor"] = (),
        interceptors: Sequence["ConsumerInterceptor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[bytes, bytes]": ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        assignors: Sequence["Assignor"] = (),
        interceptors: Sequence["ConsumerInterceptor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[K, bytes]": ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        value_deserializer: AnyDeserializer[V],
        assignors: Sequence["Assignor"] = (),
        interceptors: Sequence["ConsumerInterceptor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[bytes, V]": ...
    @overload
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        value_deserializer: AnyDeserializer[V],
        assignors: Sequence["Assignor"] = (),
        interceptors: Sequence["ConsumerInterceptor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[K, V]": ...
    def consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        assignors: Sequence["Assignor"] = (),
        interceptors: Sequence["ConsumerInterceptor"] = (),
        **options: Unpack[ConsumerOptions],
    ) -> "Consumer[Any, Any]":
        """Make a consumer; use it as ``async with``.

        Args:
            topics: names, or one list of names. With a ``group_id`` the group's members share the partitions; without a
                ``group_id`` the consumer reads all partitions. Without topics, call ``subscribe`` or ``assign`` later.
            key_deserializer: converts keys from bytes: a function, or an object that knows the record, see
                :class:`~aiokafkawire.serialization.Deserializer`; without it keys are bytes.
            value_deserializer: converts values from bytes; without it values are bytes.
            assignors: your own assignors for this consumer, instead of ``partition_assignment_strategy``.
            interceptors: objects that see, and may change, the records before the user gets them, and see committed
                offsets; see :class:`~aiokafkawire.interceptors.ConsumerInterceptor`.
            options: see :class:`~aiokafkawire.config.ConsumerConfig`.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: a topic's name is invalid, no event loop is running, or the running loop is not the client's.
        """
        names = flattened(topics)
        chain = _consumer_interceptors(interceptors)
        return self._consumer(names, options, key_deserializer, value_deserializer, assignors, interceptors=chain)

    def _consumer(
        self,
        topics: tuple[str, ...],
        options: ConsumerOptions,
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        assignors: Sequence["Assignor"] = (),
        *,
        interceptors: "ConsumerInterceptors | None" = None,
    ) -> "Consumer[Any, Any]":
        from .consumer.consumer import Consumer

        _check_brokers(self._cluster.config, "consumer")
        config = make_config(ConsumerConfig, options)
        _check_membership(config)
        _check_group_protocol(config, {*options, *(["assignors"] if assignors else [])})
        check_converters("deserialize", key_deserializer=key_deserializer, value_deserializer=value_deserializer)
        _check_assignors(assignors)
        if config.heartbeat_thread and self._connector is not connect_tcp:
            raise ConfigError(
                "heartbeat_thread opens its own TCP connections and cannot use the client's connector",
                setting="heartbeat_thread",
            )
        if config.heartbeat_thread:
            _check_blocking(self._cluster.config)
        limit = self._cluster.config.request_timeout_ms
        if config.fetch_max_wait_ms >= limit:
            raise ConfigError(
                f"fetch_max_wait_ms must be less than request_timeout_ms ({limit}): "
                "a broker without new records answers a fetch only after fetch_max_wait_ms",
                setting="fetch_max_wait_ms",
            )
        self._cluster.owner.require_loop("consumer")
        lane = str(next(self._lanes))
        consumer = Consumer(
            self._cluster,
            config,
            lane,
            topics,
            key_deserializer,
            value_deserializer,
            assignors,
            interceptors=interceptors,
            failures=self._failure_handler(config, topics),
        )
        self._live.add_consumer(consumer)
        return consumer

    def _failure_handler(
        self, config: ConsumerConfig | ShareConsumerConfig, topics: tuple[str, ...]
    ) -> "FailureHandler | None":
        """Return what takes the records that cannot be deserialized (``on_error``); None if their errors are raised."""
        topic = config.dead_letter_topic
        if (topic is not None) != (config.on_error == "dead_letter"):
            raise ConfigError("on_error='dead_letter' and dead_letter_topic need one another")
        if config.on_error == "raise":
            return None
        from .processing.undeserializable_records import DeadLetteredRecords, SkippedRecords

        now = self._cluster.runtime.now
        if topic is None:
            return SkippedRecords(now)
        check_topic_name(topic)
        if topic in topics:
            raise ConfigError(f"dead_letter_topic must not be a topic that the consumer reads, got {topic!r}")
        return DeadLetteredRecords(topic, config.group_id, self._dead_letter_producer, now)

    def _dead_letter_producer(self, options: Mapping[str, Any] | None = None) -> "Producer[Any, Any]":
        # A record that a broker has taken once must not be too large for the producer.
        defaults = {"acks": "all", "max_request_size": _DEAD_LETTER_BYTES, "buffer_memory": 2 * _DEAD_LETTER_BYTES}
        settings: Any = {**defaults, **(options or {})}
        return self.producer(**settings)

    @overload
    def share_consumer(
        self, *topics: str | Collection[str], **options: Unpack[ShareConsumerOptions]
    ) -> "ShareConsumer[bytes, bytes]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[K, bytes]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[bytes, V]": ...
    @overload
    def share_consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[K],
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[K, V]": ...
    def share_consumer(
        self,
        *topics: str | Collection[str],
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        **options: Unpack[ShareConsumerOptions],
    ) -> "ShareConsumer[Any, Any]":
        """Make a member of a share group (KIP-932, Kafka 4.1 and later); use it as ``async with``.

        Args:
            topics: names, or one list of names, whose records the members share. Without topics, call ``subscribe``.
            key_deserializer: converts keys from bytes: a function, or an object that knows the record, see
                :class:`~aiokafkawire.serialization.Deserializer`; without it keys are bytes.
            value_deserializer: converts values from bytes; without it values are bytes.
            options: see :class:`~aiokafkawire.config.ShareConsumerConfig`; ``group_id`` is required.

        Raises:
            ConfigError: a setting is wrong, or there is no ``group_id``.
            UsageError: a topic's name is invalid, no event loop is running, or the running loop is not the client's.
        """
        from .share.share_consumer import ShareConsumer

        _check_brokers(self._cluster.config, "share consumer")
        config = make_config(ShareConsumerConfig, options)
        if not config.group_id:
            raise ConfigError(
                "share_consumer() needs a group_id: the share group whose members share the records", setting="group_id"
            )
        check_converters("deserialize", key_deserializer=key_deserializer, value_deserializer=value_deserializer)
        limit = self._cluster.config.request_timeout_ms
        if config.fetch_max_wait_ms >= limit:
            raise ConfigError(
                f"fetch_max_wait_ms must be less than request_timeout_ms ({limit}): "
                "a broker without new records answers a fetch only after fetch_max_wait_ms",
                setting="fetch_max_wait_ms",
            )
        self._cluster.owner.require_loop("share consumer")
        names, lane = flattened(topics), str(next(self._lanes))
        failures = self._failure_handler(config, names)
        consumer = ShareConsumer(self._cluster, config, lane, names, key_deserializer, value_deserializer, failures)
        self._live.add_share_consumer(consumer)
        return consumer

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
        key_deserializer: AnyDeserializer[K],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[K, bytes]": ...
    @overload
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = ...,
        end: "Bounds | None" = None,
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[bytes, V]": ...
    @overload
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = ...,
        end: "Bounds | None" = None,
        key_deserializer: AnyDeserializer[K],
        value_deserializer: AnyDeserializer[V],
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[K, V]": ...
    def read_records(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedRecords[Any, Any]":
        """Read a topic from a start to an end, record by record; the iteration stops at the end.

        The iteration also stops if the topic is empty, or if the last offset before the end has no record, as after
        transactions or compaction.

        Args:
            topic: the topic. If ``start`` or ``end`` is a mapping, only the partitions in a mapping are read.
            start: an OffsetSpec for all partitions, or a mapping from partitions to the first offset or an OffsetSpec.
                A partition without a record at or after a start time is not read.
            end: as ``start``; the record at an end offset is not read. An end offset must not exceed the end of the
                log. The reader waits until the transactions that are open before this offset have ended. None means
                the ends of the partitions when the iteration begins.
            key_deserializer, value_deserializer: as for :meth:`consumer`.
            options: see :class:`~aiokafkawire.config.ConsumerConfig`. The defaults differ: ``isolation_level`` is
                ``"read_committed"``, with which the default end is the first open transaction. ``auto_offset_reset``
                is ``"none"``, with which deleted records raise OffsetOutOfRange.

        Raises:
            ConfigError: a setting is wrong, or ``group_id`` is set.
            UsageError: the topic, a partition or an offset is not valid, or a partition is of another topic.
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
        value_format: Literal["json"] | None = None,
        value_type: "pa.Schema | pa.DataType | None" = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "BoundedBatches":
        """Read a topic from a start to an end as ``pyarrow.RecordBatch``, in bounded memory; see :meth:`read_records`.

        Args:
            topic, start, end, options: as for :meth:`read_records`.
            columns: the columns of :meth:`ConsumerBatch.to_arrow` to return, in this order; None for all.
            value_format: "json" for a column ``value`` of ``value_type`` instead of bytes, read from JSON. Fields that
                a value lacks are null, others are left out.
            value_type: the type of the values: a ``pyarrow.Schema`` with the fields of objects, or a type.
            value_deserializer: instead of ``value_format``: converts values to what ``value_type`` takes; dicts and
                Protobuf messages become structs.

        Raises:
            ConfigError, UsageError: as :meth:`read_records`; UsageError also for an unknown column, and for a
                ``value_type`` without format or deserializer, or the other way round.
            ImportError: pyarrow is not installed (``pip install aiokafkawire[arrow]``).
            DeserializationError: the iteration meets a value that does not fit; continued, it skips this record.
        """
        from .bounded_reads import BoundedBatches, reader_options

        check_converters("deserialize", value_deserializer=value_deserializer)
        consumer = self._consumer((), reader_options(options))
        if value_format is None and value_type is None and value_deserializer is None:
            return BoundedBatches(consumer, topic, start, end, columns)
        from .typed_batches import TypedBatches, typed_values

        if options.get("on_error", "raise") != "raise":
            raise ConfigError(
                "on_error must be left out: read_batches() raises DeserializationError, and continues after it",
                setting="on_error",
            )
        values = typed_values(topic, value_format, value_type, value_deserializer)
        return TypedBatches(consumer, topic, start, end, columns, values)

    async def read_table(
        self,
        topic: str,
        *,
        start: "Bounds" = OffsetSpec.EARLIEST,
        end: "Bounds | None" = None,
        columns: Sequence[str] | None = None,
        value_format: Literal["json"] | None = None,
        value_type: "pa.Schema | pa.DataType | None" = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        progress: bool = False,
        **options: Unpack[ConsumerOptions],
    ) -> "pa.Table":
        """Read a topic from a start to an end into one ``pyarrow.Table``, in memory; see :meth:`read_batches`.

        Args:
            topic, start, end, columns, value_format, value_type, value_deserializer, options: as for
                :meth:`read_batches`.
            progress: whether to show a progress bar on standard error (``pip install aiokafkawire[demo]``).

        Raises:
            ConfigError, UsageError, ImportError, DeserializationError: as :meth:`read_batches`.
            OffsetOutOfRange: records between start and end were deleted.
            KafkaError: fetching fails permanently, or fails after ``default_api_timeout_ms`` of retries.
        """
        from .progress_bar import progress_bar
        from .tables import read_whole_table

        batches = self.read_batches(
            topic,
            start=start,
            end=end,
            columns=columns,
            value_format=value_format,
            value_type=value_type,
            value_deserializer=value_deserializer,
            **options,
        )
        with progress_bar(topic, "offsets", shown=progress) as show:
            return await read_whole_table(batches, show)

    async def write_table(
        self,
        topic: str,
        table: "ArrowData",
        *,
        key: str | None = None,
        value: str | None = None,
        value_format: Literal["json"] | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
        headers: str | None = None,
        progress: bool = False,
        **options: Unpack[ProducerOptions],
    ) -> int:
        """Write each row of a table as a record, and wait until all are acknowledged.

        Args:
            topic: the topic of all records.
            table: a ``pyarrow.Table``, or any object with the Arrow PyCapsule interface: frames of Polars and pandas,
                relations of DuckDB, readers of record batches. Of a stream only one batch at a time is in memory.
            key: the column of the keys, bytes or text; None for records without keys.
            value: the column of the values, bytes or text.
            value_format: "json", instead of ``value``: each value is a JSON object with all columns of its row, except
                those of ``partition``, ``timestamp`` and ``headers``; times are ISO 8601, decimals are text.
            partition, timestamp, headers: columns as for :meth:`Producer.enqueue_many`.
            progress: whether to show a progress bar on standard error (``pip install aiokafkawire[demo]``).
            options: see :class:`~aiokafkawire.config.ProducerConfig`.

        Returns:
            The number of records.

        Raises:
            ConfigError: a setting is wrong.
            UsageError: the table lacks a column, or a column has an unsuitable type.
            DeliveryFailed: records were not delivered; the others are written.
            KafkaError: a record was not accepted; the records before it are still sent.
            ImportError: pyarrow is not installed (``pip install aiokafkawire[arrow]``).
        """
        from .progress_bar import progress_bar
        from .tables import TableColumns, open_table, rows_of, write_batches

        batches = open_table(table)
        columns = TableColumns(
            batches.schema,
            key=key,
            value=value,
            value_format=value_format,
            partition=partition,
            timestamp=timestamp,
            headers=headers,
        )
        with progress_bar(topic, "rows", shown=progress) as show:
            total = rows_of(table) if progress else None
            return await write_batches(
                self.producer(**options), topic, batches, columns, lambda count: show(count, total)
            )

    async def request(
        self,
        message: "Request[R]",
        *,
        broker: int | Literal["controller"] | TopicPartition | None = None,
        version: int | None = None,
        timeout: float | None = None,
    ) -> R:
        """Send any request of Kafka's protocol to a broker, once, and return the response as it is.

        Connecting is retried until the timeout, but the request is sent once. The caller reads the errors in the
        response::

            response = await kafka.request(MetadataRequest(topics=None), broker=1)

        Args:
            message: a request of :mod:`aiokafkawire.protocol.messages`.
            broker: the broker's id; "controller"; a partition, for its leader; or None for the least loaded broker.
            version: the version of the request; None for the newest that both sides support.
            timeout: in seconds, by default ``default_api_timeout_ms``, and for the response at most
                ``request_timeout_ms``. A timeout that is given may be longer.

        Raises:
            UnsupportedVersion: the broker lacks the request, or the version; or the version lacks a field of the
                message that is not at its default.
            InvalidMessage: a field of the message has a wrong value.
            BrokerNotAvailable: the broker is not in the cluster.
            RequestTimeout: the timeout has passed; the broker may have executed the request.
            ConnectionLost: the connection broke before the response; the broker may have executed the request.
            TopicNotReady: the partition has no leader within the timeout.
            UsageError: an argument is not valid, or brokers do not answer this request.
        """
        from .direct_request import send_request

        return await send_request(self._cluster, message, broker=broker, version=version, timeout=timeout)

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
        stop: "anyio.Event | None" = None,
        until_end: bool = False,
        consumer_options: ConsumerOptions | None = None,
        producer_options: ProducerOptions | None = None,
    ) -> int:
        """Consume, process and produce each record exactly once, in transactions (KIP-98, KIP-447).

        The call runs until ``stop`` or ``until_end`` ends it, or until it is cancelled or fails. The next call begins
        after the last committed transaction. Readers of committed records get the results of each record once. Other
        effects of ``process`` may be repeated for uncommitted records.

        Calls with one ``group_id``, in any number of processes, are instances that share the partitions of the topics.
        A rebalance waits for the transaction of the records in hand. An instance that the group has removed meanwhile
        drops these records, which another instance reads again, and rejoins. Brokers must be of Kafka 2.5 or later.

        Args:
            source: a topic, or several; records of open and aborted transactions are not read.
            process: a function that takes records, and returns a list of :class:`~.transform.OutgoingRecord` to send;
                a coroutine function, or a plain one, which runs in the event loop, and must not block it.
            group_id: the group that shares the partitions, and for which offsets are committed.
            transactional_id: the first part of the transactional id, the same for all instances. The second part is
                ``group_instance_id``, if ``consumer_options`` has it: a restarted instance then ends at once the
                transaction that it left open. Otherwise it is random, and after a crash the other instances wait for
                ``transaction_timeout_ms``, which then is 10 s by default.
            max_records: the maximum number of records in one transaction.
            commit_interval_ms: how long records are gathered for one transaction, which delays the results.
            auto_offset_reset: where to begin if the group has no committed offset.
            stop: an event that ends the call after the current transaction.
            until_end: whether to end once the group has committed the records that the partitions have when the call
                begins.
            consumer_options, producer_options: as for :meth:`consumer` and :meth:`producer`.

        Returns:
            The number of records that were read and committed.

        Raises:
            Exception: any error that ``process`` raises; the records that ``process`` received are not committed.
            FencedInstanceId, ProducerFenced, InvalidTxnState: another instance has the same ``group_instance_id``, or
                transactions were open for too long.
            CommitFailed: the group kept refusing the offsets for ``default_api_timeout_ms``.
            UnsupportedVersion: the brokers are older than Kafka 2.5.
            KafkaError: reading or writing fails permanently, or fails after ``default_api_timeout_ms`` of retries.
            ConfigError: a setting is wrong, or an option repeats an argument.
        """
        from .group.member_ids import new_member_id
        from .transform import TransformLoop, TransformProducer, joined, producer_options_of

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
        consumer = self._consumer(topics, joined(consumer_options, reads))
        instance_id = consumer._config.group_instance_id
        random_part = new_member_id(self._cluster.runtime.chance)
        settings = producer_options_of(producer_options, transactional_id, instance_id, random_part)
        producer = TransformProducer(lambda: self.producer(**settings), is_own_id=instance_id is None)
        limits = {"max_records": max_records, "commit_interval_ms": commit_interval_ms}
        loop = TransformLoop(self._cluster, consumer, producer, process, **limits)
        # Open the producer first: it ends the transaction that a previous producer left open, so offsets are stable.
        async with producer, consumer:
            return await loop.run(topics, stop, until_end=until_end)

    async def process(
        self,
        topics: str | Sequence[str] | SubscriptionPattern,
        handle: Callable[[Any], object],
        *,
        concurrency: int = 64,
        ordering: "Ordering" = "key",
        max_batch: int | None = None,
        retry: "Retry | None" = None,
        retry_topics: "Sequence[RetryTopic | str]" = (),
        share: bool = False,
        handler_timeout: float | None = None,
        max_in_hand: int | None = None,
        commit_interval_ms: int = 100,
        stop: "anyio.Event | None" = None,
        drain_timeout: float = 30.0,
        handle_signals: bool = False,
        on_progress: "OnProgress | None" = None,
        key_deserializer: AnyDeserializer[Any] | None = None,
        value_deserializer: AnyDeserializer[Any] | None = None,
        producer_options: ProducerOptions | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> "ProcessSummary":
        """Let a function handle each record of topics at least once, several records at a time; see docs/processing.md.

        The call runs until ``stop``, a signal or an error ends it, or until it is cancelled. Only finished records are
        committed, so that a crash repeats those in hand at most.

        Args:
            topics: a topic, several, or a SubscriptionPattern, which the members of the group share.
            handle: a coroutine function that takes a record; or a plain function, which runs on a worker thread. With
                ``max_batch`` it takes a list of records. An exception means that it has failed; after
                :class:`aiokafkawire.Reject` it is not called again with the record.
            concurrency: the largest number of calls of ``handle`` at once.
            ordering: what is handled in order: ``"key"``, the records of a key in their partition, where records
                without a key have no order; ``"partition"``, all records of a partition; or ``"none"``.
            max_batch: the largest number of records for one call, which are of one key or partition as ``ordering``
                says; None for one record, which is not in a list.
            retry: how often and when a record is handled again after an error; None for ``Retry()``.
            retry_topics: where a record goes that has failed so often, if its last error is one of ``retry.on``: into
                the first of these topics, which the same group reads. It is handled again after the topic's delay, as
                ``retry`` says, and then goes into the next topic. Records that come after it do not wait for it. A
                name that ends in a time, such as ``"orders.retry.10m"``, is the topic with that delay (ms, s, m, h, d).
            share: whether to be a member of a share group (KIP-932), whose members share the records of each partition.
                There is no ``ordering``; a finished record is accepted, one whose dead letter is written as well, one
                after which the handler has raised Reject is rejected, and one that ends the call is released. Locks are
                renewed until then, on Kafka 4.2 and later.
            handler_timeout: how long ``handle`` may take, in seconds, before it is cancelled and has failed; a plain
                function goes on in its thread, and its result no longer counts.
            max_in_hand: the largest number of records that are read and not committed; None for 1000, or for twice the
                records that ``concurrency`` calls take if that is more, or with ``share``.
            commit_interval_ms: the time between two commits.
            stop: an event that ends the call: no more calls of ``handle`` begin, and the running ones finish.
            drain_timeout: how long they may take to finish in the end, in seconds, before they are cancelled.
            handle_signals: whether SIGTERM and SIGINT end the call as ``stop`` does, and a second one cancels what
                runs; only in the main thread.
            on_progress: a function that gets a ProcessSummary at most every second.
            key_deserializer, value_deserializer: as for :meth:`consumer`. A record that cannot be deserialized has
                failed finally, and with ``on_error="skip"`` counts as finished. If only what its deserializer needs
                has failed (:attr:`DeserializationError.retriable`), such as a schema registry, the record and those of
                its key wait, and it is deserialized again.
            producer_options: those of the producer that writes to the retry topics and the dead-letter topic; it takes
                records of any size by default.
            options: those of the consumer, with ``group_id``, which is required. ``auto_offset_reset`` is by default
                ``"earliest"``. ``dead_letter_topic`` is the topic for all records that have failed finally, with the
                reason in their headers; without one their error ends the call, after the running calls of ``handle``
                have finished.

        Returns:
            What was done.

        Raises:
            Exception: the last error of ``handle``, or of a deserializer, without a ``dead_letter_topic``.
            TopicNotReady: a retry topic or the dead-letter topic does not exist.
            KafkaError: reading, committing or writing failed records has failed permanently; or as many threads of a
                plain ``handle`` as ``concurrency`` says go on after their calls were cancelled.
            SystemExit, KeyboardInterrupt: ``handle`` has raised it; the running calls have finished.
            ConfigError, UsageError: an argument is wrong.
        """
        from .processing.process import (
            ProcessSettings,
            check_producer_options,
            checked_topics,
            consumer_options,
            run_group,
            run_share,
        )
        from .processing.retry import Retry
        from .processing.retry_topics import checked_retry_topics
        from .records.deserialization import RecordDeserializer

        _check_names_for_process(options)
        check_flag("share", share)
        if share and isinstance(topics, SubscriptionPattern):
            raise UsageError("a share group takes names of topics: share=True takes no SubscriptionPattern")
        names = checked_topics(topics, options.get("group_protocol"))
        dead_letter_topic = options.pop("dead_letter_topic", None)
        skips_undeserializable = options.get("on_error") == "skip"
        if skips_undeserializable or (dead_letter_topic is not None and options.get("on_error") == "dead_letter"):
            del options["on_error"]  # records that cannot be deserialized take their turn, as those that fail finally
        if dead_letter_topic is not None and dead_letter_topic in names:
            raise UsageError(f"dead_letter_topic must not be a topic that process() reads, got {dead_letter_topic!r}")
        settings = ProcessSettings(
            handle=handle,
            group_id=options.get("group_id") or "",
            concurrency=concurrency,
            ordering=ordering,
            max_batch=max_batch,
            retry=Retry() if retry is None else retry,
            retry_topics=checked_retry_topics(retry_topics, names, dead_letter_topic, share=share),
            dead_letter_topic=dead_letter_topic,
            skips_undeserializable=skips_undeserializable,
            deserializer=RecordDeserializer(key_deserializer, value_deserializer),
            handler_timeout=handler_timeout,
            max_in_hand=max_in_hand,
            commit_interval_ms=commit_interval_ms,
            stop=stop,
            drain_timeout=drain_timeout,
            handle_signals=handle_signals,
            on_progress=on_progress,
            healths=self._health.processing,
            max_poll_interval_ms=options.get("max_poll_interval_ms", 300_000),
        )
        _check_options("producer_options", producer_options)
        check_producer_options(producer_options or {})
        if share:
            from .processing.share_source import lenient

            check_converters("deserialize", key_deserializer=key_deserializer, value_deserializer=value_deserializer)
            deserializers = {
                "key_deserializer": lenient(key_deserializer),
                "value_deserializer": lenient(value_deserializer),
            }
            make: Any = self.share_consumer
            sharing: ShareConsumer[Any, Any] = make(*names, **deserializers, **options)
            producer = None if dead_letter_topic is None else self._dead_letter_producer(producer_options)
            return await run_share(self._cluster, settings, sharing, producer)
        consumer = self._consumer((), consumer_options(options), key_deserializer, value_deserializer)
        writes = dead_letter_topic is not None or settings.retry_topics
        producer = self._dead_letter_producer(producer_options) if writes else None
        return await run_group(self._cluster, settings, names, consumer, producer)


add_hints(Client, CLIENT)


def _addresses(servers: str | Sequence[str] | None, config: ClientConfig) -> tuple[Address, ...]:
    """Return the addresses of bootstrap servers or controllers.

    Raises:
        ConfigError: there are both or none, or an address is invalid.
    """
    if config.bootstrap_controllers is None:
        return parse_servers("" if servers is None else servers)
    if servers:
        raise ConfigError("bootstrap_servers and bootstrap_controllers exclude each other: give one of them")
    return parse_servers(config.bootstrap_controllers)


_SETTINGS_OF_PROCESS: Final = {*ConsumerOptions.__annotations__, *ShareConsumerOptions.__annotations__}


def _check_names_for_process(options: Mapping[str, object]) -> None:
    """Raise ConfigError for an option that resembles an argument of ``process`` and is no setting of a consumer."""
    arguments = Client.process.__kwdefaults__ or ()
    for name in options:
        if name not in _SETTINGS_OF_PROCESS and (near := get_close_matches(name, arguments, n=1)):
            raise ConfigError(f"unknown setting {name!r}: did you mean {near[0]}?")


def _check_brokers(config: ClientConfig, what: str) -> None:
    """Raise UsageError if the client speaks to controllers, which serve no records."""
    if config.bootstrap_controllers is not None:
        raise UsageError(
            f"a {what} needs brokers, and this client speaks to controllers (bootstrap_controllers): "
            "use a client with bootstrap_servers"
        )


def _check_assignors(given: object) -> None:
    """Raise ConfigError unless the argument is a sequence of :class:`~.group.assignors.Assignor`."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(
            f"assignors must be a sequence of assignor objects, got {shown(given)}; "
            "to choose Kafka's assignors by name, set partition_assignment_strategy"
        )
    for assignor in given:
        if not callable(getattr(assignor, "assign", None)):
            raise ConfigError(f"assignors must be objects with a method assign(), got {shown(assignor)}")


def _check_transform(
    process: object, stop: object, until_end: object, consumer_options: object, producer_options: object
) -> None:
    if not callable(process):
        raise UsageError(f"process must be a function that takes records, got {shown(process)}")
    check_stop(stop)
    check_flag("until_end", until_end)
    _check_options("consumer_options", consumer_options)
    _check_options("producer_options", producer_options)


def _check_options(name: str, options: object) -> None:
    if options is not None and not (isinstance(options, dict) and all(isinstance(key, str) for key in options)):
        raise UsageError(f"{name} must be a dict of settings or None, got {shown(options)}")


def _check_blocking(config: ClientConfig) -> None:
    for setting in ("sasl_oauthbearer_token", "sasl_aws_credentials"):
        if inspect.iscoroutinefunction(getattr(config, setting)):
            raise ConfigError(
                f"{setting} must not be a coroutine function with heartbeat_thread: "
                "the thread logs in while the event loop may be blocked",
                setting=setting,
            )


def _check_group_protocol(config: ConsumerConfig, given: Collection[str]) -> None:
    if config.group_protocol == "consumer":
        for name in ("partition_assignment_strategy", "assignors", "session_timeout_ms", "heartbeat_interval_ms"):
            if name in given:
                raise ConfigError(
                    f"{name} is for group_protocol='classic': in the consumer protocol the coordinator assigns "
                    "(group_remote_assignor names its assignor), with the times that its settings "
                    "group.consumer.session.timeout.ms and group.consumer.heartbeat.interval.ms have",
                    setting=name if name != "assignors" else None,
                )
    elif config.group_protocol == "classic" and config.group_remote_assignor is not None:
        raise ConfigError(
            "group_remote_assignor needs group_protocol='consumer', whose coordinator assigns",
            setting="group_remote_assignor",
        )


def _check_membership(config: ConsumerConfig) -> None:
    if config.group_id == "":
        raise ConfigError("group_id must not be empty", setting="group_id")
    if config.group_instance_id is not None and (not config.group_instance_id or config.group_id is None):
        raise ConfigError("group_instance_id must not be empty, and needs a group_id", setting="group_instance_id")
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        limit = f"less than session_timeout_ms ({config.session_timeout_ms})"
        raise ConfigError(
            f"heartbeat_interval_ms must be {limit}, got {config.heartbeat_interval_ms}",
            setting="heartbeat_interval_ms",
        )


def _producer_interceptors(interceptors: Iterable[object]) -> "ProducerInterceptors | None":
    if isinstance(interceptors, tuple | list) and not interceptors:
        return None
    from .interceptors import ProducerInterceptors

    return ProducerInterceptors(interceptors, time.monotonic)


def _consumer_interceptors(interceptors: Iterable[object]) -> "ConsumerInterceptors | None":
    if isinstance(interceptors, tuple | list) and not interceptors:
        return None
    from .interceptors import ConsumerInterceptors

    return ConsumerInterceptors(interceptors, time.monotonic)
