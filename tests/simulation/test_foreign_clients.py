"""Other clients' members say what the clients themselves have said.

The bytes are what the clients have sent to the in-process broker, with one topic of three partitions, alone at first
and then with a second member: Java's consumer of Apache Kafka 4, librdkafka in confluent-kafka 2.16.1 and 2.0.2,
kafka-python 3.0.12 and 2.0.2, and aiokafka 0.14.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs
import pytest
from simulation.foreign_assignments import assignments
from simulation.foreign_clients import CLIENTS, COOPERATIVE, ForeignClient, Held, Part
from simulation.mixed import RELEASES
from support.rows import every_row

from aiokafkawire import TopicPartition
from aiokafkawire.group.consumer_protocol import Subscription, decode_assignment, decode_subscription
from aiokafkawire.protocol.messages.group import JoinGroupResponse, JoinGroupResponseMember

NEW = Held()
ALL = tuple(TopicPartition("t", number) for number in range(3))
EAGER = Held((), 1, ALL)
"""It has had all partitions, and has revoked them."""
KEPT = Held(ALL, 1, ALL)
"""It has all partitions."""
NONE = Held((), 2, ())
"""Its first assignment was empty."""

_TOPIC = "00000001000174"
_THREE = "0000000100017400000003000000000000000100000002"
_TWO = "000000020000000000000001"
_LAST = "0000000100000002"


@attrs.frozen
class Said:
    """A subscription that a client has sent."""

    client: str
    strategy: str
    held: Held
    hex: str


SAID = (
    Said("java", "range", NEW, f"0003{_TOPIC}ffffffff00000000ffffffffffff"),
    Said("java", "range", EAGER, f"0003{_TOPIC}ffffffff0000000000000001ffff"),
    Said("java", "sticky", NEW, f"0003{_TOPIC}ffffffff00000000ffffffffffff"),
    Said("java", "sticky", EAGER, f"0003{_TOPIC}0000001b{_THREE}000000010000000000000001ffff"),
    Said("java", COOPERATIVE, NEW, f"0003{_TOPIC}00000004ffffffff00000000ffffffffffff"),
    Said("java", COOPERATIVE, NONE, f"0003{_TOPIC}00000004000000020000000000000002ffff"),
    Said("librdkafka", "range", NEW, f"0003{_TOPIC}0000000000000000ffffffff0000"),
    Said("librdkafka", "range", EAGER, f"0003{_TOPIC}0000000000000000ffffffff0000"),
    Said("librdkafka", COOPERATIVE, NEW, f"0003{_TOPIC}0000000000000000ffffffff0000"),
    Said("librdkafka", COOPERATIVE, KEPT, f"0003{_TOPIC}0000001b{_THREE}00000001{_THREE}000000010000"),
    Said("librdkafka", COOPERATIVE, NONE, f"0003{_TOPIC}00000008000000000000000200000000000000020000"),
    Said("librdkafka-2.0", "range", NEW, f"0001{_TOPIC}0000000000000000"),
    Said("librdkafka-2.0", COOPERATIVE, KEPT, f"0001{_TOPIC}0000001b{_THREE}00000001{_THREE}"),
    Said("librdkafka-2.0", COOPERATIVE, NONE, f"0001{_TOPIC}00000008000000000000000200000000"),
    Said("kafka-python", "range", NEW, f"0000{_TOPIC}00000000"),
    Said("kafka-python-2.0", "range", NEW, f"0000{_TOPIC}00000000"),
    Said("aiokafka", "roundrobin", NEW, f"0000{_TOPIC}00000000"),
)


def client(name: str) -> ForeignClient:
    return next(one for one in CLIENTS if one.name == name)


@every_row("said", SAID)
def test_a_subscription_is_what_the_client_has_sent(said: Said) -> None:
    assert client(said.client).subscription(said.strategy, ["t"], said.held).hex() == said.hex


def test_kafka_go_says_version_1_and_has_no_owned_partitions() -> None:
    said = client("kafka-go").subscription("range", ["t"], NEW)
    assert said == b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff"
    assert decode_subscription(said) == Subscription(("t",))


def test_sarama_says_what_the_last_leader_has_told_it() -> None:
    told = client("sarama").assignment_user_data("sticky", Part(ALL, 1, None))
    assert told == bytes.fromhex(f"{_THREE}00000001")
    said = client("sarama").subscription("sticky", ["t"], Held((), 1, ALL, told))
    assert decode_subscription(said) == Subscription(("t",), told)


@pytest.mark.parametrize(
    ("name", "strategy", "first", "second"),
    [
        ("java", COOPERATIVE, f"0003{_TOPIC}{_TWO}ffffffff", "000300000000ffffffff"),
        ("librdkafka", "range", f"0000{_TOPIC}{_TWO}00000000", f"0000{_TOPIC}{_LAST}00000000"),
        ("kafka-python", "range", f"0000{_TOPIC}{_TWO}00000000", f"0000{_TOPIC}{_LAST}00000000"),
        ("aiokafka", "range", f"0000{_TOPIC}{_TWO}00000000", f"0000{_TOPIC}{_LAST}00000000"),
    ],
)
def test_a_leader_assigns_in_the_form_of_the_client(name: str, strategy: str, first: str, second: str) -> None:
    held = {"a": KEPT if strategy == COOPERATIVE else NEW, "b": NEW}
    assert {member: sent.hex() for member, sent in led(name, strategy, held).items()} == {"a": first, "b": second}


def test_librdkafka_sends_members_their_own_user_data_back() -> None:
    sent = led("librdkafka", COOPERATIVE, {"a": NEW, "b": NONE})
    assert decode_assignment(sent["a"]).user_data == b""
    assert decode_assignment(sent["b"]).user_data == bytes.fromhex("0000000000000002")


def test_sarama_leaves_out_members_without_partitions() -> None:
    assert list(led("sarama", "range", dict.fromkeys("abcd", NEW))) == ["a", "b", "c"]


def led(name: str, strategy: str, held: Mapping[str, Held]) -> dict[str, bytes]:
    """Return what a member of this client assigns to members of the same client."""
    leader = client(name)
    members = [
        JoinGroupResponseMember(member_id=member, metadata=leader.subscription(strategy, ["t"], had))
        for member, had in held.items()
    ]
    joined = JoinGroupResponse(
        error_code=0, generation_id=2, protocol_name=strategy, leader="a", member_id="a", members=members
    )
    return {part.member_id: bytes(part.assignment) for part in assignments(leader, joined, ALL, Random(0))}


@every_row("name", [one.name for one in CLIENTS])
def test_some_brokers_serve_each_client(name: str) -> None:
    assert any(client(name).is_served_by(release) for release in RELEASES)
