"""What a broker is told when it is made, and what it says to what cannot be."""

import inspect
import re
import ssl
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from aiokafkawire.testing.broker import ApiError, Broker
from aiokafkawire.testing.broker_options import BrokerArguments, SimulatedArguments
from aiokafkawire.testing.cluster.state import Settings


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"nodes": 0}, "nodes is 0: it must be an integer of 1 or more"),
        ({"nodes": "3"}, "nodes is '3': it must be an integer"),
        ({"nodes": True}, "nodes is True"),
        ({"nodes": 2, "racks": ["a"]}, "2 brokers with 1 racks: a rack for each"),
        ({"nodes": 2, "default_replication_factor": 3}, "default_replication_factor is 3: from 1 to 2"),
        ({"default_replication_factor": 0}, "default_replication_factor is 0: from 1 to 1"),
        ({"port": 65_536}, "port is 65536: from 1 to 65535, 0 for any free port, or None for no port"),
        ({"port": -1}, "port is -1"),
        ({"port": "9092"}, "port is '9092'"),
        ({"nodes": 2, "port": 65_535}, "2 brokers from port 65535 on: the first port is 65534 at most"),
        ({"tls": True}, "tls is True: an ssl.SSLContext, or None"),
        ({"port": None, "tls": ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)}, "tls needs a TCP port"),
        ({"replica_selector_class": "RackAware"}, "replica_selector_class is 'RackAware': 'org.apache.kafka.common."),
        ({"max_versions": 2.4}, 'max_versions is 2.4: a release of Apache Kafka as a string, such as "2.4"'),
        ({"max_versions": "9.9"}, "unknown release '9.9' of Apache Kafka; known: 0.8.0 to 4.4"),
        ({"sasl_enabled_mechanisms": ["GSSAPI"]}, "unknown SASL mechanism GSSAPI; known: PLAIN, SCRAM-SHA-256"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        Broker(**arguments)


def test_the_last_port_will_do() -> None:
    assert Broker(2, port=65_534).bootstrap == "127.0.0.1:65534,127.0.0.1:65535"


def test_the_types_for_passing_arguments_on_are_those_of_the_broker() -> None:
    taken = get_type_hints(Broker.__init__)
    del taken["return"], taken["nodes"]
    assert get_type_hints(BrokerArguments) == taken
    assert set(taken) - set(get_type_hints(SimulatedArguments)) == {
        "host", "port", "advertised_host", "tls", "clock", "new_uuid"
    }  # fmt: skip


def test_settings_have_kafkas_names_and_defaults() -> None:
    settings = Settings()
    given = {
        name: parameter.default
        for name, parameter in inspect.signature(Broker.__init__).parameters.items()
        if hasattr(settings, name)
    }
    ours = {"default_replication_factor", "group_initial_rebalance_delay_ms", "sasl_enabled_mechanisms"}
    assert len(given) >= 16
    assert {name: value for name, value in given.items() if name not in ours} == {
        name: getattr(settings, name) for name in given if name not in ours
    }


@pytest.mark.anyio
async def test_what_there_is_none_of_says_what_there_is() -> None:
    broker = Broker(3, port=None, default_replication_factor=1)
    broker.create_topic("t", partitions=2)
    broker.create_topic("u")
    asks: list[Callable[[], object]] = [
        lambda: broker.delete_topic("v"),
        lambda: broker.compact("v"),
        lambda: broker.apply_retention("v"),
        lambda: broker.log("v"),
        lambda: broker.leader("v"),
        lambda: broker.isr("v"),
        lambda: broker.move_leader("v", 0, 1),
        lambda: broker.hold_replica("v", 0, 1),
        lambda: broker.shrink_isr("v", 0, 1),
    ]
    for ask in asks:
        with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION: no topic 'v'; known: t, u"):
            ask()
    with pytest.raises(ApiError, match="no partition t-2: t has 2"):
        broker.leader("t", 2)
    steers: list[Callable[[], object]] = [
        lambda: broker.move_leader("t", 0, 7),
        lambda: broker.move_coordinator("g", 7),
        lambda: broker.move_transaction_coordinator("x", 7),
        lambda: broker.hold_replica("t", 0, 7),
        lambda: broker.fence_node(7),
    ]
    for steer in steers:
        with pytest.raises(KeyError, match="no broker 7; known: 1, 2, 3"):
            steer()
    with pytest.raises(KeyError, match="no broker 7; known: 1, 2, 3"):
        broker.attend(7, None, "nobody")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no broker 7; known: 1, 2, 3"):
        await broker.refuse_connections(7)


def test_who_cannot_lead_is_told_why() -> None:
    broker = Broker(3, port=None, default_replication_factor=2)
    broker.create_topic("t")
    with pytest.raises(ApiError, match="broker 3 cannot lead t-0: the replicas are on 1, 2"):
        broker.move_leader("t", 0, 3)
    broker.shrink_isr("t", 0, 2)
    with pytest.raises(ApiError, match=r"broker 2 cannot lead t-0: it is not in sync .*; in sync: 1"):
        broker.move_leader("t", 0, 2)
    broker.fence_node(2)
    with pytest.raises(ApiError, match="broker 2 cannot lead t-0: it is down"):
        broker.move_leader("t", 0, 2)
