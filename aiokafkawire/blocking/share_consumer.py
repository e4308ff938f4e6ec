"""The blocking client's share consumer."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Generic, TypeVar

import anyio
import attrs

from ..errors import UsageError
from ..loop_thread import LoopThread
from ..share._implementation import ShareRecord
from ..share.acknowledgements import Acknowledge
from ..share.health import ShareConsumerHealth
from ..share.share_consumer import ShareConsumer as AsyncShareConsumer
from ..share.share_record import with_failures
from ..tracing import Handling
from ..types import TopicPartition
from .closed_on_interruption import ClosedOnInterruption
from .metrics_push import MetricsPush

__all__ = ("ShareConsumer",)

K = TypeVar("K")
V = TypeVar("V")


@attrs.define(eq=False)
class _Poll(Generic[K, V]):
    """A call that takes records on the loop's thread; if Ctrl-C interrupts it, a later call returns its records."""

    records: list[ShareRecord[K, V]] = attrs.field(factory=list)
    is_interrupted: bool = False
    has_returned: bool = False
    ended: anyio.Event = attrs.field(factory=anyio.Event)


class _Owner:
    """The owner of a consumer's records, on any thread."""

    def __init__(self, consumer: "ShareConsumer[Any, Any]") -> None:
        self.begin = consumer._begin
        self.acknowledge = with_failures(consumer.acknowledge, consumer._consumer._tracing)


class ShareConsumer(ClosedOnInterruption, MetricsPush, Generic[K, V]):
    """A share consumer, made by :meth:`Client.share_consumer`. Errors are those of :class:`aiokafkawire.ShareConsumer`.

    Iterate it, or call :meth:`poll`, and process each record in ``with record``. Several threads may take and
    acknowledge records at once, unless ``share_acknowledgement_mode="implicit"``. Ctrl-C loses no records: the next
    call returns those that the interrupted call had taken.
    """

    def __init__(self, loop: LoopThread, consumer: AsyncShareConsumer[K, V]) -> None:
        self._loop, self._consumer = loop, consumer
        self._telemetry = consumer
        consumer._fetcher.responses.owner = _Owner(self)
        # These are used on the loop's thread only.
        self._polls: list[_Poll[K, V]] = []
        self._left: deque[ShareRecord[K, V]] = deque()

    def _open(self) -> None:
        self._loop.call(self._consumer.__aenter__)

    def _end(self, *_: object) -> None:
        self.close()

    async def _leave_open(self, error: BaseException) -> None:
        if self._consumer._state == "open":
            await self._consumer.close()

    def close(self, timeout: float = 5.0) -> None:
        """Send the acknowledgements, release all other records, and leave the group, within ``timeout`` seconds.

        Any thread may call this method; iterations and waiting calls of :meth:`poll` on other threads end.
        """
        self._loop.call_while_running(self._consumer.close, timeout)

    # --- records -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ShareRecord[K, V]]:
        """Iterate over the records, and wait for new ones. The iteration ends when the consumer is closed."""
        tracing = self._consumer._tracing
        if tracing is None:
            return self
        handling = tracing.handling(self._consumer._config.group_id)
        return iter(_HandledRecords(self, handling))

    def __next__(self) -> ShareRecord[K, V]:
        """Return the next record; wait for it if needed."""
        records = self._take(1, None, ends=True)
        if not records:
            raise StopIteration
        return records[0]

    def poll(self, max_records: int = 500, timeout: float | None = None) -> list[ShareRecord[K, V]]:
        """Return up to ``max_records`` records, or an empty list after ``timeout`` seconds without records."""
        return self._take(max_records, timeout)

    def _take(self, limit: int, timeout: float | None, *, ends: bool = False) -> list[ShareRecord[K, V]]:
        poll = _Poll[K, V]()
        try:
            self._loop.call(self._take_on_loop, poll, limit, timeout, ends)
        except BaseException:
            poll.is_interrupted = True
            raise
        # CPython raises KeyboardInterrupt only at calls and loops, so not between these lines.
        records = poll.records
        poll.has_returned = True
        return records

    async def _take_on_loop(self, poll: _Poll[K, V], limit: int, timeout: float | None, ends: bool) -> None:
        try:
            await self._collect_interrupted()
            self._polls.append(poll)
            if self._left:
                poll.records = [self._left.popleft() for _ in range(min(limit, len(self._left)))]
                self._consumer._hand_out_again(poll.records)
            elif ends:
                poll.records = [await anext(self._consumer)]
            else:
                poll.records = await self._consumer.poll(limit, timeout)
        except StopAsyncIteration:
            pass
        finally:
            poll.ended.set()

    async def _collect_interrupted(self) -> None:
        """Keep the records of interrupted calls for the next ones."""
        for poll in list(self._polls):
            if poll.is_interrupted:
                await poll.ended.wait()
                self._consumer._take_back(poll.records)
                self._left.extend(poll.records)
                poll.records = []
        self._polls = [poll for poll in self._polls if not (poll.is_interrupted or poll.has_returned)]

    # --- acknowledging -----------------------------------------------------------------------------------

    def acknowledge(self, record: ShareRecord[Any, Any], kind: Acknowledge = Acknowledge.ACCEPT) -> None:
        """Acknowledge a record; see :meth:`aiokafkawire.ShareConsumer.acknowledge`."""
        if not self._loop.is_running:
            raise UsageError(f"{record} was released, since the client is closed")
        self._loop.call_sync(self._consumer.acknowledge, record, kind)

    def _begin(self, record: ShareRecord[Any, Any]) -> None:
        """Renew the record's lock while its body runs."""
        self._loop.call_sync(self._consumer._begin, record)

    def commit(self, timeout: float | None = None) -> Mapping[TopicPartition, int]:
        """Send all acknowledgements, and wait for the answers; see :meth:`aiokafkawire.ShareConsumer.commit`."""
        return self._loop.call(self._commit_on_loop, timeout)

    async def _commit_on_loop(self, timeout: float | None) -> Mapping[TopicPartition, int]:
        await self._collect_interrupted()  # the user has not got their records, so the mode "implicit" accepts none
        return await self._consumer.commit(timeout)

    # --- the subscription --------------------------------------------------------------------------------

    def subscribe(self, *topics: str | Collection[str]) -> None:
        """Share the records of these topics with the other members of the group; replace an earlier subscription."""
        self._loop.call_sync(self._consumer.subscribe, *topics)

    def unsubscribe(self, timeout: float = 5.0) -> None:
        """Release the records that were not handed out, and leave the group; :meth:`subscribe` joins again."""
        self._loop.call(self._consumer.unsubscribe, timeout)

    @property
    def undeserializable_records(self) -> int:
        """The number of records that ``on_error`` has left out: skipped, or written to the dead-letter topic."""
        return self._consumer.undeserializable_records

    @property
    def name(self) -> str:
        """The consumer's name, which its connections have as well, such as ``"share-3"``."""
        return self._consumer.name

    def health(self) -> ShareConsumerHealth:
        """Return the consumer's health at once: its membership, its partitions, and the reason if it is idle."""
        return self._loop.call_sync(self._consumer.health)

    @property
    def subscription(self) -> tuple[str, ...]:
        """The topics that the consumer subscribes to."""
        return self._consumer.subscription

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator has assigned; other members may have the same ones."""
        return self._loop.call_sync(lambda: self._consumer.assignment)

    @property
    def acquisition_lock_timeout_ms(self) -> int | None:
        """How long a record stays this member's, in ms; None until a broker has said so."""
        return self._consumer.acquisition_lock_timeout_ms


class _HandledRecords(Iterator[ShareRecord[K, V]]):
    """An iterator over records that begins and ends the span of each."""

    def __init__(self, records: Iterator[ShareRecord[K, V]], handling: Handling) -> None:
        self._records, self._handling = records, handling

    def __next__(self) -> ShareRecord[K, V]:
        self._handling.next(None)
        record = next(self._records)
        self._handling.next(record)
        return record
