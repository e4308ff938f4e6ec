"""Where the in-process broker says that it is."""

import socket

import pytest

from aiokafkawire import Client
from aiokafkawire.testing.broker import Broker

pytestmark = pytest.mark.anyio


async def test_clients_go_to_the_advertised_host() -> None:
    async with Broker(host="0.0.0.0", advertised_host="localhost") as broker:
        assert broker.bootstrap.startswith("localhost:")
        async with Client(broker.bootstrap) as kafka, kafka.producer() as producer:
            broker.create_topic("flights")
            assert (await producer.send("flights", b"")).offset == 0


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 on this machine")
async def test_an_ipv6_address_is_bracketed() -> None:
    try:
        async with Broker(host="::1") as broker:
            assert broker.bootstrap.startswith("[::1]:")
            async with Client(broker.bootstrap) as kafka:
                assert await kafka.admin.list_topics() == ()
    except OSError as error:
        pytest.skip(f"no IPv6 on this machine: {error}")
