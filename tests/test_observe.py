"""Observers: who is notified, what becomes of those that fail, and what is reported of brokers in trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from support.clusters import QUICK
from support.log_watch import watched_log
from support.rows import every_row
from support.virtual_time import virtual_time

from aiokafkawire import Client, ConfigError, KafkaError
from aiokafkawire.errors import ErrorCode
from aiokafkawire.observe import (
    EVENTS,
    BatchEnded,
    ConnectionClosed,
    ConnectionFailed,
    CoordinatorChanged,
    Observer,
    Observers,
    PartitionsLost,
    RequestEnded,
    Throttled,
)
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.broker import Broker

THROTTLED = Throttled(broker="b:1", node_id=1, api="Fetch", seconds=1.0)


class Listening(Observer):
    def __init__(self) -> None:
        self.throttles: list[Throttled] = []

    def throttled(self, event: Throttled) -> None:
        self.throttles.append(event)


class Failing:
    def throttled(self, event: Throttled) -> None:
        raise LookupError("no such gauge")

    def batch_ended(self, event: BatchEnded) -> None: ...


class Cancelled:
    """Raises the error of a cancelled task, as code does that waits for a cancelled future."""

    def throttled(self, event: Throttled) -> None:
        raise asyncio.CancelledError


class Waiting:
    async def throttled(self, event: Throttled) -> None: ...


class Troubles(Observer):
    """Keeps what goes wrong."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def connection_failed(self, event: ConnectionFailed) -> None:
        self.events.append(event)

    def connection_closed(self, event: ConnectionClosed) -> None:
        self.events.append(event)

    def request_ended(self, event: RequestEnded) -> None:
        if event.error is not None:
            self.events.append(event)

    def throttled(self, event: Throttled) -> None:
        self.events.append(event)

    def batch_ended(self, event: BatchEnded) -> None:
        self.events.append(event)

    def coordinator_changed(self, event: CoordinatorChanged) -> None:
        self.events.append(event)

    def partitions_lost(self, event: PartitionsLost) -> None:
        self.events.append(event)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]


# --- who is notified -----------------------------------------------------------------------------------------------


def test_what_nobody_wants_to_know_has_no_notifier() -> None:
    observers = Observers([Listening()])
    assert [name for name in EVENTS if getattr(observers, name) is not None] == ["throttled"]


def test_observers_come_and_go() -> None:
    one, other = Listening(), Listening()
    observers = Observers([one])
    observers.add(other)
    assert observers.throttled is not None
    observers.throttled(THROTTLED)
    observers.remove(one)
    observers.remove(one)
    observers.throttled(THROTTLED)
    assert (one.throttles, other.throttles) == ([THROTTLED], [THROTTLED, THROTTLED])
    observers.remove(other)
    assert observers.throttled is None


def test_an_observer_that_raises_a_cancellation_is_logged_and_removed() -> None:
    """It would end the connection or the background task that notifies it."""
    listening = Listening()
    observers = Observers([Cancelled(), listening])
    with watched_log() as log:
        for _ in range(2):
            assert observers.throttled is not None
            observers.throttled(THROTTLED)
    assert len(log.records) == 1
    assert listening.throttles == [THROTTLED, THROTTLED]


def test_an_observer_that_fails_is_logged_once_and_removed() -> None:
    listening = Listening()
    observers = Observers([Failing(), listening])
    with watched_log(logging.WARNING) as log:
        for _ in range(2):
            assert observers.throttled is not None
            observers.throttled(THROTTLED)
    [line] = log.records
    assert "throttled of the observer <" in line.getMessage()
    assert line.exc_info is not None
    assert listening.throttles == [THROTTLED, THROTTLED]
    assert observers.batch_ended is None


def named(*methods: str) -> object:
    """Return an object with methods of these names."""
    return type("Mine", (), {name: lambda self, event: None for name in methods})()


@every_row(
    ("given", "why"),
    [
        ("abc", "must be a list of objects"),
        (7, "must be a list of objects"),
        ([Listening], "must be an object with methods"),
        ([object()], "must be an object with methods"),
        ([Waiting()], "must not be a coroutine function"),
        ([named("batch_end")], "Mine has an unknown method batch_end of observers: did you mean batch_ended?"),
        (
            [named("throttled", "on_batch_ended")],
            "unknown method on_batch_ended of observers: did you mean batch",
        ),
    ],
)
def test_what_cannot_observe_is_refused(given: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Client("localhost:9092", observers=given)


def test_an_observer_may_have_other_methods() -> None:
    for name in ("batch_started", "connection_lost", "flush", "on_send", "records", "_batch_end"):
        Client("localhost:9092", observers=[named("throttled", name)])


# --- trouble -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(port=None) as broker:
        broker.create_topic("a")
        yield broker


@pytest.fixture
def troubles() -> Troubles:
    return Troubles()


@pytest.fixture
async def kafka(broker: Broker, troubles: Troubles) -> AsyncIterator[Client]:
    async with Client(broker.bootstrap, connector=broker.connect, observers=[troubles], **QUICK) as client:
        yield client


@pytest.mark.anyio
async def test_a_batch_that_fails_is_reported_with_its_error(broker: Broker, kafka: Client, troubles: Troubles) -> None:
    broker.on(ApiKey.PRODUCE, answer=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with kafka.producer() as producer:
        with pytest.raises(KafkaError) as failed:
            await producer.send("a", b"1")
    [batch] = troubles.of(BatchEnded)
    assert (type(batch.error), batch.offset, batch.attempts, batch.records) == (type(failed.value), None, 1, 1)


@pytest.mark.anyio
async def test_a_batch_that_is_sent_again_is_reported_once(broker: Broker, kafka: Client, troubles: Troubles) -> None:
    broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    async with kafka.producer() as producer:
        await producer.send("a", b"1")
    [batch] = troubles.of(BatchEnded)
    assert (batch.error, batch.offset, batch.attempts) == (None, 0, 3)


@pytest.mark.anyio
async def test_a_lost_connection_is_reported_with_its_request(
    broker: Broker, kafka: Client, troubles: Troubles
) -> None:
    broker.on(ApiKey.PRODUCE, drop="before")
    async with kafka.producer() as producer:
        await producer.send("a", b"1")
    [request] = troubles.of(RequestEnded)
    assert (request.api, request.received_bytes) == ("Produce", 0)
    closed = troubles.of(ConnectionClosed)[0]
    assert str(closed.error) == str(request.error)


@pytest.mark.anyio
async def test_a_broker_that_throttles_is_reported(broker: Broker, kafka: Client, troubles: Troubles) -> None:
    def throttle(request: Any, response: Any) -> Any:
        response.throttle_time_ms = 1
        return response

    broker.on(ApiKey.PRODUCE, answer=throttle)
    async with kafka.producer() as producer:
        await producer.send("a", b"1")
    [event] = troubles.of(Throttled)
    assert (event.api, event.seconds) == ("Produce", 0.001)


@pytest.mark.anyio
async def test_a_broker_that_cannot_be_reached_is_reported(troubles: Troubles) -> None:
    async with Broker(port=None) as broker:
        where, connect = broker.bootstrap, broker.connect
    with pytest.raises(KafkaError):
        async with Client(where, connector=connect, observers=[troubles], bootstrap_timeout_ms=50, **QUICK):
            raise AssertionError
    failed = troubles.of(ConnectionFailed)
    assert failed
    assert {(event.broker, event.lane) for event in failed} == {(where, "control")}


@pytest.mark.anyio
async def test_a_lost_membership_and_a_moved_coordinator_are_reported(
    broker: Broker, kafka: Client, troubles: Troubles
) -> None:
    options: Any = {"group_id": "g", "group_protocol": "classic", "heartbeat_interval_ms": 20}
    async with kafka.consumer("a", **options) as consumer:
        with anyio.fail_after(20):
            while not consumer.assignment:
                await consumer.poll(timeout=0.02)
            broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.NOT_COORDINATOR)
            broker.on(ApiKey.HEARTBEAT, answer=ErrorCode.UNKNOWN_MEMBER_ID)
            while not troubles.of(PartitionsLost):
                await consumer.poll(timeout=0.02)
    [lost] = troubles.of(PartitionsLost)
    assert (lost.group, [str(partition) for partition in lost.partitions]) == ("g", ["a-0"])
    assert "UnknownMemberId" in lost.reason
    assert [event.is_lost for event in troubles.of(CoordinatorChanged)] == [False, True, False]


@virtual_time
@pytest.mark.anyio
async def test_a_throttled_request_is_reported_with_its_times(broker: Broker) -> None:
    def throttle(request: Any, response: Any) -> Any:
        response.throttle_time_ms = 30
        return response

    ended = Ended()
    async with Client(broker.bootstrap, connector=broker.connect, observers=[ended], **QUICK) as kafka:
        broker.on(ApiKey.PRODUCE, answer=throttle)
        broker.on(ApiKey.LIST_TRANSACTIONS, answer=throttle)
        async with kafka.producer() as producer:
            await producer.send("a", b"1")
        await kafka.admin.list_transactions()
        await kafka.admin.list_transactions()
    [produced] = [one for one in ended.requests if one.api == "Produce"]
    first, second = [one for one in ended.requests if one.api == "ListTransactions"]
    assert (produced.throttle_seconds, first.throttle_seconds, second.throttle_seconds) == (0.03, 0.03, 0.0)
    assert first.queued_seconds == 0
    assert 0.02 < second.queued_seconds < 0.031  # the rest of the throttle time


class Ended(Observer):
    """Keeps the requests that have ended."""

    def __init__(self) -> None:
        self.requests: list[RequestEnded] = []

    def request_ended(self, event: RequestEnded) -> None:
        self.requests.append(event)
