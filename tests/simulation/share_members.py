"""Members of a share group, each from its beginning to its end: how they process, acknowledge, dawdle, and go."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import anyio
import attrs

from aiokafkawire import (
    Acknowledge,
    AcknowledgementFailed,
    Client,
    Reject,
    ShareConsumer,
    ShareRecord,
    TopicPartition,
)
from aiokafkawire.config import ShareConsumerOptions
from aiokafkawire.errors import RequestTimeout
from aiokafkawire.testing.simulation import Simulation

from .share_checks import Delivery, ShareWatch
from .taking_part import client_of

__all__ = ("CLOSES_WITHIN", "GROUP", "Member", "ShareGroup")

GROUP = "the share group"
CLOSES_WITHIN = 5.0
"""Virtual seconds in which a consumer is closed, whatever the brokers do."""
_AT_ONCE = 0.01
"""What is over at once takes no longer."""
_WAYS = ("bodies", "several bodies", "polls", "polls", "implicit")

Record = ShareRecord[bytes, bytes]


class _OnPurpose(Exception):
    """A record is to be released."""


@attrs.frozen
class ShareGroup:
    """What its members have in common, all from the seed. Times are in ms."""

    topics: Sequence[str]
    lock_ms: int
    delivery_limit: int
    session_timeout_ms: int
    max_poll_interval_ms: int
    max_record_locks: int
    is_transactional: bool
    """Whether the records are written in transactions."""
    isolation_level: str

    @classmethod
    def of(cls, chance: Random, topics: Sequence[str]) -> "ShareGroup":
        """Choose one."""
        return cls(
            topics,
            lock_ms=chance.choice((1_000, 2_000, 5_000, 15_000)),
            delivery_limit=chance.choice((3, 5, 10, 10)),
            session_timeout_ms=6_000,
            max_poll_interval_ms=chance.choice((6_000, 10_000, 30_000)),
            max_record_locks=chance.choice((100, 2_000)),
            is_transactional=chance.random() < 0.3,
            isolation_level=chance.choice(("read_committed", "read_uncommitted")),
        )

    def configs(self) -> dict[str, str]:
        """Return the group's configs."""
        return {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": self.isolation_level,
            "share.record.lock.duration.ms": str(self.lock_ms),
            "share.delivery.count.limit": str(self.delivery_limit),
            "share.session.timeout.ms": str(self.session_timeout_ms),
            "share.heartbeat.interval.ms": "1000",
            "share.partition.max.record.locks": str(self.max_record_locks),
        }


@attrs.define(eq=False)
class Member:
    """One share consumer, with a client of its own. Once ``calm`` is set, its user is quick."""

    sim: Simulation
    watch: ShareWatch
    group: ShareGroup
    name: str
    calm: anyio.Event
    learn: Callable[[str, str], None]
    """Takes notice of the consumer's member id and name."""
    chance: Random = attrs.field(init=False)
    way: str = attrs.field(init=False)
    pace: float = attrs.field(init=False)
    said: dict[Delivery, Acknowledge] = attrs.field(factory=dict)
    """The acknowledgements since the last commit."""
    commits: int = 0
    _in_hand: list[Delivery] = attrs.field(factory=list)
    _commits_every: int = 0
    _since_commit: int = 0
    _renews: bool = False
    """Whether the user has renewed locks since the last commit, which counts that."""

    def __attrs_post_init__(self) -> None:
        self.chance = self.sim.chance(self.name)
        self.way = self.chance.choice(_WAYS)
        self.pace = self.chance.choice((0.0, 0.0, 0.01, 0.1))
        self._commits_every = self.chance.choice((1, 10, 50, 1_000_000))

    def _options(self) -> ShareConsumerOptions:
        chance = self.chance
        return ShareConsumerOptions(
            group_id=GROUP,
            share_acknowledgement_mode="implicit" if self.way == "implicit" else "explicit",
            share_acquire_mode=chance.choice(("batch_optimized", "batch_optimized", "record_limit")),
            max_poll_records=chance.choice((1, 20, 500)),
            max_poll_interval_ms=self.group.max_poll_interval_ms,
            fetch_max_wait_ms=chance.choice((500, 900)),
            fetch_max_bytes=chance.choice((1_000, 52_428_800)),
        )

    # --- its life --------------------------------------------------------------------------------------------------

    async def live(self, scope: anyio.CancelScope) -> None:
        """Process records until the scope is cancelled, then leave in order."""
        try:
            async with client_of(self.sim, self.name, client_id=self.name) as client:
                await self._take_part(client, scope)
        finally:
            self.sim.note(f"{self.name} is gone")

    async def _take_part(self, client: Client, scope: anyio.CancelScope) -> None:
        consumer = client.share_consumer(*self.group.topics, **self._options())
        self.learn(consumer._member.machine.member_id, self.name)
        async with consumer:
            try:
                with scope:
                    await self._work(consumer)
            finally:
                await self._close(consumer)

    async def _close(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        within, began = self.chance.choice((0.5, CLOSES_WITHIN)), self.sim.now()
        await consumer.close(within)
        took = self.sim.now() - began
        if took > within + _AT_ONCE:
            self.watch.fail(f"{self.name} took {took:.2f} s to close, and was given {within}")

    async def _work(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        ways = {"bodies": self._bodies, "several bodies": self._several_bodies, "polls": self._polls}
        work, impatience = ways.get(self.way, self._implicit), self.chance.choice((0.05, 1.0, 1_000.0))
        while True:
            # Who gives up forgets the records in hand, until their locks end.
            with anyio.move_on_after(math.inf if self.calm.is_set() else impatience):
                await work(consumer)

    # --- ways ------------------------------------------------------------------------------------------------------

    async def _bodies(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        async for record in consumer:
            await self._body(consumer, record)
            if self._is_due(1):
                await self._commit(consumer)

    async def _several_bodies(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        failed: list[Exception] = []

        async def work() -> None:
            # The group would wrap it.
            try:
                async for record in consumer:
                    await self._body(consumer, record)
            except Exception as error:
                failed.append(error)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for _ in range(self.chance.randint(2, 4)):
                tasks.start_soon(work)
            while True:
                await anyio.sleep(self.chance.uniform(0.1, 2.0))
                await self._commit(consumer)
        raise failed[0]

    async def _body(self, consumer: ShareConsumer[bytes, bytes], record: Record) -> None:
        delivery = self._take(record)
        try:
            async with record:
                await self._dawdle()
                roll = 1.0 if self.calm.is_set() else self.chance.random()
                if roll < 0.03:
                    raise Reject("on purpose")
                if roll < 0.1:
                    raise _OnPurpose
        except _OnPurpose:
            pass
        finally:
            # Nothing of the client runs between the acknowledgement and this.
            if delivery is not None and record.acknowledged is not None:
                self._say(delivery, record.acknowledged)

    async def _polls(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        while True:
            records = await consumer.poll(self.chance.choice((1, 20, 500)), timeout=1.0)
            taken = [(record, self._take(record)) for record in records]
            self.chance.shuffle(taken)
            for record, delivery in taken:
                await self._dawdle()
                if not self.calm.is_set() and self.chance.random() < 0.02:
                    continue  # forgotten: its lock ends
                if not self.calm.is_set() and self.chance.random() < 0.05:
                    await self._renew(consumer, record, delivery)
                kind = Acknowledge.ACCEPT if self.calm.is_set() else self.chance.choice(_KINDS)
                consumer.acknowledge(record, kind)
                if delivery is not None:
                    self._say(delivery, kind)
            if self._is_due(len(records)):
                await self._commit(consumer)
            if not self.calm.is_set() and self.chance.random() < 0.01:
                self.sim.note(f"{self.name} subscribes again")
                try:
                    await consumer.unsubscribe(self.chance.choice((0.5, 5.0)))
                    await self._pause(self.chance.choice((0.0, 1.0)))
                finally:
                    consumer.subscribe(*self.group.topics)

    async def _renew(self, consumer: ShareConsumer[bytes, bytes], record: Record, delivery: Delivery | None) -> None:
        self._renews = True
        consumer.acknowledge(record, Acknowledge.RENEW)
        if delivery is not None:
            delivery.wanted.append(Acknowledge.RENEW)
        if self.chance.random() < 0.5:
            await self._commit(consumer)
        await self._dawdle()

    async def _implicit(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        while True:
            self._put_down()
            records = await consumer.poll(self.chance.choice((1, 20, 500)), timeout=1.0)
            self._in_hand = [delivery for record in records if (delivery := self._take(record)) is not None]
            for _ in records:
                await self._dawdle()
            if self._is_due(len(records)):
                self._put_down()
                await self._commit(consumer)

    def _put_down(self) -> None:
        """The next call accepts the records in hand."""
        for delivery in self._in_hand:
            self._say(delivery, Acknowledge.ACCEPT)
        self._in_hand = []

    # --- records ---------------------------------------------------------------------------------------------------

    def _take(self, record: Record) -> Delivery | None:
        partition = TopicPartition(record.topic, record.partition)
        node = record.acquisition.node_id
        return self.watch.hand_out(self.name, partition, record.offset, record.delivery_count, node, record.value)

    def _say(self, delivery: Delivery, kind: Acknowledge) -> None:
        delivery.wanted.append(kind)
        self.said[delivery] = kind

    def _is_due(self, count: int) -> bool:
        self._since_commit += count
        if self._since_commit < self._commits_every:
            return False
        self._since_commit = 0
        return True

    async def _commit(self, consumer: ShareConsumer[bytes, bytes]) -> None:
        said = dict(self.said)
        try:
            taken = await consumer.commit(timeout=self.chance.choice((0.5, 5.0, 60.0)))
        except AcknowledgementFailed as error:
            self.sim.note(f"{self.name} could not commit: {error}")
            self._committed({one: kind for one, kind in said.items() if one.partition not in error.errors})
            self.said = {one: kind for one, kind in self.said.items() if one.partition not in error.errors}
            self._renews = False
        except RequestTimeout as error:
            self.sim.note(f"{self.name} could not commit: {error}")
        else:
            self.commits += 1
            self._committed(said)
            due = Counter(delivery.partition for delivery in said)
            if self.way != "several bodies" and not self._renews and taken != due:
                self.watch.fail(f"{self.name} has committed {taken}, and acknowledged {due}")
            self._renews = False

    def _committed(self, said: dict[Delivery, Acknowledge]) -> None:
        for delivery, kind in said.items():
            self.watch.committed(delivery, kind)
            self.said.pop(delivery, None)

    async def _dawdle(self) -> None:
        chance, lock = self.chance.random(), self.group.lock_ms / 1000
        if self.calm.is_set():
            await anyio.sleep(min(self.pace, 0.001))
        elif chance < 0.002:
            self.sim.note(f"{self.name} asks for nothing")
            await self._pause(self.group.max_poll_interval_ms / 1000 + self.chance.uniform(-1, 5))
        elif chance < 0.005:
            await self._be_cut_off(lock + self.chance.uniform(-1, 4))
        elif chance < 0.015:
            await self._pause(self.chance.uniform(0, 2 * lock))
        elif self.pace:
            await anyio.sleep(self.chance.uniform(0, self.pace))

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.calm.wait()

    async def _be_cut_off(self, seconds: float) -> None:
        """Reach no broker for a while, and then go on with the records in hand."""
        self.sim.note(f"{self.name} is cut off")
        injector = self.sim.network.injector()
        injector.partition({self.name})
        try:
            await self._pause(max(0.0, seconds))
        finally:
            self.sim.network.drop(injector)
        await anyio.sleep(self.chance.choice((0.0, 0.5)))


_KINDS = (*(Acknowledge.ACCEPT,) * 8, Acknowledge.RELEASE, Acknowledge.REJECT)
