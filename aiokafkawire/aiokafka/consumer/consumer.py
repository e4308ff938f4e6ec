"""aiokafka's AIOKafkaConsumer on this client."""

import asyncio
import re
import sys
import warnings
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import anyio

from ... import errors as own
from ...argument_checks import shown
from ...config import ConsumerConfig, ConsumerOptions, make_config
from ...consumer.topic_subscription import RebalancePatience
from ...runtime import current_task, mark_coroutine_function
from ...types import OffsetAndMetadata as OwnOffsetAndMetadata
from ...types import OffsetSpec
from ..abc import AbstractTokenProvider, ConsumerRebalanceListener
from ..argument_names import with_known_arguments
from ..client import CLIENT_ID, AIOKafkaClient
from ..client_options import check_milliseconds, warn_deprecated, whole_milliseconds
from ..coordinator.assignors.abstract import AbstractPartitionAssignor
from ..coordinator.assignors.adapter import adapted
from ..coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from ..error_translation import TRANSLATED, translated
from ..errors import (
    CommitFailedError,
    ConsumerStoppedError,
    IllegalGenerationError,
    IllegalOperation,
    IllegalStateError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from ..records import ConsumerRecord
from ..structs import OffsetAndTimestamp, TopicPartition
from ..util import commit_structure_validate
from .checks import check_partition_arguments, checked_partitions, checked_topics, like_partitions
from .internals import CoordinatorView, FetcherView, SubscriptionView
from .session import Session, Wanted
from .shared_reader import SharedReader

__all__ = ("AIOKafkaConsumer",)

KT = TypeVar("KT")
VT = TypeVar("VT")

_FOR_USER: Final = 0.8
"""The part of the rebalance's time, after a heartbeat has told of it, that it waits for the user's records."""


class AIOKafkaConsumer(Generic[KT, VT]):
    """A consumer with aiokafka's arguments and methods; docs/aiokafka.md lists what is safer than in aiokafka.

    Any number of tasks may call its methods at once. Start it with :meth:`start`, or as ``async with``, and stop it.

    Raises:
        ValueError: an argument is wrong.
    """

    _closed: bool | None = None
    _client_class: Callable[..., AIOKafkaClient] = AIOKafkaClient
    """Makes the client; a subclass may return one that it shares."""

    @with_known_arguments
    def __init__(
        self,
        *topics: str,
        loop: object = None,
        bootstrap_servers: str | Sequence[str] = "localhost",
        client_id: str | None = CLIENT_ID,
        group_id: str | None = None,
        group_instance_id: str | None = None,
        key_deserializer: Callable[[Any], KT] | None = None,
        value_deserializer: Callable[[Any], VT] | None = None,
        fetch_max_wait_ms: float = 500,
        fetch_max_bytes: int = 52428800,
        fetch_min_bytes: int = 1,
        max_partition_fetch_bytes: int = 1 * 1024 * 1024,
        request_timeout_ms: float = 40 * 1000,
        retry_backoff_ms: float = 100,
        auto_offset_reset: str = "latest",
        enable_auto_commit: bool = True,
        auto_commit_interval_ms: float = 5000,
        check_crcs: bool = True,
        metadata_max_age_ms: float = 5 * 60 * 1000,
        partition_assignment_strategy: Sequence[type[AbstractPartitionAssignor] | AbstractPartitionAssignor] = (
            RoundRobinPartitionAssignor,
        ),
        max_poll_interval_ms: float = 300000,
        rebalance_timeout_ms: float | None = None,
        session_timeout_ms: float = 10000,
        heartbeat_interval_ms: float = 3000,
        consumer_timeout_ms: float = 200,
        max_poll_records: int | None = None,
        ssl_context: Any = None,
        security_protocol: str = "PLAINTEXT",
        api_version: object = None,
        exclude_internal_topics: bool = True,
        connections_max_idle_ms: float | None = 540000,
        isolation_level: str = "read_uncommitted",
        sasl_mechanism: str = "PLAIN",
        sasl_plain_password: str | None = None,
        sasl_plain_username: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: AbstractTokenProvider | None = None,
        client_rack: str | None = None,
    ) -> None:
        warn_deprecated(loop, api_version, stacklevel=3)
        _check_count("max_poll_records", max_poll_records)
        if isolation_level not in ("read_uncommitted", "read_committed"):
            raise ValueError(f"Incorrect isolation level {isolation_level}: read_uncommitted or read_committed")
        self._client = self._client_class(
            bootstrap_servers=bootstrap_servers,
            client_id=client_id,
            metadata_max_age_ms=metadata_max_age_ms,
            request_timeout_ms=request_timeout_ms,
            retry_backoff_ms=retry_backoff_ms,
            ssl_context=ssl_context,
            security_protocol=security_protocol,
            connections_max_idle_ms=connections_max_idle_ms,
            sasl_mechanism=sasl_mechanism,
            sasl_plain_username=sasl_plain_username,
            sasl_plain_password=sasl_plain_password,
            sasl_kerberos_service_name=sasl_kerberos_service_name,
            sasl_kerberos_domain_name=sasl_kerberos_domain_name,
            sasl_oauth_token_provider=sasl_oauth_token_provider,
        )
        self._group_id, self._group_instance_id = group_id, group_instance_id
        wait_ms, timeout_ms, commit_ms, poll_ms, session_ms, heartbeat_ms, rebalance_ms = whole_milliseconds(
            fetch_max_wait_ms=fetch_max_wait_ms,
            request_timeout_ms=request_timeout_ms,
            auto_commit_interval_ms=auto_commit_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            session_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            rebalance_timeout_ms=session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms,
        )
        self._options: dict[str, Any] = {
            "group_id": group_id,
            # A broker without new records answers after the wait; the answer has to come before the timeout.
            "fetch_max_wait_ms": wait_ms if wait_ms < timeout_ms else timeout_ms // 2,
            "fetch_max_bytes": fetch_max_bytes,
            "fetch_min_bytes": fetch_min_bytes,
            "max_partition_fetch_bytes": max_partition_fetch_bytes,
            "auto_offset_reset": auto_offset_reset.lower() if isinstance(auto_offset_reset, str) else auto_offset_reset,
            "enable_auto_commit": bool(enable_auto_commit) and group_id is not None,
            "auto_commit_interval_ms": commit_ms or 1,
            "check_crcs": bool(check_crcs),
            "max_poll_interval_ms": poll_ms,
            "session_timeout_ms": session_ms,
            "heartbeat_interval_ms": heartbeat_ms,
            "isolation_level": isolation_level,
            "client_rack": client_rack or "",
        }
        if group_instance_id and group_id is not None:
            self._options["group_instance_id"] = group_instance_id
        with TRANSLATED:
            make_config(ConsumerConfig, self._options)
        for_user = max(0, rebalance_ms - heartbeat_ms) / 1000 * _FOR_USER
        self._patience = RebalancePatience(rebalance_ms, for_user)
        self._assignors = tuple(partition_assignment_strategy)
        self._key_deserializer, self._value_deserializer = key_deserializer, value_deserializer
        self._max_poll_records, self._request_timeout_ms = max_poll_records, request_timeout_ms
        self._exclude_internal_topics, self._isolation_level = exclude_internal_topics, isolation_level
        self._starts = False
        self._session: Session | None = None
        # Of the session that was left last; its end comes before the next one reads.
        self._left: anyio.Event | None = None
        self._wanted: Wanted | None = None
        self._subscription = SubscriptionView(self)
        self._coordinator, self._fetcher = CoordinatorView(self), FetcherView(self)
        self._closed = False
        if topics:
            self._wanted = Wanted(topics=checked_topics(topics))

    def __del__(self) -> None:
        if self._closed is False and self._session is not None:
            message = "Unclosed AIOKafkaConsumer: use it as 'async with', or await its stop()"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    # --- start and stop ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect to the cluster; with topics, wait until they exist, and for the assignment by the group.

        If it fails, it may be called again.

        Raises:
            KafkaConnectionError: no broker was reached.
            UnknownTopicOrPartitionError: a topic does not exist, and the brokers do not create it.
            KafkaError: the group has refused the consumer.
            IllegalStateError: it has been called already.
            ConsumerStoppedError: the consumer was stopped, before or meanwhile.
            ValueError: settings contradict one another.
        """
        if self._closed:
            raise ConsumerStoppedError("this consumer is stopped: make another")
        if self._starts:
            raise IllegalStateError("start() has been called already")
        self._starts = True
        try:
            await self._client.bootstrap()
            wanted = self._wanted
            if wanted is not None and wanted.partitions is None:
                for topic in wanted.topics:
                    await self._client._wait_on_metadata(topic)
            session = self._session = self._new_session(_set_event())
            if self._wanted is not None:
                with TRANSLATED:
                    await session.read_first(self._wanted)
            if self._closed:
                raise ConsumerStoppedError("the consumer was stopped during its start")
        except BaseException:
            await self._abandon_start()
            self._starts = False
            raise

    async def _abandon_start(self) -> None:
        session, self._session = self._session, None
        with anyio.CancelScope(shield=True):
            if session is not None:
                await session.end(finishes=False)
            await self._client._reset()

    def _new_session(self, after: anyio.Event) -> Session:
        """Open another consumer, which reads nothing before the event ``after``."""
        options: ConsumerOptions = {**self._options}  # type: ignore[typeddict-item]  # it has these keys
        with TRANSLATED:
            assignors = adapted(self._assignors, self._client.cluster) if self._group_id is not None else ()
            consumer = self._client.wire_client.consumer(assignors=assignors, **options)
            reader = SharedReader(consumer, self._key_deserializer, self._value_deserializer)
            consumer._open(None if after.is_set() else after)
        return Session(consumer, reader, self._patience, after)

    async def stop(self) -> None:
        """Commit the records handed out (``enable_auto_commit``), leave the group, and disconnect; may be called again.

        The last records count as unfinished, and will be read again, if an exception is being handled, as in the end of
        an ``async with`` that has failed, or if another task has taken them and still runs, or has failed.

        Raises:
            IllegalStateError: a listener of this consumer called it.
        """
        if self._closed:
            return
        session = self._session
        if session is not None and session.is_listening:
            raise IllegalStateError("a listener cannot stop the consumer: the rebalance waits for the listener")
        self._closed = True
        try:
            if session is not None:
                finishes = sys.exception() is None and not session.reader.is_unfinished_elsewhere
                await session.end(finishes=finishes)
            if self._left is not None:
                await self._left.wait()
        finally:
            await self._client.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """The running event loop, with which listeners of aiokafka's users make tasks."""
        return asyncio.get_running_loop()

    def _started(self) -> Session:
        if self._session is None:
            raise IllegalStateError("the consumer is not started: await start() before")
        return self._session

    # --- what to read ----------------------------------------------------------------------------------------

    def _read(self, wanted: Wanted) -> None:
        if self._closed:
            raise ConsumerStoppedError("this consumer is stopped: make another")
        if self._wanted is not None and self._wanted.kind != wanted.kind:
            raise IllegalStateError(
                f"the consumer reads {self._wanted.kind} already, and cannot read {wanted.kind} as well: "
                "call unsubscribe() before"
            )
        if self._session is not None:
            with TRANSLATED:
                self._session.read(wanted)
        self._wanted = wanted

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions and no others, without a group's assignment.

        Raises:
            IllegalStateError: the consumer has subscribed.
        """
        self._read(Wanted(partitions=tuple(checked_partitions(partitions))))

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the assigned partitions; none while the group is about to assign."""
        if self._session is not None:
            return self._session.partitions
        wanted = self._wanted
        return frozenset() if wanted is None or wanted.partitions is None else frozenset(wanted.partitions)

    def subscribe(
        self,
        topics: Collection[str] = (),
        pattern: "str | re.Pattern[str] | None" = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics, whose partitions the members of the group share; without a group, read all partitions.

        Args:
            topics: the names of the topics.
            pattern: a regular expression instead, for the beginning of topics' names.
            listener: is called when partitions are revoked and assigned.

        Raises:
            IllegalStateError: partitions are assigned by hand, or the consumer reads a pattern and gets topics.
            TypeError: there are neither topics nor a pattern, or both, or the listener is none.
            ValueError: the pattern is no regular expression.
        """
        if not (topics or pattern):
            raise TypeError("subscribe() needs topics or a pattern")
        if topics and pattern:
            raise TypeError("subscribe() takes either topics or a pattern")
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise TypeError(f"listener must be a ConsumerRebalanceListener, got {shown(listener)}")
        if pattern is None:
            self._read(Wanted(topics=checked_topics(topics), listener=listener))
            return
        try:
            compiled = re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        with_internal = not self._exclude_internal_topics
        self._read(Wanted(pattern=compiled, listener=listener, with_internal=with_internal))

    def subscription(self) -> frozenset[str]:
        """Return the topics subscribed to, or those that match the pattern."""
        if self._session is not None:
            return self._session.topics
        return frozenset() if self._wanted is None else frozenset(self._wanted.topics)

    def unsubscribe(self) -> None:
        """Read nothing any more; commit (``enable_auto_commit``) and leave the group in the background.

        After :meth:`stop`, which has done both, it only forgets the subscription.
        """
        session, self._wanted = self._session, None
        if session is None or session.wanted is None:
            return
        if self._closed:
            session.wanted = None
            return
        finishes = sys.exception() is None and not session.reader.is_unfinished_elsewhere
        if finishes and not session.reader.has_ended:
            session.reader.finish_all()
        before, self._left = self._left, session.ended
        after = session.ended
        session.wanted = None
        self._session = self._new_session(after)
        self._client.wire_client._cluster.owner.spawn(_end_after, session, before)
        session.consumer._fetcher.notify()

    # --- records ---------------------------------------------------------------------------------------------

    def getone(self, *partitions: TopicPartition) -> Coroutine[Any, Any, ConsumerRecord[Any, Any]]:
        """Return the next record, of these partitions if some are named; wait for it.

        Raises:
            ConsumerStoppedError: the consumer is stopped.
            OffsetOutOfRangeError, NoOffsetForPartitionError: with ``auto_offset_reset="none"``, until a seek.
            CorruptRecordException: a batch is damaged; seek past it to continue.
            KafkaError: the group, or reading a partition, has failed.
            Exception: that of a deserializer; the record is read again next time.
        """
        return self._getone(current_task(), partitions)

    async def _getone(
        self, taker: Any, partitions: Sequence[TopicPartition], stopped: type[Exception] = ConsumerStoppedError
    ) -> ConsumerRecord[Any, Any]:
        """Return the next record to ``taker``, the task that has called: another one may await it, as in wait_for().

        ``stopped`` is the error that a stopped consumer raises.
        """
        if self._closed:
            raise stopped
        if partitions:
            check_partition_arguments(partitions)
        session = self._session or self._started()
        while True:
            try:  # cheaper than TRANSLATED
                record = session.reader.take(taker, partitions)
                if record is None:
                    record = await session.reader.wait_for_next(taker, partitions)
            except own.KafkaError as error:
                raise translated(error) from error
            if record is not None:
                return record
            if self._closed:
                raise stopped
            before, session = session, self._started()
            if session is before:
                raise IllegalStateError("the consumer has ended")

    def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> Coroutine[Any, Any, dict[TopicPartition, list[ConsumerRecord[Any, Any]]]]:
        """Return the fetched records by partition, of these partitions if some are named.

        Args:
            partitions: the partitions to read; all if none is named.
            timeout_ms: how long to wait for the first record.
            max_records: the maximum number of records in all, by default ``max_poll_records``.

        Raises as :meth:`getone`; records before an error are returned, and the next call raises.
        """
        return self._getmany(current_task(), partitions, timeout_ms, max_records)

    async def _getmany(
        self, taker: Any, partitions: Sequence[TopicPartition], timeout_ms: float, max_records: int | None
    ) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        if self._closed:
            raise ConsumerStoppedError
        check_partition_arguments(partitions)
        check_milliseconds(timeout_ms=timeout_ms)
        _check_count("max_records", max_records)
        session = self._started()
        with TRANSLATED:
            return await session.reader.wait_for_many(
                taker, partitions, timeout_ms / 1000, max_records or self._max_poll_records
            )

    def __aiter__(self) -> Self:
        if self._closed:
            raise ConsumerStoppedError
        return self

    def __anext__(self) -> Coroutine[Any, Any, ConsumerRecord[Any, Any]]:
        """Return the next record, as :meth:`getone`; end when the consumer is stopped."""
        # A subclass, a mock or instrumentation may have replaced getone(); ours needs no coroutine around its own.
        if type(self).getone is _OWN_GETONE and "getone" not in self.__dict__:
            return self._getone(current_task(), (), StopAsyncIteration)
        return self._next_by_getone()

    async def _next_by_getone(self) -> ConsumerRecord[Any, Any]:
        try:
            return await self.getone()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    mark_coroutine_function(getone)
    mark_coroutine_function(getmany)
    mark_coroutine_function(__anext__)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until :meth:`resume`."""
        with TRANSLATED:
            self._started().consumer.pause(*_all_partitions(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        with TRANSLATED:
            self._started().consumer.resume(*_all_partitions(partitions))

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return set() if self._session is None else set(self._session.consumer.paused)

    # --- positions -------------------------------------------------------------------------------------------

    def _require_assigned(self, partition: TopicPartition) -> Session:
        session = self._started()
        if partition not in session.partitions:
            raise IllegalStateError(f"Partition {partition} is not assigned")
        return session

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record; wait until it is known.

        Raises:
            IllegalStateError: the partition is not assigned.
            NoOffsetForPartitionError: there is no offset to begin at, and ``auto_offset_reset`` is "none".
            ConsumerStoppedError: the consumer was stopped meanwhile.
            KafkaError: the group, or looking up an offset, has failed.
        """
        self._require_assigned(partition)
        while True:
            session = self._started()
            if session.assigned.is_set() or session.wanted is None or self._closed:
                self._require_assigned(partition)
            if partition in session.partitions:
                with TRANSLATED:
                    found = session.consumer.position(partition)
                if found is not None:
                    return found
                error = session.reader.error_of(partition)
                if error is not None:
                    raise error
            if self._closed:
                raise ConsumerStoppedError("the consumer was stopped before the position was known")
            with TRANSLATED:
                session.reader.raise_pending()
            await session.wait_for_change(self._request_timeout_ms / 1000)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition from this offset on.

        Raises:
            ValueError: the offset is negative, or no integer.
            IllegalStateError: the partition is not assigned.
        """
        if not isinstance(offset, int) or offset < 0:
            raise ValueError(f"offset must be an integer, 0 or above, got {shown(offset)}")
        session = self._require_assigned(partition)
        with TRANSLATED:
            session.consumer.seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Read partitions, by default all, from their beginning; return whether it was found in time."""
        return await self._seek(partitions, OffsetSpec.EARLIEST)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Read partitions, by default all, from their end; return whether it was found in time."""
        return await self._seek(partitions, OffsetSpec.LATEST)

    async def _seek(self, partitions: tuple[TopicPartition, ...], to: OffsetSpec) -> bool:
        session, wanted = self._assigned_of(partitions)
        deadline = self._client.wire_client._cluster.deadline(self._request_timeout_ms / 1000)
        with TRANSLATED:
            return await session.seek(wanted, to, deadline)

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """Read partitions, by default all, from the group's committed offsets, if there are any; return these.

        Raises:
            IllegalOperation: the consumer has no group.
            IllegalStateError: a partition is not assigned.
        """
        session, wanted = self._assigned_of(partitions)
        found: dict[TopicPartition, int | None] = {}
        if self._group_id is None:
            raise IllegalOperation("seek_to_committed() needs a group_id")
        with TRANSLATED:
            committed = await session.consumer.committed(wanted)
            for partition, at in committed.items():
                found[partition] = None if at is None else at.offset
                if at is not None and partition in session.partitions:
                    session.consumer.seek(partition, at.offset)
        return found

    def _assigned_of(self, partitions: tuple[TopicPartition, ...]) -> tuple[Session, list[TopicPartition]]:
        """Return the session, and these partitions or all; raise unless they are assigned."""
        wanted = _all_partitions(partitions)
        session = self._started()
        assigned = session.partitions
        missing = [partition for partition in wanted if partition not in assigned]
        if missing:
            raise IllegalStateError(f"Partitions {missing} are not assigned")
        if not wanted and not assigned:
            raise IllegalStateError("no partitions are assigned")
        return session, wanted or sorted(assigned)

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return the offset after the last record that all replicas have, as of the last fetch; None before it."""
        session = self._require_assigned(partition)
        with TRANSLATED:
            return session.consumer.high_watermark(partition)

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """Return the first offset of open transactions, as of the last fetch; None before it.

        Without ``isolation_level="read_committed"`` it is always -1.
        """
        state = self._require_assigned(partition).consumer._positions.require(partition)
        if self._isolation_level != "read_committed":
            return None if state.high_watermark is None else -1
        return state.committed_end

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        """Return when the partition's broker has last answered a fetch, in ms since the epoch; None before it."""
        consumer = self._require_assigned(partition).consumer
        cluster, state = consumer._cluster, consumer._positions.require(partition)
        leader = cluster.metadata.snapshot.leader(partition)
        node_id = state.replica if state.replica is not None else None if leader is None else leader.node_id
        answered = None if node_id is None else consumer._fetcher.answered.get(node_id)
        if answered is None or state.high_watermark is None:
            return None
        return cluster.runtime.wall_ms() - round((cluster.runtime.now() - answered) * 1000)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaTimeoutError: an offset was not found in ``request_timeout_ms``, or there is no such partition.
        """
        found = await self._offsets(dict.fromkeys(like_partitions(partitions), OffsetSpec.EARLIEST))
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each partition. Raises as :meth:`beginning_offsets`."""
        found = await self._offsets(dict.fromkeys(like_partitions(partitions), OffsetSpec.LATEST))
        return {partition: at.offset for partition, at in found.items() if at is not None}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset whose timestamp is not before each time in ms; None if there is none.

        Raises:
            TypeError: the times are no dict of partitions.
            ValueError: a time is negative.
            KafkaTimeoutError: as :meth:`beginning_offsets`.
        """
        if not isinstance(timestamps, Mapping):
            raise TypeError(f"timestamps must be a dict of partitions and times in ms, got {shown(timestamps)}")
        checked_partitions(timestamps)
        return await self._offsets(
            {partition: OffsetSpec.at(int(timestamp)) for partition, timestamp in timestamps.items()}
        )

    async def _offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        session = self._started()
        try:
            with TRANSLATED:
                found = await session.consumer.offsets(specs, timeout=self._request_timeout_ms / 1000)
        except IllegalStateError as error:
            raise KafkaTimeoutError(str(error)) from error
        return {
            partition: None if at is None else OffsetAndTimestamp(at.offset, at.timestamp)
            for partition, at in found.items()
        }

    # --- the group's offsets ---------------------------------------------------------------------------------

    async def commit(self, offsets: "Mapping[TopicPartition, int | tuple[int, str]] | None" = None) -> None:
        """Commit offsets for the group: the next records to read, by default after all that were handed out.

        Args:
            offsets: an offset, or an offset and a text, for each partition.

        Raises:
            CommitFailedError: the group has revoked the partitions while their records were being processed, or has
                members, while this consumer reads partitions that were assigned by hand.
            IllegalOperation: the consumer has no group.
            IllegalStateError: a partition is not assigned.
            ValueError, TypeError: the offsets are wrong.
            KafkaError: the coordinator has refused them.
        """
        if self._group_id is None:
            raise IllegalOperation("commit() needs a group_id")
        given = None if offsets is None else commit_structure_validate(offsets)
        session = self._started()
        if self._wanted is None:
            raise IllegalStateError("Not subscribed to any topics")
        assigned = session.partitions
        if not assigned and not session.assigned.is_set() and not session.consumer._positions.lost_in_hand:
            raise IllegalStateError("No partitions assigned")
        if given is not None:
            for partition in given:
                if partition not in assigned and partition not in session.consumer._positions.lost_in_hand:
                    raise IllegalStateError(f"Partition {partition} is not assigned")
        try:
            with TRANSLATED:
                if given is None:
                    await session.consumer.commit()
                else:
                    await session.consumer.commit(
                        {partition: OwnOffsetAndMetadata(at.offset, at.metadata) for partition, at in given.items()}
                    )
        except (UnknownMemberIdError, IllegalGenerationError, RebalanceInProgressError) as error:
            raise CommitFailedError(f"the group has members, and this consumer is not one of them: {error}") from error
        except CommitFailedError as error:  # Faust knows by these words that it can go on
            raise CommitFailedError(f"the group has already rebalanced: {error.args[0]}") from error.__cause__

    async def committed(self, partition: TopicPartition) -> int | None:
        """Return the group's committed offset of a partition; None without one.

        Raises:
            IllegalOperation: the consumer has no group.
        """
        if self._group_id is None:
            raise IllegalOperation("committed() needs a group_id")
        with TRANSLATED:
            found = await self._started().consumer.committed([partition])
        at = found.get(partition)
        return None if at is None else at.offset

    # --- topics ----------------------------------------------------------------------------------------------

    async def topics(self) -> set[str]:
        """Return the topics of the cluster that the user may see."""
        return (await self._client.fetch_all_metadata()).topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if its metadata is not known yet."""
        return self._client.cluster.partitions_for_topic(topic)


async def _end_after(session: Session, before: anyio.Event | None) -> None:
    """End a session once the one before has ended."""
    try:
        if before is not None:
            await before.wait()
    finally:
        await session.end(finishes=False, quietly=True)


def _set_event() -> anyio.Event:
    event = anyio.Event()
    event.set()
    return event


def _check_count(name: str, count: object) -> None:
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ValueError(f"`{name}` must be a positive integer, got {shown(count)}")


def _all_partitions(partitions: tuple[TopicPartition, ...]) -> list[TopicPartition]:
    return checked_partitions(partitions)


_OWN_GETONE: Final = AIOKafkaConsumer.getone
