"""Where records come in: what the appender asks when it does not know a topic, or has no open batch."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from ..cluster.cluster import Cluster
from ..cluster.metadata import Topic
from ..errors import BufferFull, ErrorCode, KafkaError, TopicNotReady, UsageError, copy_for_reraise
from ..types import Header, Headers, TopicPartition, check_topic_name
from .appending import OpenBatch, OpenTopic
from .door import Partitioning
from .sender import Sender

if TYPE_CHECKING:  # many a producer makes no transactions
    from .transactor import Transactor

__all__ = ("Entrance", "Room")

Append = Callable[[str, Any, Any, int | None, int | None, Headers], tuple[OpenBatch, int]]


class Room:
    """Whom to tell when memory became free."""

    def __init__(self) -> None:
        # Made by the first who has to wait: there is room after every answer.
        self._made: anyio.Event | None = None

    def made(self) -> None:
        """There is more room than before."""
        if self._made is not None:
            self._made.set()
            self._made = None

    async def wait(self) -> None:
        """Wait until there is more."""
        self._made = self._made or anyio.Event()
        await self._made.wait()


class Entrance:
    """The door of one producer. ``state`` says whether it is open, for the message that it is not."""

    def __init__(
        self,
        cluster: Cluster,
        sender: Sender,
        partitioning: Partitioning,
        transactor: "Transactor | None",
        room: Room,
        max_block: float,
    ) -> None:
        self.state: str = "new"
        self.append: Append
        """Puts a record into a batch, at once or not at all: the appender's, which asks this door in turn."""
        self._room, self._max_block = room, max_block
        self._cluster, self._sender, self._partitioning, self._transactor = cluster, sender, partitioning, transactor
        self._owner = cluster.owner
        self._accumulator = sender.accumulator
        self._available: dict[str, tuple[Topic, tuple[int, ...]]] = {}
        self.wake: Callable[[], None] = sender.wake
        self.go_now: Callable[[], Coroutine[Any, Any, None] | None] = sender.go_now

    def open_topic(self, topic: str, /) -> OpenTopic:
        """The topic, as soon as its partitions are known.

        Raises:
            UsageError: the producer is not open, or the topic's name is not allowed.
            TopicNotReady: its partitions are not known; they are asked for.
            KafkaError: why nothing can be sent any more.
        """
        self._owner.require_own_loop()
        if self.state != "open" or self._sender.has_ended:
            state = "closed" if self._sender.has_ended else self.state
            raise UsageError(f"the producer is {state}: use it inside its 'async with'")
        if self._sender.fatal is not None:
            raise copy_for_reraise(self._sender.fatal)
        known = self._cluster.snapshot.topics.get(topic)
        if known is None or known.error != ErrorCode.NONE or not known.partitions:
            check_topic_name(topic)
            self._cluster.use((topic,))
            self._cluster.outdated(self._cluster.snapshot)
            raise self._cluster.not_ready(topic)
        available = self._led(topic, known)
        turn = None if self._partitioning.turns is None else self._partitioning.turns.get(topic)
        if turn is not None and turn.available is not available:
            turn = None  # it may be over
        return OpenTopic(topic, len(known.partitions), available, turn)

    def _led(self, topic: str, known: Topic) -> tuple[int, ...]:
        """The indexes of the partitions with a leader, in one object until they change."""
        before = self._available.get(topic)
        if before is None or before[0] is not known:
            led = tuple(one.index for one in known.partitions if one.leader is not None)
            if before is not None and before[1] == led:
                led = before[1]
            before = self._available[topic] = known, led
        return before[1]

    def open_batch(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        /,
    ) -> tuple[OpenBatch, int]:
        """As :class:`~aiokafkawire.producer.door.Door` says."""
        if asyncio._get_running_loop() is not self._owner.loop:
            self._owner.require_own_loop()
        now = self._cluster.runtime.now()
        where = TopicPartition(topic, partition)
        batch, index = self._accumulator.append(where, timestamp, key, value, headers, now)
        return batch.opened, index

    async def let_others_run(self) -> None:
        """As :class:`~aiokafkawire.producer.door.Door` says."""
        await anyio.lowlevel.checkpoint()

    async def accept(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers,
        /,
    ) -> tuple[OpenBatch, int]:
        """As :class:`~aiokafkawire.producer.door.Door` says: within ``max_block_ms``."""
        deadline = self._cluster.deadline(self._max_block)
        while True:
            try:
                return self.append(topic, value, key, partition, timestamp_ms, headers)
            except TopicNotReady:
                await self._cluster.topic(topic, deadline)
            except BufferFull:
                with self._sender.hurry(), anyio.move_on_after(deadline.left(self._cluster.runtime.now())):
                    await self._room.wait()
                if deadline.passed(self._cluster.runtime.now()):
                    raise

    def ask(self, topic: str, partition: int, /) -> None:
        """A record is about to be taken into the transaction. Raises where none is open, or it can only be aborted."""
        assert self._transactor is not None  # or nobody would ask
        self._transactor.add(TopicPartition(topic, partition))

    def refuse(self, topic: str, size: int, /) -> KafkaError:
        """As :class:`~aiokafkawire.producer.door.Door` says."""
        return self._accumulator.refuse(topic, size)
