"""Acquires records from the brokers, and sends acknowledgements to them: one request to each broker at a time."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from ..cluster.cluster import Cluster
from ..cluster.metadata import Snapshot
from ..cluster.retry import Deadline, retry_action
from ..config import ShareConsumerConfig
from ..errors import BrokerError, ErrorCode, KafkaError, Refresh, UnsupportedVersion, as_kafka_error
from ..event_log import EventLog
from ..group.share_group_requests import SHARE_VERSIONS
from ..network.connection import Connection
from ..plain_values import error_text
from ..protocol.schema import Versions
from ..runtime import Worker, place_finder
from ..types import TopicPartition
from ._implementation import ShareRecord
from .acknowledgement_queue import AcknowledgementQueue, SentAcknowledgements
from .acquired_partition import (
    RecordForm,
)
from .fetch_size import FetchSize
from .record_locks import RecordLocks
from .share_buffer import ShareBuffer
from .share_fetch_session import PartitionKey, ShareBroker
from .share_record import RecordOwner
from .share_reports import ShareReports
from .share_requests import acknowledge_request, fetch_request
from .share_responses import FetchedPartition, ShareResponses

__all__ = ("ShareFetcher",)

_log = EventLog("aiokafkawire.share")

_RENEWS: Final = Versions.parse("2+")
_LARGE: Final = 64 * 1024
"""The size in bytes above which compressed batches are decompressed on a thread."""
_SESSION_LOST: Final = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)
_GRACE: Final = 5.0
_EARLY_PAUSE: Final = 0.005
"""Seconds between fetches while a broker answers before their wait is over, and without records."""


class ShareFetcher:
    """The background task of one share consumer that acquires records and sends acknowledgements.

    Args:
        cluster: finds the brokers.
        config: the consumer's settings.
        lane: names the consumer's connections.
        member_id: the member, whose records they are.
        owner: the consumer, to which records belong.
        form: how records are read.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ShareConsumerConfig,
        lane: str,
        member_id: str,
        owner: RecordOwner,
        form: RecordForm,
    ) -> None:
        self._cluster, self._config, self._member_id = cluster, config, member_id
        self.lane: str = lane
        """The consumer's name, which its connections have as well."""
        self.acquires_ahead: bool = config.share_acquire_mode != "record_limit"  # KIP-1206
        """Whether to acquire records that the user has not requested yet."""
        self._clock = cluster.runtime.now
        self.size: FetchSize = FetchSize(config.max_poll_records)
        self.buffer: ShareBuffer = ShareBuffer(self.size)
        self.queue: AcknowledgementQueue = AcknowledgementQueue()
        self.arrived: anyio.Event = anyio.Event()
        """Set when there are new records, errors or results of acknowledgements."""
        self.requested: int = 0
        """How many records the user waits for, or has waited for until just now; otherwise 0."""
        self._brokers: dict[int, ShareBroker] = {}
        # The number of calls of flush() that wait.
        self._flushes = 0
        self._is_awaited = False
        self._worker = Worker(self._step, self._ended)
        self._reports = ShareReports(cluster, config.group_id, lane)
        self.locks: RecordLocks = RecordLocks(self.buffer, self.queue, self._clock, self._worker.wake, place_finder())
        """The locks of the records that are here or in the user's hands."""
        self.responses: ShareResponses = ShareResponses(
            cluster, config, form, owner, self.queue, self.locks, self.buffer
        )
        """Handles what brokers answer; has the errors to raise to the user."""

    async def run(self) -> None:
        """Fetch and acknowledge until closed."""
        # A broker releases the records of a member as soon as its connection ends.
        self._cluster.brokers.keep_open(self.lane)
        with self._cluster.metadata.on_update(self._worker.wake):
            await self._worker.run()

    async def close(self, deadline: Deadline) -> None:
        """Send what is acknowledged, release all other records, and stop."""
        self.responses.is_closing = True
        self.locks.end_run()
        self._worker.wake()
        with anyio.move_on_after(deadline.left(self._clock())):
            while any(broker.is_busy or broker.session.is_open for broker in self._brokers.values()):
                if self._worker.has_ended:
                    break
                await self.arrived.wait()
        await self._worker.stop()
        await self._cluster.brokers.close_lanes(self.lane)

    def _ended(self) -> None:
        self.queue.abandon(_closed())
        self.notify()

    def notify(self) -> None:
        """Wake the calls that wait for :attr:`arrived`."""
        arrived, self.arrived = self.arrived, anyio.Event()
        arrived.set()

    def report(self, error: KafkaError) -> None:
        """Raise an error to the user."""
        self.responses.errors.append(error)
        self.notify()

    def request(self, limit: int) -> None:
        """Take notice that the user waits for up to ``limit`` records."""
        self.requested, self._is_awaited = max(self.requested, limit), True
        self._worker.wake()

    def end_request(self) -> None:
        """Take notice that the user waits no more; if it has no records, a fetch begins all the same."""
        self._is_awaited = False

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return frozenset(self.responses.assigned.values())

    @property
    def has_ended(self) -> bool:
        """Whether the background task has ended, for any reason."""
        return self._worker.has_ended

    def troubles(self) -> dict[int, str]:
        """Return why requests to brokers have failed or are unanswered, by node id, without brokers that answer."""
        found = {node_id: self._trouble(broker) for node_id, broker in self._brokers.items()}
        return {node_id: text for node_id, text in found.items() if text is not None}

    def _trouble(self, broker: ShareBroker) -> str | None:
        if broker.error is not None or broker.asked_at is None:
            return error_text(broker.error)
        waited = self._clock() - broker.asked_at
        is_silent = waited > self._config.fetch_max_wait_ms / 1000 + _GRACE
        return f"{broker.node.address} has not answered for {waited:.0f} s" if is_silent else None

    def assign(self, partitions: Mapping[PartitionKey, TopicPartition]) -> None:
        """Read these partitions and no others; release the unread records of the others."""
        self.responses.assigned = dict(partitions)
        self._cluster.metadata.track_topics({partition.topic for partition in partitions.values()})
        self.locks.release(self.buffer.drop(lambda record: record.acquisition.key not in self.responses.assigned))
        self._worker.wake()

    # --- records that were handed out --------------------------------------------------------------------

    def take(self, limit: int) -> list[list[ShareRecord[Any, Any]]]:
        """Return up to ``limit`` records for the user, in parts of one acquisition each."""
        records = self.buffer.take(limit, self._clock(), self.locks.seconds)
        if records and not self._is_awaited:
            self.requested = 0
        self.locks.hand_out(records)
        if self.acquires_ahead and self.size.wants(self._unread, 0):
            self._worker.wake()
        return records

    @property
    def _unread(self) -> int:
        """The number of records that the user has not taken, and of errors, which stand for one or more of them."""
        return len(self.buffer) + len(self.responses.errors)

    async def flush(self) -> None:
        """Send all acknowledgements now, and wait for their results."""
        self.locks.end_run()
        number = self.queue.number_so_far()
        self._flushes += 1
        try:
            while self.queue.unsettled(number) and not self._worker.has_ended:
                self.queue.flush(self._clock())
                self._worker.wake()
                await self.arrived.wait()
        finally:
            self._flushes -= 1

    # --- what is due -------------------------------------------------------------------------------------

    def _step(self, tasks: TaskGroup) -> float | None:
        now, snapshot = self._clock(), self._cluster.metadata.snapshot
        self.locks.end_run()
        self.locks.renew_due(now)
        self.locks.warn_of_forgotten(now)
        wanted = self._by_leader(snapshot)
        acknowledged = self.queue.by_broker(partial(_leader_id, snapshot))
        waits: list[float] = []
        for node_id in {*wanted, *acknowledged, *self._brokers}:
            broker = self._broker(node_id, snapshot)
            if broker is None or broker.is_busy:
                continue
            if now < broker.retry_at and not self.responses.is_closing:
                waits.append(broker.retry_at - now)
                continue
            exchange = self._next(broker, wanted.get(node_id, []), acknowledged.get(node_id, []), now)
            if exchange is not None:
                broker.is_busy = True
                tasks.start_soon(exchange)
        if self.queue.flush_at is not None and self.queue.flush_at > now:
            waits.append(self.queue.flush_at - now)
        if not self._is_awaited:
            self.requested = 0
        if self.locks.need_attention:
            waits.append(self.locks.seconds / 4)
        return min(waits, default=None)

    def _broker(self, node_id: int, snapshot: Snapshot) -> ShareBroker | None:
        broker, node = self._brokers.get(node_id), snapshot.nodes.get(node_id)
        if broker is None and node is not None:
            broker = self._brokers[node_id] = ShareBroker(node, self._cluster.backoff())
        elif broker is not None and node is not None:
            broker.node = node
        return broker

    def _by_leader(self, snapshot: Snapshot) -> dict[int, list[PartitionKey]]:
        found: dict[int, list[PartitionKey]] = {}
        for key, partition in self.responses.assigned.items():
            node_id = _leader_id(snapshot, partition)
            if node_id is not None:
                found.setdefault(node_id, []).append(key)
        if sum(map(len, found.values())) < len(self.responses.assigned):
            self._cluster.metadata.mark_stale(snapshot)
        return found

    def _next(
        self, broker: ShareBroker, wanted: list[PartitionKey], acknowledged: list[PartitionKey], now: float
    ) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """Return the next exchange with a broker; None if nothing is due."""
        is_open, flush_at = broker.session.is_open, self.queue.flush_at
        if self.responses.is_closing:
            closes = not (broker.is_reading or self.queue.needs_two_requests(acknowledged))
            if not is_open or not (acknowledged or closes):
                return None
            return partial(self._acknowledge, broker, acknowledged, closes=closes)
        if acknowledged and not is_open:
            return partial(self._fetch, broker, {}, [], 0)  # the first request of a session cannot acknowledge
        fetches = wanted and not broker.is_reading and self.size.wants(self._unread, self.requested)
        if not self.requested and (broker.is_drained or not self.acquires_ahead):
            fetches = False  # a fetch ahead of an empty log would only delay acknowledgements
        is_due = flush_at is not None and now >= flush_at and (self._flushes or not fetches)
        if acknowledged and (is_due or self.queue.renews(acknowledged) or not set(acknowledged) <= set(wanted)):
            return partial(self._acknowledge, broker, acknowledged)
        if fetches:
            number = min(self.requested, self._config.max_poll_records)
            if self.acquires_ahead:
                number = max(number, self.size.records)
            partitions = {key: self.responses.assigned[key] for key in wanted}
            return partial(self._fetch, broker, partitions, acknowledged, number, waits=bool(self.requested))
        return None

    # --- the requests ------------------------------------------------------------------------------------

    async def _fetch(
        self,
        broker: ShareBroker,
        wanted: Mapping[PartitionKey, TopicPartition],
        acknowledged: list[PartitionKey],
        max_records: int,
        *,
        waits: bool = False,
    ) -> None:
        """Acquire records of the partitions ``wanted``; without any, only open a session."""
        wait_ms = min(self._config.fetch_max_wait_ms, int(self.locks.seconds * 250)) if waits else 0
        sent = self.queue.take(acknowledged, renewals=False)
        request = fetch_request(
            self._config,
            self._member_id,
            broker.session,
            wanted,
            sent.ranges,
            max_records=max(1, max_records),
            max_wait_ms=wait_ms,
        )

        found: list[FetchedPartition] = []

        async def exchange(connection: Connection) -> None:
            began = self._clock()
            response = await connection.request(request, timeout=wait_ms / 1000 + self._timeout, wanted=SHARE_VERSIONS)
            seconds = self._clock() - began
            found.extend(self.responses.fetched(broker, wanted, response, sent, began))
            self._reports.fetched(broker.node, wanted, response, seconds)
            broker.is_drained, broker.is_reading = not found, bool(found)
            if not found and seconds < wait_ms / 2000:
                # The broker has found records of aborted transactions only, and has more.
                broker.retry_at = self._clock() + _EARLY_PAUSE

        await self._exchange(broker, sent, exchange)
        if found:
            await self._read(broker, found)

    async def _read(self, broker: ShareBroker, found: list[FetchedPartition]) -> None:
        """Read the records of a fetch. Deserializers may wait, and acknowledgements and renewals must not."""
        try:
            await self.responses.read(found)
        except Exception as raised:
            self.responses.report_once(as_kafka_error(raised, f"share group {self._config.group_id!r}"))
        finally:
            broker.is_reading = False
            self.notify()
            self._worker.wake()

    async def _acknowledge(
        self, broker: ShareBroker, acknowledged: list[PartitionKey], *, closes: bool = False
    ) -> None:
        """Send acknowledgements without a fetch; closing the session releases all other records."""
        sent = self.queue.take(acknowledged, renewals=not closes)
        epoch = broker.session.final_epoch() if closes else broker.session.next_epoch()
        request = acknowledge_request(self._config.group_id, self._member_id, epoch, sent.ranges, renews=sent.renews)

        async def exchange(connection: Connection) -> None:
            began, wanted = self._clock(), _RENEWS if sent.renews else SHARE_VERSIONS
            response = await connection.request(request, timeout=self._timeout, wanted=wanted)
            self.responses.acknowledged(broker, response, sent, began)

        await self._exchange(broker, sent, exchange)
        if closes:
            broker.session.restart()
            self.notify()

    @property
    def _timeout(self) -> float:
        return _GRACE + self._cluster.config.default_api_timeout_ms / 1000

    async def _exchange(
        self, broker: ShareBroker, sent: SentAcknowledgements, exchange: Callable[[Connection], Awaitable[None]]
    ) -> None:
        """Run one exchange, and handle its error."""
        began = broker.asked_at = self._clock()
        try:
            await exchange(await self._cluster.connection(broker.node, self.lane))
            broker.error = None
            if broker.retry_at <= self._clock():
                broker.backoff.reset()
        except anyio.get_cancelled_exc_class():
            self.queue.refused(sent, _closed())
            raise
        except Exception as raised:
            self._failed(broker, sent, as_kafka_error(raised, f"share group {self._config.group_id!r}"))
        finally:
            for key, ranges in sent.ranges.items():
                self.locks.settle_renewals(key, ranges, None)
            self.queue.ended(sent)
            self._reports.acknowledged(broker.node, sent, self.queue, self._clock() - began)
            broker.is_busy, broker.asked_at = False, None
            self.notify()
            self._worker.wake()

    def _failed(self, broker: ShareBroker, sent: SentAcknowledgements, error: KafkaError) -> None:
        """Handle the error of a whole request: the session is lost, and with it the records that wait here."""
        if isinstance(error, UnsupportedVersion) and sent.renews:
            self.locks.renew_no_more()
            message = "share group %(group)r: the locks of records are not renewed: %(error)s"
            _log.info(message, group=self._config.group_id, error=error)
            self.queue.renewals_unsupported(sent, error, self._clock())
            return
        message = "share group %(group)r: the session with broker %(node_id)d at %(broker)s begins again: %(error)s"
        node, group = broker.node, self._config.group_id
        _log.debug(message, group=group, node_id=node.node_id, broker=node.address, error=error)
        broker.error = error
        is_lost = isinstance(error, BrokerError) and error.code in _SESSION_LOST
        if is_lost and not self.responses.is_closing:
            self.queue.put_back(sent, self._clock())  # the broker has not looked at them
        else:
            self.queue.refused(sent, error)
        broker.session.restart()
        self.locks.lose(lambda acquisition: acquisition.node_id == broker.node.node_id)
        broker.back_off(self._clock())
        action = retry_action(error)
        if action.refresh is Refresh.METADATA:
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
        if not action.retry and not is_lost:
            self.responses.report_once(error)


def _closed() -> KafkaError:
    return KafkaError("the share consumer was closed before the broker answered")


def _leader_id(snapshot: Snapshot, partition: TopicPartition) -> int | None:
    leader = snapshot.leader(partition)
    return leader.node_id if leader is not None else None
