"""The broker on a thread does what docs/broker.md says of a broker: orders, holds, the journal, steering."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal
from support.patience import SOON

from aiokafkawire import blocking
from aiokafkawire.errors import ErrorCode, NotLeaderOrFollower
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing.background import BackgroundBroker
from aiokafkawire.testing.broker import ApiError, Broker


def test_it_takes_orders(kafka_broker: BackgroundBroker) -> None:
    kafka_broker.create_topic("t")
    order = kafka_broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic="t", times=2)
    assert (order.count, order.is_met) == (0, False)
    with blocking.Client(kafka_broker.bootstrap, retry_backoff_ms=1) as kafka, kafka.producer() as producer:
        assert producer.send("t", b"1").offset == 0
        order.met(timeout=SOON)
        assert (order.count, order.is_met) == (2, True)
        never = kafka_broker.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=None)
        never.remove()
        assert producer.send("t", b"2").offset == 1
    assert never.count == 0
    with pytest.raises(TimeoutError):
        never.met(timeout=0.01)
    assert len(kafka_broker.requests.of(ApiKey.PRODUCE, topic="t")) == 4
    assert len(kafka_broker.requests.wait_for(ApiKey.PRODUCE, 4, timeout=SOON)) == 4
    assert NotLeaderOrFollower.retriable


def test_it_holds_requests(kafka_broker: BackgroundBroker) -> None:
    kafka_broker.create_topic("t")
    with (
        blocking.Client(kafka_broker.bootstrap) as kafka,
        kafka.producer() as producer,
        ThreadPoolExecutor(1) as pool,
        kafka_broker.hold(ApiKey.PRODUCE) as held,
    ):
        sent = pool.submit(producer.send, "t", b"1")
        assert held.arrived(timeout=SOON).api is ApiKey.PRODUCE
        assert (len(held.waiting), len(held.requests), sent.done()) == (1, 1, False)
        held.release()
        assert sent.result(5).offset == 0


def test_it_is_steered() -> None:
    with BackgroundBroker(nodes=3) as broker:
        broker.create_topic("t", configs={"cleanup.policy": "compact"})
        first = broker.leader("t")
        other = next(node for node in broker.isr("t") if node != first)
        broker.move_leader("t", 0, other)
        assert broker.leader("t") == other
        broker.stop_node(other)
        assert broker.leader("t") != other
        broker.start_node(other)
        broker.freeze_node(other)
        broker.clear_orders()
        broker.compact("t")
        assert list(broker.log("t").batches()) == []
        assert [str(one.log.topic) for one in broker.partitions] == ["t"]
        broker.delete_topic("t")
        with pytest.raises(ApiError, match="no topic 't'"):
            broker.leader("t")
        with pytest.raises(TypeError, match="a broker's id must be an integer, got '1'"):
            broker.stop_node("1")  # type: ignore[arg-type]
        assert broker.faults == []


class Interrupted(BaseException):
    """What a signal handler raises, as Ctrl-C or the time limit of a test does."""


def test_a_call_that_is_interrupted_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the context would wait for it at its end, in the teardown of a fixture for ever."""
    began, ended = threading.Event(), threading.Event()

    async def wait_for_ever(_: Broker) -> None:
        try:
            began.set()
            await anyio.sleep_forever()
        finally:
            ended.set()

    call = BlockingPortal.call

    def interrupted(portal: BlockingPortal, function: Callable[..., Any], *args: Any) -> Any:
        """Call the function; the caller is interrupted when it has begun."""
        if function.__name__ != "call":
            return call(portal, function, *args)
        threads.submit(call, portal, function)
        assert began.wait(SOON)
        raise Interrupted

    with ThreadPoolExecutor() as threads, BackgroundBroker() as broker:
        with monkeypatch.context() as patch:
            patch.setattr(BlockingPortal, "call", interrupted)
            with pytest.raises(Interrupted):
                broker.do(wait_for_ever)
        assert ended.wait(SOON)
        assert broker.do(lambda one: one.node_ids) == [1]


def test_it_has_whatever_a_broker_has() -> None:
    on_its_own_loop = {"attend", "connect", "orders"}
    wanted = {name for name in dir(Broker) if not name.startswith("_")} - on_its_own_loop
    assert wanted - {name for name in dir(BackgroundBroker) if not name.startswith("_")} - {"faults"} == set()
    for name in wanted:
        theirs: Any = getattr(Broker, name, None)
        ours: Any = getattr(BackgroundBroker, name)
        if isinstance(theirs, Callable) and name not in ("create_topic",):  # type: ignore[arg-type]
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name
