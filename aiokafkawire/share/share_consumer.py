"""The consumer of a share group (KIP-932)."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, groupby
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import anyio
import anyio.lowlevel

from ..argument_checks import check_integer, check_seconds, flattened, shown
from ..cluster.cluster import Cluster
from ..cluster.live_values import MemberValues
from ..cluster.metrics_push import MetricsPush
from ..config import ShareConsumerConfig
from ..errors import RequestTimeout, UsageError
from ..group.member_ids import new_member_id
from ..records.deserialization import FailureHandler, RecordDeserializer
from ..runtime import CLOSE_SECONDS, finish, opened_at, warn_unclosed
from ..serialization import AnyDeserializer, knows_record
from ..tracing import HandledRecords, Tracing
from ..types import TopicPartition, check_topic_name
from ._implementation import ShareRecord
from .acknowledgements import Acknowledge
from .acquired_partition import RecordForm
from .share_consumer_coordinator import ShareConsumerCoordinator
from .share_fetcher import ShareFetcher
from .share_record import with_failures

if TYPE_CHECKING:  # few programs ask for it
    from .health import ShareConsumerHealth

__all__ = ("ShareConsumer",)

K = TypeVar("K")
V = TypeVar("V")

_YIELD_EVERY = 0.01
"""Seconds after which an iteration that does not wait lets other tasks run."""


class _Owner:
    """The owner of a consumer's records, on the event loop."""

    def __init__(self, consumer: "ShareConsumer[Any, Any]") -> None:
        self.begin = consumer._begin
        self.acknowledge = with_failures(consumer.acknowledge, consumer._tracing)


class ShareConsumer(MetricsPush, Generic[K, V]):
    """A member of a share group, made by :meth:`Client.share_consumer` and used as ``async with``.

    The members of a share group share the records, not the partitions: a broker locks each record for one member, for
    ``group.share.record.lock.duration.ms`` (30 s by default). The member accepts, releases or rejects it; a record that
    is released, or whose lock ends, goes to any member again, until the group's delivery limit. Kafka 4.1 and later.

    Iterate it, or call :meth:`poll`, and process each record in ``async with record``. Several tasks may take records
    of one consumer at once, unless ``share_acknowledgement_mode="implicit"``.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ShareConsumerConfig,
        lane: str,
        topics: tuple[str, ...],
        key_deserializer: AnyDeserializer[K] | None,
        value_deserializer: AnyDeserializer[V] | None,
        failures: FailureHandler | None = None,
    ) -> None:
        for topic in topics:
            check_topic_name(topic)
        self._cluster, self._config, self._topics = cluster, config, topics
        self._tracing: Tracing | None = cluster.record_tracing
        member_id = new_member_id(cluster.runtime.chance)
        self._failures = failures
        functions: tuple[Any, Any] = key_deserializer, value_deserializer
        if failures is None and not any(knows_record(function, "deserialize") for function in functions):
            form = RecordForm(*functions, config.check_crcs)
        else:
            deserializer = RecordDeserializer(key_deserializer, value_deserializer)
            form = RecordForm(check_crcs=config.check_crcs, deserializer=deserializer, failures=failures)
        self._fetcher = ShareFetcher(cluster, config, f"share-{lane}", member_id, _Owner(self), form)
        self._member = ShareConsumerCoordinator(cluster, config, lane, member_id, self._fetcher, self._polls)
        self._is_implicit = config.share_acknowledgement_mode == "implicit"
        self._in_hand: list[list[ShareRecord[K, V]]] = []
        self._state: Literal["new", "open", "closing", "closed"] = "new"
        self._has_closed = anyio.Event()
        self._count = self._waiting = 0
        self._yielded_at = 0.0
        self._opened_at = ""

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this share consumer is {self._state}: make another with client.share_consumer()")
        self._state, self._opened_at = "open", opened_at()
        self._cluster.owner.spawn(self._fetcher.run)
        self._cluster.owner.spawn(self._member.run)
        if self._topics:
            self.subscribe(*self._topics)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __del__(self) -> None:
        if getattr(self, "_state", "new") == "open" and not self._cluster.owner.has_closed:
            warn_unclosed(self, "share consumer", self._opened_at)

    async def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Send the acknowledgements, release all other records, and leave the group. May be called again.

        In other tasks, iterations end, and a :meth:`poll` that waits for records returns an empty list. A cancelled
        call still closes, and raises the cancellation at most 5 seconds later.

        Args:
            timeout: how long closing may take, in seconds; records that brokers then still count as this member's go
                to other members once their locks end.
        """
        check_seconds("timeout", timeout, optional=False)
        if self._state == "open":
            if self._cluster.owner.has_lost_loop:
                self._state = "closed"
            self._cluster.owner.require_own_loop()
            self._state = "closing"
            self._fetcher.notify()
            await finish(self._close, timeout)
        elif self._state == "closing":
            await finish(self._has_closed.wait)
        elif self._state == "new":
            self._state = "closed"

    async def _close(self, timeout: float) -> None:
        deadline = self._cluster.deadline(timeout)
        try:
            await self._fetcher.close(deadline)
            await self._member.leave("the share consumer was closed", deadline)
        finally:
            self._state = "closed"
            try:
                await self._member.driver.stop()
                if self._failures is not None:
                    await self._failures.close()
            finally:
                self._has_closed.set()

    # --- the subscription --------------------------------------------------------------------------------

    def subscribe(self, *topics: str | Collection[str]) -> None:
        """Share the records of these topics with the other members of the group; replace an earlier subscription.

        The topics need not exist yet.

        Raises:
            UsageError: a topic is invalid, there is none, or the consumer is not open.
        """
        self._require_open()
        names = flattened(topics)
        if not names:
            raise UsageError("subscribe() needs a topic; unsubscribe() leaves the group")
        for name in names:
            check_topic_name(name)
        self._topics = tuple(dict.fromkeys(names))
        self._member.subscribe(self._topics)

    async def unsubscribe(self, timeout: float = 5.0) -> None:
        """Release the records that were not handed out, and leave the group; :meth:`subscribe` joins again."""
        check_seconds("timeout", timeout, optional=False)
        self._require_open()
        self._topics = ()
        await self._member.leave("the share consumer has unsubscribed", self._cluster.deadline(timeout))

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics that the consumer subscribes to."""
        return self._topics

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator has assigned; other members may have the same ones."""
        return self._fetcher.assigned

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record stays this member's, in ms; None until a broker has said so."""
        seconds = self._fetcher.locks.seconds
        return round(seconds * 1000) if self._fetcher.locks.is_known else None

    @property
    def name(self) -> str:
        """The consumer's name, which its connections have as well, such as ``"share-3"``."""
        return self._fetcher.lane

    def health(self) -> "ShareConsumerHealth":
        """Return the consumer's health at once: its membership, its partitions, and the reason if it is idle."""
        from .health import share_consumer_health

        return share_consumer_health(self._cluster, self._fetcher, self._member, self._topics, self._state)

    def _live_values(self) -> MemberValues:
        """Return the present values for metrics. Any thread may call this method."""
        config = self._config
        return MemberValues(
            state=self._state,
            client_rack=config.client_rack,
            group_id=config.group_id,
            group_instance_id=None,
            member_id=self._member.machine.group.member_id,
            assigned=len(self.assignment),
            polled_at=self._yielded_at or None,
        )

    # --- records -----------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[ShareRecord[K, V]]:
        """Iterate the records; the iteration ends when any task closes the consumer. Raises as :meth:`poll` does."""
        return self if self._tracing is None else HandledRecords(self, self._tracing.handling(self._config.group_id))

    async def __anext__(self) -> ShareRecord[K, V]:
        """Return the next record; wait for it if needed."""
        if self._state not in ("closing", "closed"):
            await self._let_others_run()
        records = await self._take(1)
        if not records:
            raise StopAsyncIteration
        return records[0]

    async def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ShareRecord[K, V]]:
        """Return up to ``max_records`` records, as soon as there are any.

        Args:
            max_records: the maximum number of records, which may be of several partitions.
            timeout: how long to wait for the first record, in seconds; None waits without limit. If no record arrives
                in time, or another task closes the consumer meanwhile, the list is empty.

        Raises:
            DeserializationError: a record cannot be deserialized; it was released.
            CorruptBatch: a batch is damaged; its records were released.
            GroupIdNotFound: the group has members of another kind, such as a consumer group's.
            UnsupportedVersion: the brokers have no share groups.
            UsageError: the consumer is not open, or another task takes its records in the mode ``"implicit"``.
        """
        check_integer("max_records", max_records, minimum=1)
        check_seconds("timeout", timeout)
        await self._let_others_run()
        began, records = self._cluster.runtime.now(), []
        with anyio.move_on_after(timeout):
            records = await self._take(max_records)
        if self._tracing is not None:
            self._tracing.received(records, self._config.group_id, self._cluster.runtime.now() - began)
        return records

    @property
    def undeserializable_records(self) -> int:
        """The number of records that ``on_error`` has left out: skipped, or written to the dead-letter topic."""
        return 0 if self._failures is None else self._failures.count

    async def _let_others_run(self) -> None:
        self._require_open()
        if self._cluster.runtime.now() - self._yielded_at > _YIELD_EVERY:
            await anyio.lowlevel.checkpoint()
            self._yielded_at = self._cluster.runtime.now()

    async def _take(self, limit: int) -> list[ShareRecord[K, V]]:
        """Return up to ``limit`` records, as soon as there are any; none once the consumer is being closed."""
        if self._state != "open":
            return []
        if self._is_implicit:
            if self._waiting:
                raise UsageError("another task takes records of this share consumer, whose mode is 'implicit'")
            self._accept_in_hand()
        self._count += 1
        fetcher = self._fetcher
        while self._state == "open":
            arrived = fetcher.arrived
            if fetcher.has_ended:
                self._require_open()
            if fetcher.responses.errors:
                raise fetcher.responses.errors.pop(0)
            parts = fetcher.take(limit)
            if parts:
                if self._is_implicit:
                    self._in_hand = parts
                return list(chain.from_iterable(parts))
            self._member.driver.on_poll()
            self._waiting += 1
            fetcher.request(limit)
            try:
                await arrived.wait()
            finally:
                self._waiting -= 1
                if not self._waiting:
                    fetcher.end_request()
        return []

    @contextmanager
    def _staying(self) -> Iterator[None]:
        """Count as a user that polls, since records that were handed out are being processed."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def _polls(self) -> tuple[int, bool]:
        return self._count, self._waiting > 0

    # --- acknowledging -----------------------------------------------------------------------------------

    def acknowledge(self, record: ShareRecord[Any, Any], kind: Acknowledge = Acknowledge.ACCEPT) -> None:
        """Acknowledge a record. The next request to the broker carries it, within 50 ms; :meth:`commit` waits for it.

        While a task waits for records, that request may be up to ``fetch_max_wait_ms`` later.

        Args:
            record: a record of this consumer.
            kind: ``Acknowledge.ACCEPT``, ``RELEASE``, ``REJECT``; or ``RENEW``, to begin the record's lock again, after
                which the record needs another acknowledgement.

        Raises:
            UsageError: the record was acknowledged already or is of another consumer, the mode is ``"implicit"``, or
                the consumer is closed, or this is not its event loop.
        """
        if self._fetcher.locks.continues(record, kind):
            return
        if not isinstance(record, ShareRecord):
            raise UsageError(f"record must be a ShareRecord of this consumer, got {shown(record)}")
        if not isinstance(kind, Acknowledge):
            raise UsageError(f"kind must be an Acknowledge, got {shown(kind)}")
        if self._is_implicit:
            raise UsageError("share_acknowledgement_mode='implicit' acknowledges records itself; use 'explicit'")
        self._require_own(record)
        self._cluster.owner.require_own_loop()
        if self._state in ("closing", "closed"):
            raise UsageError(f"{record} was released, since the share consumer is {self._state}")
        if record.acknowledged is not None:
            raise UsageError(f"{record} was acknowledged already ({record.acknowledged.name})")
        self._fetcher.locks.acknowledge(record, kind)

    def _begin(self, record: ShareRecord[Any, Any]) -> None:
        """Renew the record's lock while its body runs."""
        self._require_own(record)
        if self._is_implicit:
            raise UsageError("'async with record' needs share_acknowledgement_mode='explicit'")
        self._require_open()
        self._fetcher.locks.hold(record)

    def _require_own(self, record: ShareRecord[Any, Any]) -> None:
        if record.owner is not self._fetcher.responses.owner:
            raise UsageError(f"{record} is of another share consumer")

    def _accept_in_hand(self) -> None:
        if self._in_hand:
            self._fetcher.locks.accept(self._in_hand)
            self._in_hand = []

    def _take_back(self, records: Iterable[ShareRecord[K, V]]) -> None:
        """Take notice that the user has not got these records, so that a commit must not accept them."""
        unseen = set(records)
        parts = ([record for record in part if record not in unseen] for part in self._in_hand)
        self._in_hand = [part for part in parts if part]

    def _hand_out_again(self, records: Iterable[ShareRecord[K, V]]) -> None:
        """Take notice that the user gets records that were taken back; those before are accepted, as by a poll."""
        if self._is_implicit:
            self._accept_in_hand()
            self._in_hand = [list(part) for _, part in groupby(records, lambda record: id(record.acquisition))]

    async def commit(self, timeout: float | None = None) -> Mapping[TopicPartition, int]:
        """Send all acknowledgements, and wait for the brokers' answers.

        In the mode ``"implicit"`` this accepts the records handed out last.

        Args:
            timeout: how long to wait, in seconds; None for ``default_api_timeout_ms``.

        Returns:
            How many records the brokers have taken note of since the last commit, by partition.

        Raises:
            AcknowledgementFailed: a broker refused some since the last commit, often since the lock had ended; or the
                consumer was closed meanwhile, before the broker answered.
            RequestTimeout: not all brokers have answered in time.
            UsageError: the consumer is not open.
        """
        check_seconds("timeout", timeout)
        self._require_open()
        self._accept_in_hand()
        limit = self._cluster.config.default_api_timeout_ms / 1000 if timeout is None else timeout
        with anyio.move_on_after(limit) as scope:
            await self._fetcher.flush()
        if scope.cancelled_caught:
            raise RequestTimeout(f"the acknowledgements were not answered within {limit:g} s; they may be sent still")
        return self._fetcher.queue.results.take()

    def _require_open(self) -> None:
        self._cluster.owner.require_own_loop()
        if self._state == "new":
            raise UsageError("this share consumer is not open: use it as 'async with'")
        # As after an error of its background task, which the log has.
        state = "closed" if self._state == "open" and self._fetcher.has_ended else self._state
        if state != "open":
            raise UsageError(f"this share consumer is {state}: make another with client.share_consumer()")
