"""Many consumers of one group in one process, for each client: they come, they go, and say what they own."""

import asyncio
import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from aiokafkawire import Client, KafkaError
from aiokafkawire.config import ConsumerOptions

_POLL = 0.1

# The peers warn of every rebalance, each consumer for itself.
_QUIET = logging.getLogger("benchmarks.rebalance")
for _logger in (_QUIET, logging.getLogger("aiokafka")):
    _logger.addHandler(logging.NullHandler())
    _logger.propagate = False


@dataclass(frozen=True)
class Settings:
    """The settings of all consumers of a crowd; the rest are the client's defaults."""

    bootstrap: str
    topic: str
    """Also the name of the group."""
    assignor: str
    """"range" or "cooperative-sticky"."""
    session_timeout_ms: int
    heartbeat_interval_ms: int


class Crowd(ABC):
    """The consumers of a group, numbered in the order in which they came. Leaving the ``with`` block lets all go."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.failures: list[str] = []
        """What ended a consumer that was not to go."""

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    def join(self) -> None:
        """Start one more consumer; return at once."""

    @abstractmethod
    def leave(self) -> None:
        """Start to close the last consumer in order; return at once."""

    @abstractmethod
    def shares(self) -> Mapping[int, frozenset[int]]:
        """Return the partitions of each consumer that is there, or about to be."""


class _Ours(Crowd):
    """A client for each consumer, and a task that reads it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._consumers: list[Any] = []
        self._scopes: list[anyio.CancelScope] = []
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for scope in self._scopes:
            scope.cancel()
        # Without the error, which would interrupt the closing in order.
        await self._tasks.__aexit__(None, None, None)

    def join(self) -> None:
        scope = anyio.CancelScope()
        self._consumers.append(None)
        self._scopes.append(scope)
        self._tasks.start_soon(self._read, len(self._scopes) - 1, scope)

    def leave(self) -> None:
        self._consumers.pop()
        self._scopes.pop().cancel()

    def shares(self) -> Mapping[int, frozenset[int]]:
        return {
            place: frozenset(one.partition for one in consumer.assignment) if consumer else frozenset()
            for place, consumer in enumerate(self._consumers)
        }

    async def _read(self, place: int, scope: anyio.CancelScope) -> None:
        asked = self.settings
        settings: ConsumerOptions = {
            "group_id": asked.topic,
            "session_timeout_ms": asked.session_timeout_ms,
            "heartbeat_interval_ms": asked.heartbeat_interval_ms,
            "partition_assignment_strategy": [
                "cooperative-sticky" if asked.assignor == "cooperative-sticky" else "range"
            ],
        }
        try:
            async with contextlib.AsyncExitStack() as opened:
                # Closing is outside of the scope, for it is to be in order.
                with scope:
                    kafka = await opened.enter_async_context(Client(asked.bootstrap))
                    consumer = await opened.enter_async_context(kafka.consumer(asked.topic, **settings))
                    self._consumers[place] = consumer
                    async for _ in consumer:
                        pass
        except KafkaError as error:
            self.failures.append(f"{type(error).__name__}: {error}")


class _Aiokafka(Crowd):
    """A task for each consumer."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._consumers: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._gone: list[asyncio.Task[None]] = []

    async def __aexit__(self, *_: object) -> None:
        while self._tasks:
            self.leave()
        await asyncio.gather(*self._gone)

    def join(self) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor

        asked = self.settings
        consumer = AIOKafkaConsumer(
            asked.topic,
            bootstrap_servers=asked.bootstrap,
            group_id=asked.topic,
            session_timeout_ms=asked.session_timeout_ms,
            heartbeat_interval_ms=asked.heartbeat_interval_ms,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        self._consumers.append(consumer)
        self._tasks.append(asyncio.create_task(self._read(consumer)))

    def leave(self) -> None:
        self._gone.append(asyncio.create_task(self._let_go(self._consumers.pop(), self._tasks.pop())))

    def shares(self) -> Mapping[int, frozenset[int]]:
        return {
            place: frozenset(one.partition for one in consumer.assignment())
            for place, consumer in enumerate(self._consumers)
        }

    async def _let_go(self, consumer: Any, task: asyncio.Task[None]) -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await consumer.stop()

    async def _read(self, consumer: Any) -> None:
        from aiokafka.errors import KafkaError as TheirError

        try:
            await consumer.start()
            async for _ in consumer:
                pass
        except TheirError as error:
            self.failures.append(f"{type(error).__name__}: {error}")


class _Confluent(Crowd):
    """A thread for each consumer."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._shares: list[set[int]] = []
        self._orders: list[threading.Event] = []
        self._threads: list[threading.Thread] = []

    async def __aexit__(self, *_: object) -> None:
        while self._orders:
            self.leave()
        for thread in self._threads:
            await anyio.to_thread.run_sync(thread.join)

    def join(self) -> None:
        share: set[int] = set()
        order = threading.Event()
        self._shares.append(share)
        self._orders.append(order)
        self._threads.append(threading.Thread(target=self._read, args=(share, order), daemon=True))
        self._threads[-1].start()

    def leave(self) -> None:
        self._shares.pop()
        self._orders.pop().set()

    def shares(self) -> Mapping[int, frozenset[int]]:
        return {place: frozenset(share) for place, share in enumerate(self._shares)}

    def _read(self, share: set[int], order: threading.Event) -> None:
        from confluent_kafka import Consumer, KafkaException

        # Both kinds of rebalance end well with these: an eager one takes all before it gives anew.
        def assigned(_: object, partitions: Iterable[Any]) -> None:
            share.update(one.partition for one in partitions)

        def revoked(_: object, partitions: Iterable[Any]) -> None:
            share.difference_update([one.partition for one in partitions])

        asked = self.settings
        settings = {
            "bootstrap.servers": asked.bootstrap,
            "group.id": asked.topic,
            "session.timeout.ms": asked.session_timeout_ms,
            "heartbeat.interval.ms": asked.heartbeat_interval_ms,
            "partition.assignment.strategy": asked.assignor,
        }
        consumer = Consumer(settings, logger=_QUIET)
        try:
            consumer.subscribe([asked.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
            while not order.is_set():
                consumer.poll(_POLL)
        except KafkaException as error:
            self.failures.append(str(error))
        finally:
            consumer.close()


_CROWDS: Mapping[str, type[Crowd]] = {"ours": _Ours, "aiokafka": _Aiokafka, "confluent": _Confluent}


def new_crowd(client: str, settings: Settings) -> Crowd:
    """Open an empty crowd of a client's consumers."""
    return _CROWDS[client](settings)
