"""A tap for tests without an event loop."""

from __future__ import annotations

import pytest

from aiokafkawire.blocking import Client
from aiokafkawire.protocol.api import ApiKey
from aiokafkawire.testing import BackgroundBroker, BackgroundTap, ErrorCode, RequestOutcome


def test_orders_and_the_log_without_an_event_loop() -> None:
    with BackgroundBroker(2) as broker, BackgroundTap(broker.bootstrap.partition(",")[0]) as tap:
        broker.create_topic("t")
        refused = tap.on(ApiKey.PRODUCE, answer=ErrorCode.NOT_LEADER_OR_FOLLOWER, topic="t")
        lost = tap.on(ApiKey.PRODUCE, drop="after")
        with Client(tap.bootstrap) as kafka, kafka.producer() as producer:
            producer.send("t", b"v")
        refused.met()
        lost.met()
        assert set(tap.nodes) == {1, 2}
        outcomes = [asked.outcome for asked in tap.requests.wait_for(ApiKey.PRODUCE, 3)]
        assert outcomes == [RequestOutcome.ANSWERED, RequestOutcome.DROPPED, RequestOutcome.ANSWERED]
        assert broker.log("t").log_end_offset == 1
        assert tap.faults == []
        for node in tap.nodes:
            tap.freeze_node(node)
            tap.refuse_connections(node)
        tap.clear_orders()
        for node in tap.nodes:
            tap.accept_connections(node)
        with Client(tap.bootstrap) as kafka:
            assert kafka.admin.list_topics() == ("t",)


def test_it_is_open_in_its_context_alone() -> None:
    tap = BackgroundTap("127.0.0.1:1")
    with pytest.raises(RuntimeError, match="not open"):
        _ = tap.nodes
    with tap, pytest.raises(RuntimeError, match="open already"):
        tap.__enter__()
    with pytest.raises(RuntimeError, match="not open"):
        tap.on(ApiKey.PRODUCE, cut=True)
