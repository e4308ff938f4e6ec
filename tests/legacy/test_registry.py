"""What 0.7 keeps in ZooKeeper, and who reads what, held to what a real cluster and real consumers did."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.legacy_vectors import moments

from aiokafkawire.errors import UsageError, WireError
from aiokafkawire.legacy.rebalance import assign, decide
from aiokafkawire.legacy.registry import (
    BROKERS,
    TOPICS,
    BrokerPartition,
    GroupPaths,
    LegacySubscription,
    check_segment,
    parse_broker,
    parse_count,
    parse_offset,
    parse_subscription,
)
from aiokafkawire.types import Address

MOMENTS = moments()


def under(nodes: dict[str, dict[str, Any]], path: str) -> dict[str, bytes]:
    """The children of a node, by name."""
    return {
        name.rpartition("/")[2]: node["value"].encode()
        for name, node in nodes.items()
        if name.rpartition("/")[0] == path and node["value"] is not None
    }


def topics_at(moment: str) -> dict[str, dict[int, int]]:
    """What brokers had registered; some moments were taken of groups alone, while nothing changed there."""
    found: dict[str, dict[int, int]] = {}
    for name, nodes in MOMENTS.items():
        seen = {int(broker): parse_count(data, broker) for broker, data in under(nodes, f"{TOPICS}/zt").items()}
        if seen:
            found = {"zt": seen}
        if name == moment:
            break
    return found


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("group", ["grp", "wild"])
def test_owners_are_those_that_the_rule_names(moment: str, group: str) -> None:
    nodes, paths = MOMENTS[moment], GroupPaths(group)
    members = {name: parse_subscription(data, name) for name, data in under(nodes, paths.ids).items()}
    decided: dict[str, str] = {}
    for member in members:
        found = decide(member, members, topics_at(moment))
        decided |= {f"{topic}/{place}": thread for (topic, place), thread in found.items()}
    recorded = {f"zt/{place}": thread.decode() for place, thread in under(nodes, paths.owners("zt")).items()}
    assert decided == recorded
    assert bool(members) == bool(recorded)


def test_the_moments_hold_groups() -> None:
    sizes = [len(under(nodes, GroupPaths("grp").owners("zt"))) for nodes in MOMENTS.values()]
    assert sizes == [0, 0, 4, 4, 4, 4, 4, 4, 6, 0, 4, 0]
    assert len(under(MOMENTS["10 ConsoleConsumer --whitelist z.* of group wild"], GroupPaths("wild").owners("zt"))) == 6


def read_as_what_it_is(path: str, value: str | None) -> object:
    """What a node says; its path says what kind it is of. Nodes between others say nothing."""
    data = None if value is None else value.encode()
    match path.split("/")[1:]:
        case ["brokers", "ids", _]:
            return parse_broker(data, path)
        case ["brokers", "topics", _, _]:
            return parse_count(data, path)
        case ["consumers", group, "ids", member]:
            assert path == GroupPaths(group).member(member)
            return parse_subscription(data, path)
        case ["consumers", group, ("owners" | "offsets") as kind, topic, place]:
            where = BrokerPartition(*map(int, place.split("-")))
            assert path == (GroupPaths(group).owner if kind == "owners" else GroupPaths(group).offset)(topic, where)
            return parse_offset(data, path) if kind == "offsets" else (data or b"").decode()
    assert not data
    return None


def test_every_node_that_was_recorded_is_read() -> None:
    found = [
        (path, read_as_what_it_is(path, node["value"]), node)
        for nodes in MOMENTS.values()
        for path, node in nodes.items()
    ]
    assert len(found) == 237
    said = [(path, value, node) for path, value, node in found if value is not None]
    assert len(said) == 6 + 5 + 14 + 60 + 40
    lasting = {path.split("/")[3] for path, _, node in said if not node["ephemeral"]}
    assert lasting == {"offsets"}, "all else goes with a session"
    assert all(isinstance(value, Address) for path, value, _ in said if path.startswith(BROKERS))
    owners = {value.rpartition("-")[0] for path, value, _ in said if "/owners/" in path and isinstance(value, str)}
    members = {path.rpartition("/")[2] for path, _, _ in said if "/ids/" in path and path.startswith("/consumers")}
    assert owners == members


def test_members_are_written_as_javas_are() -> None:
    for nodes in MOMENTS.values():
        for group in ("grp", "wild"):
            for name, data in under(nodes, GroupPaths(group).ids).items():
                assert parse_subscription(data, name).encode() == data
    assert LegacySubscription({"a": 1, "b": 2}).encode() == b'{ "a": 1, "b": 2 }'
    assert LegacySubscription(pattern="x.*", streams=3, allow=False).encode() == b"!3!x.*"


def test_brokers_and_offsets_are_read() -> None:
    nodes = MOMENTS["9 broker 1 joined with 2 partitions of zt: c1 owns 6"]
    brokers = {name: parse_broker(data, name) for name, data in under(nodes, BROKERS).items()}
    assert brokers == {"0": Address("127.0.0.1", 27094), "1": Address("127.0.0.1", 27095)}
    offsets = {name: parse_offset(data, name) for name, data in under(nodes, GroupPaths("grp").offsets("zt")).items()}
    assert offsets == {"0-0": 32, "0-1": 32, "0-2": 32, "0-3": 32, "1-0": 21, "1-1": 0}


def test_partitions_are_sorted_as_strings_and_extras_go_to_the_first() -> None:
    places = [BrokerPartition(0, number) for number in range(11)]
    found = assign(places, ["b", "a"])
    assert [str(place) for place, thread in found.items() if thread == "a"] == [
        "0-0",
        "0-1",
        "0-10",
        "0-2",
        "0-3",
        "0-4",
    ]
    assert assign(places, []) == {}
    assert assign([], ["a"]) == {}


@given(st.integers(0, 20), st.sets(st.text("abc", min_size=1, max_size=3), min_size=1))
def test_every_partition_has_one_reader_and_shares_are_even(count: int, threads: set[str]) -> None:
    found = assign([BrokerPartition(number % 3, number) for number in range(count)], threads)
    assert len(found) == count
    shares = [list(found.values()).count(thread) for thread in sorted(threads)]
    assert max(shares) - min(shares) <= 1
    assert shares == sorted(shares, reverse=True)


def test_streams_of_one_member_and_topics_of_others() -> None:
    members = {
        "g_a": LegacySubscription({"t": 2, "u": 1}),
        "g_b": LegacySubscription(pattern="t|v"),
        "g_c": LegacySubscription(pattern="t", allow=False),
    }
    topics = {"t": {0: 3}, "u": {0: 1}, "v": {1: 1}}
    assert decide("g_a", members, topics) == {
        ("t", BrokerPartition(0, 0)): "g_a-0",
        ("t", BrokerPartition(0, 1)): "g_a-1",
        ("u", BrokerPartition(0, 0)): "g_a-0",
    }
    assert decide("g_b", members, topics) == {("t", (0, 2)): "g_b-0", ("v", (1, 0)): "g_b-0"}
    assert decide("g_c", members, topics) == {}
    assert decide("nobody", members, topics) == {}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"[1]", b'{"t": "x"}', b'{"t": -1}', b'{"t": true}', b"*1!x", b"*1*(", b"\xff", None),
        *(b"[" * 100_000, b"*1*a{%d}" % 10**30, b"*1*" + b"(" * 20_000 + b")" * 20_000, b'{"t": %s}' % (b"9" * 5_000)),
    ],
    ids=lambda data: repr(data)[:20],
)
def test_a_subscription_that_is_none_is_told(data: bytes | None) -> None:
    with pytest.raises(WireError, match=r"^/x holds"):
        parse_subscription(data, "/x")


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"host:9092", b"creator:host:x", b"creator::9092", None, b"creator:host:0", b"creator:host:65536"),
        *(b"creator:host:" + b"9" * 5_000, "creator:host:\u0661".encode()),
    ],
    ids=lambda data: repr(data)[:20],
)
def test_a_broker_that_is_none_is_told(data: bytes | None) -> None:
    with pytest.raises(WireError, match="not a broker's creator:host:port"):
        parse_broker(data, "/x")


@pytest.mark.parametrize("data", [b"", b"-", b"--1", b"x", b"1 ", "\u0661".encode(), b"9" * 19, b"9" * 30, None])
def test_a_number_that_is_none_is_told(data: bytes | None) -> None:
    with pytest.raises(WireError, match="not an offset"):
        parse_offset(data, "/x")
    with pytest.raises(WireError, match="not a number of partitions"):
        parse_count(data, "/x")


def test_an_offset_below_0_is_one_a_number_of_partitions_is_not() -> None:
    assert (parse_offset(b"-1", "/x"), parse_offset(b"%d" % -(2**63), "/x")) == (-1, -(2**63))
    with pytest.raises(WireError, match="not an offset"):
        parse_offset(b"%d" % (-(2**63) - 1), "/x")
    with pytest.raises(WireError, match="not a number of partitions"):
        parse_count(b"-1", "/x")


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "a\0"])
def test_names_that_are_no_part_of_a_path_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="the group has to be a name without slashes"):
        check_segment("the group", name)
