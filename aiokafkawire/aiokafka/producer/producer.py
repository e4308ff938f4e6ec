"""aiokafka's AIOKafkaProducer on this client's producer."""

import asyncio
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from ... import errors as own
from ...config import ProducerConfig, ProducerOptions, make_config
from ...producer.producer import Producer
from ...producer.record_checks import header_pairs
from ...producer.transaction import Transaction
from ...records.compression import Codec
from ...runtime import finish
from ...types import Headers, TopicPartition, check_partition
from ...types import OffsetAndMetadata as OwnOffsetAndMetadata
from ..abc import AbstractTokenProvider
from ..argument_names import with_known_arguments
from ..client import AIOKafkaClient
from ..client_options import warn_deprecated
from ..error_translation import TRANSLATED, translated
from ..errors import IllegalOperation, IllegalStateError, MessageSizeTooLargeError, ProducerClosed
from ..partitioner import DefaultPartitioner
from ..structs import OffsetAndMetadata, RecordMetadata
from ..util import commit_structure_validate
from .message_accumulator import BatchBuilder, not_bytes, whole_timestamp
from .producer_options import producer_options
from .send_future import BatchWatcher, SendFuture

__all__ = ("AIOKafkaProducer", "TransactionContext")

_missing = object()
"""The default of ``acks``: 1, or with idempotence "all". Frameworks import it by this name."""
_DEFAULT_PARTITIONER: Final = DefaultPartitioner()
_YIELD_EVERY: Final = 1000
"""The number of accepted records after which :meth:`AIOKafkaProducer.send` yields, even if it never has to wait."""


class AIOKafkaProducer:
    """A producer with aiokafka's arguments and methods; see docs/aiokafka.md for the differences.

    ``start()`` and ``stop()`` it, or use it as ``async with``. All settings are those of aiokafka 0.14.

    Attributes:
        client: the :class:`AIOKafkaClient` of this producer.

    Raises:
        ValueError: an argument is wrong.
    """

    _client_ids = 0
    _append: Callable[..., tuple[Any, int]]
    _wire: Producer[Any, Any] | None = None
    _closed: bool | None = None
    _client_class: Callable[..., AIOKafkaClient] = AIOKafkaClient
    """Makes the client; a subclass may return one that it shares."""

    @with_known_arguments
    def __init__(
        self,
        *,
        loop: object = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str | None = None,
        metadata_max_age_ms: float = 300000,
        request_timeout_ms: float = 40000,
        api_version: object = None,
        acks: Any = _missing,
        key_serializer: Callable[[Any], Any] | None = None,
        value_serializer: Callable[[Any], Any] | None = None,
        compression_type: str | None = None,
        max_batch_size: int = 16384,
        partitioner: Callable[..., int] = _DEFAULT_PARTITIONER,
        max_request_size: int = 1048576,
        linger_ms: float = 0,
        retry_backoff_ms: float = 100,
        security_protocol: str = "PLAINTEXT",
        ssl_context: Any = None,
        connections_max_idle_ms: float | None = 540000,
        enable_idempotence: bool = False,
        transactional_id: str | None = None,
        transaction_timeout_ms: float = 60000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
    ) -> None:
        warn_deprecated(loop, api_version, stacklevel=3)
        AIOKafkaProducer._client_ids += 1
        self._options: ProducerOptions = producer_options(
            acks=None if acks is _missing else acks,
            compression_type=compression_type,
            max_batch_size=max_batch_size,
            max_request_size=max_request_size,
            linger_ms=linger_ms,
            request_timeout_ms=request_timeout_ms,
            enable_idempotence=enable_idempotence,
            transactional_id=transactional_id,
            transaction_timeout_ms=transaction_timeout_ms,
            partitioner=None if type(partitioner) is DefaultPartitioner else partitioner,
        )
        with TRANSLATED:
            make_config(ProducerConfig, self._options)
        self.client: AIOKafkaClient = self._client_class(
            bootstrap_servers=bootstrap_servers,
            client_id=f"aiokafka-producer-{AIOKafkaProducer._client_ids}" if client_id is None else client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            security_protocol=security_protocol,
            ssl_context=ssl_context,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        self._metadata = self.client.cluster
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._serializes = (
            key_serializer is not None
            or value_serializer is not None
            or type(self)._serialize is not AIOKafkaProducer._serialize
        )
        self._compression_type = compression_type
        self._partitioner = partitioner
        self._is_random = type(partitioner) is DefaultPartitioner
        self._max_request_size = max_request_size
        self._request_timeout_ms = request_timeout_ms
        self._is_transactional = transactional_id is not None
        self._transaction: Transaction[Any, Any] | None = None
        self._has_aborted = False
        self._unyielded = 0
        self._starts = self._closed = False

    def __del__(self) -> None:
        if self._wire is not None and self._closed is False:
            warnings.warn(f"Unclosed AIOKafkaProducer {self!r}", ResourceWarning, stacklevel=1, source=self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect to the cluster; with a ``transactional_id``, fence older producers with the same one.

        If it fails, it may be called again.

        Raises:
            KafkaConnectionError: no bootstrap server answered as a broker.
            IllegalStateError: it has been called already, or the producer was stopped.
        """
        if self._closed:
            raise IllegalStateError("this producer is stopped: make another")
        if self._starts:
            raise IllegalStateError("start() has been called already")
        self._starts = True
        try:
            await self.client.bootstrap()
            with TRANSLATED:
                wire = self.client.wire_client.producer(**self._options)
                await wire.__aenter__()
        except BaseException:
            self._starts = False
            await self.client._reset()
            raise
        owner, no_answers = self.client.wire_client._cluster.owner, self._options["acks"] == 0
        self._watcher = BatchWatcher(owner, unacknowledged=no_answers)
        self._wake = wire._sender.wake
        self._append = wire._append
        self._wire = wire

    async def stop(self) -> None:
        """Send the records that wait, and close all connections; a transaction that is open is aborted."""
        if self._closed:
            return
        self._closed = True
        wire, self._wire = self._wire, None
        try:
            if wire is not None:
                with suppress(Exception):
                    await self._abort()
                # The futures of failed records have their errors, as has the log.
                with TRANSLATED, suppress(own.DeliveryFailed):
                    await wire.close()
        finally:
            await self.client.close()

    async def flush(self) -> None:
        """Wait until every record accepted so far is acknowledged or has failed; the records' futures say which.

        Before the start and after the end there are none.
        """
        wire = self._wire
        if wire is None or self._closed:
            return
        with TRANSLATED, suppress(own.DeliveryFailed):
            await wire.flush()

    async def partitions_for(self, topic: str) -> set[int]:
        """Return the partitions of a topic; wait until they are known."""
        return await self.client._wait_on_metadata(topic)

    # --- sending -----------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> SendFuture:
        """Accept one record, and return the future of its outcome; wait only for metadata and for buffer space.

        Args:
            topic: the record's topic.
            value: bytes, or an object for the ``value_serializer``; None deletes the key in a compacted topic.
            key: bytes, or an object for the ``key_serializer``; keys choose the partition.
            partition: the record's partition, instead of the partitioner's choice.
            timestamp_ms: in ms since the epoch, by default the present time.
            headers: pairs of a name and bytes.

        Raises:
            UnknownTopicOrPartitionError: the topic was not known within ``request_timeout_ms``.
            KafkaTimeoutError: there was no buffer space within ``request_timeout_ms``.
            MessageSizeTooLargeError: the record is larger than ``max_request_size``.
            TypeError, ValueError: an argument is wrong.
            ProducerClosed: the producer was stopped.
            IllegalOperation: the producer was not started, or has a ``transactional_id``, and no transaction is open.
        """
        if value is None and key is None:
            raise ValueError("a record needs a key or a value")
        if self._wire is None or (self._is_transactional and self._transaction is None):
            raise self._refusal()
        if self._serializes:
            key, value = self._serialize(key, value, headers)
        if key is None and partition is None and self._is_random:
            partition = self._random_partition(topic)
        if timestamp_ms is not None:
            timestamp_ms = whole_timestamp(timestamp_ms)
        self._unyielded += 1
        if self._unyielded >= _YIELD_EVERY:
            self._unyielded, transaction = 0, self._transaction
            await self._wire._let_others_run()
            self._require_same(transaction)
        try:
            batch, index = self._append(topic, value, key, partition, timestamp_ms, headers or ())
        except own.KafkaError as refused:
            batch, index = await self._append_later(refused, topic, value, key, partition, timestamp_ms, headers or ())
        if not index or batch.builder.size >= batch.builder.limit:
            self._wake()
        return SendFuture(self._watcher, batch.result, index)

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata | None:
        """Send one record, and return its metadata when it is acknowledged; see :meth:`send`. With acks=0, None."""
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def create_batch(self) -> BatchBuilder:
        """Return an empty batch, to fill and to give to :meth:`send_batch`."""
        return BatchBuilder(
            self._options["batch_size"],
            Codec.parse(self._options["compression_type"]),
            is_transactional=int(self._is_transactional),
            key_serializer=self._key_serializer,
            value_serializer=self._value_serializer,
        )

    async def send_batch(
        self, batch: BatchBuilder, topic: str, *, partition: int
    ) -> "SendFuture | asyncio.Future[None]":
        """Accept a batch of :meth:`create_batch`, and close it; return the future of its first record's outcome.

        The outcome of a batch without records is None.

        Raises:
            ValueError: the topic does not have the partition; otherwise as :meth:`send`.
        """
        if self._wire is None or (self._is_transactional and self._transaction is None):
            raise self._refusal()
        transaction = self._transaction
        batch.close()
        if not batch.record_count():
            nothing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            nothing.set_result(None)
            return nothing
        try:
            if partition is None:
                partition = random.choice(sorted(await self.client._wait_on_metadata(topic)))  # noqa: S311, no secret
                self._require_same(transaction)
            where = check_partition((topic, partition))
            result = await self._wire._enqueue_batch(where, batch.builder, batch.timestamps)
        except own.UsageError as error:
            self._require_same(transaction)
            raise ValueError(str(error)) from error
        except own.KafkaError as error:
            raise translated(error) from error
        return SendFuture(self._watcher, result, 0)

    def _open(self) -> Producer[Any, Any]:
        if self._wire is None:
            raise self._refusal()
        return self._wire

    def _refusal(self) -> Exception:
        """Return the error of a call that the producer's state does not allow."""
        if self._closed:
            return ProducerClosed("the producer was stopped")
        if self._wire is None:
            return IllegalOperation("the producer was not started: await producer.start()")
        return IllegalOperation("no transaction is open: this producer has a transactional_id")

    def _require_same(self, transaction: Transaction[Any, Any] | None) -> None:
        """Raise if this transaction has ended while a call of it waited: its record must be in no later one."""
        if self._transaction is transaction:
            return
        if self._wire is None:
            raise self._refusal()
        raise IllegalOperation("the transaction ended while a record of it waited: nothing was sent")

    def _serialize(self, key: Any, value: Any, headers: Any = None) -> tuple[Any, Any]:
        """Return the key and the value as the serializers return them; instrumentations call this method."""
        key = key if self._key_serializer is None else self._key_serializer(key)
        value = value if self._value_serializer is None else self._value_serializer(value)
        return key, value

    def _partition(
        self, topic: str, partition: int | None, key: Any, value: Any, serialized_key: Any, serialized_value: Any
    ) -> int:
        """Return the partition of a record of a known topic; instrumentations call this method."""
        all_partitions = sorted(self._metadata.partitions_for_topic(topic) or ())
        if partition is not None:
            if partition not in all_partitions:
                raise ValueError(f"topic {topic!r} has no partition {partition!r}")
            return partition
        available = sorted(self._metadata.available_partitions_for_topic(topic) or ())
        return self._partitioner(serialized_key, all_partitions, available)

    def _random_partition(self, topic: str) -> int | None:
        """Return a random partition that has a leader; None if none is known."""
        wire = self._wire
        assert wire is not None
        known = wire._cluster.metadata.snapshot.topics.get(topic)
        if known is None or known.error:
            return None
        available = wire._with_leader(topic, known)
        return available[int(random.random() * len(available))] if available else None  # noqa: S311, no secret

    async def _append_later(
        self,
        refused: own.KafkaError,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
    ) -> tuple[Any, int]:
        """Append a record that was refused, once that is possible; otherwise raise aiokafka's error."""
        transaction = self._transaction
        try:
            if not isinstance(refused, own.TopicNotReady | own.BufferFull):
                raise refused
            await self.client._wait_on_metadata(topic)
            self._require_same(transaction)
            return await self._open()._wait_and_append(topic, value, key, partition, timestamp_ms, headers)
        except own.RecordTooLarge as error:
            raise MessageSizeTooLargeError(str(error)) from error
        except own.UsageError as error:
            if self._wire is None:
                raise self._refusal() from error
            self._require_same(transaction)
            raise self._wrong_record(error, key, value, headers) from error
        except own.KafkaError as error:
            raise translated(error) from error

    def _wrong_record(self, error: own.UsageError, key: Any, value: Any, headers: Headers) -> Exception:
        """Return aiokafka's error for a record that was refused, whose key and value are serialized."""
        for part, given, serializer in (
            ("key", key, self._key_serializer),
            ("value", value, self._value_serializer),
        ):
            if not isinstance(given, bytes | bytearray | memoryview | None):
                return not_bytes(given, part, serializer)
        try:
            header_pairs(headers)
        except own.UsageError:
            return TypeError(str(error))
        return ValueError(str(error))

    # --- transactions ------------------------------------------------------------------------------------

    def transaction(self) -> "TransactionContext":
        """Return a transaction for ``async with``: leaving the body commits it, an exception aborts it."""
        return TransactionContext(self)

    async def begin_transaction(self) -> None:
        """Open a transaction, once the previous one has ended.

        Raises:
            IllegalOperation: the producer has no ``transactional_id``, or was not started.
            IllegalStateError: a transaction is open.
            ProducerFenced: another producer with the same ``transactional_id`` was started.
        """
        wire = self._require_transactional()
        with TRANSLATED:
            transaction = wire.transaction()
            await transaction.__aenter__()
        self._transaction, self._has_aborted = transaction, False

    async def commit_transaction(self) -> None:
        """Commit the transaction, once all its records are acknowledged. If that fails, it is aborted.

        If the call is cancelled, the commit goes on, and the call ends after it, or after 5 s: records that are not
        acknowledged by then make it an abort.

        Raises:
            IllegalOperation: no transaction is open.
            KafkaError: a record or the commit has failed, and the transaction was aborted.
        """
        self._require_transactional()
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            raise self._refusal()
        try:
            with TRANSLATED:
                await finish(transaction.__aexit__, None, None, None)
        except Exception:
            self._has_aborted = True
            raise
        except BaseException:  # cancelled
            self._has_aborted = not transaction._has_begun_to_commit
            raise

    async def abort_transaction(self) -> None:
        """Abort the transaction; records that wait to be sent fail. If the call is cancelled, the abort goes on.

        Raises:
            IllegalOperation: no transaction is open, and none was aborted by a commit that failed; it may be committed.
            ProducerFenced: another producer with the same ``transactional_id`` was started.
        """
        self._require_transactional()
        if self._transaction is None and not self._has_aborted:
            raise self._refusal()
        with TRANSLATED:
            await self._abort()

    async def _abort(self) -> None:
        transaction, self._transaction, self._has_aborted = self._transaction, None, False
        if transaction is not None:
            await transaction._abort_now(IllegalOperation("abort_transaction() was called"))

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata], group_id: str
    ) -> None:
        """Commit a group's offsets in the transaction.

        Raises:
            IllegalOperation: no transaction is open.
            ValueError, TypeError: an argument is wrong.
            KafkaError: the offsets were refused; the transaction can only be aborted.
        """
        self._require_transactional()
        if self._transaction is None:
            raise self._refusal()
        if not group_id or not isinstance(group_id, str):
            raise ValueError(f"group_id must be a group's id, got {group_id!r}")
        given = commit_structure_validate(offsets)
        with TRANSLATED:
            await self._transaction.commit_offsets(
                {partition: OwnOffsetAndMetadata(at.offset, at.metadata) for partition, at in given.items()},
                group=group_id,
            )

    def _require_transactional(self) -> Producer[Any, Any]:
        if not self._is_transactional:
            raise IllegalOperation("transactions need a transactional_id: AIOKafkaProducer(transactional_id=...)")
        return self._open()


class TransactionContext:
    """A transaction of a producer, for ``async with``."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> Self:
        await self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self._producer.commit_transaction()
            return
        # The body's own error says more than that of the abort, such as that the producer was fenced.
        with suppress(Exception):
            await self._producer.abort_transaction()
