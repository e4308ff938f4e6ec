"""The emulated link decides about packets by its rules, and nothing else; and a reset is what TCP accepts."""

from __future__ import annotations

import struct
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks.network_faults.link import Crossing, Direction, Link, Rules, rules_of
from benchmarks.network_faults.packets import End, checksum, parse, reset_for

CLIENT, BROKER = End("10.66.1.1", 40_000), End("10.66.0.1", 9_092)
SYN, ACK, RST = 0x02, 0x10, 0x04


def tcp(source: End, target: End, flags: int = ACK, size: int = 0, sequence: int = 7, acknowledged: int = 9) -> bytes:
    ends = ip_address(source.address).packed, ip_address(target.address).packed
    head = struct.pack(">HHIIBBHHH", source.port, target.port, sequence, acknowledged, 5 << 4, flags, 100, 0, 0)
    payload = head + bytes(size)
    if ":" in source.address:
        return struct.pack(">IHBB16s16s", 6 << 28, len(payload), 6, 64, *ends) + payload
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 6, 0, *ends) + payload


SENT, OPENING, BACK = tcp(CLIENT, BROKER), tcp(CLIENT, BROKER, SYN), tcp(BROKER, CLIENT)


def offered(
    link: Link, count: int, data: bytes = SENT, direction: Direction = "to_brokers", every: float = 0.0
) -> list[float | None]:
    """When each of many packets arrives, or None."""
    found = [link.offer(direction, data, number * every) for number in range(count)]
    return [one[0].at if one else None for one in found]


def test_without_rules_everything_passes_at_once() -> None:
    link = Link()
    assert link.offer("to_brokers", SENT, 5.0) == [Crossing(5.0, "to_brokers", SENT)]
    assert link.offer("to_clients", b"\x60 no packet", 5.0) == [Crossing(5.0, "to_clients", b"\x60 no packet")]


@pytest.mark.parametrize("loss", [0.01, 0.3])
def test_the_share_that_is_wanted_is_lost_by_the_seed(loss: float) -> None:
    def lost(seed: int) -> list[float | None]:
        return offered(Link(seed, Rules(loss=loss)), 10_000)

    assert abs(lost(1).count(None) / 10_000 - loss) < 0.02
    assert lost(1) == lost(1) != lost(2)


def test_a_delay_that_varies_keeps_the_order() -> None:
    times = [at for at in offered(Link(rules=Rules(delay=0.2, jitter=0.05)), 1_000, every=0.001) if at is not None]
    assert times == sorted(times)
    assert 0.15 <= times[0] <= 0.25
    assert 0.15 <= times[-1] - 0.999 <= 0.26


def test_reordered_packets_are_overtaken() -> None:
    times = [at or 0 for at in offered(Link(rules=Rules(reordered=0.25, reordering=0.02)), 1_000, every=0.001)]
    held = [number for number, at in enumerate(times) if at > number * 0.001]
    assert 200 < len(held) < 300
    assert times[held[0]] > times[held[0] + 1]


def test_a_rate_delays_and_its_queue_overflows() -> None:
    packet = tcp(CLIENT, BROKER, size=960)  # 1,000 bytes
    times = offered(Link(rules=Rules(bits_per_second=8_000, queue=3_000)), 5, packet)
    assert times == [1.0, 2.0, 3.0, None, None]
    assert offered(Link(rules=Rules(bits_per_second=8_000, queue=3_000)), 3, packet, every=10) == [1.0, 11.0, 21.0]


def test_each_direction_has_its_own_rate() -> None:
    link = Link(rules=Rules(bits_per_second=8_000))
    assert offered(link, 1, direction="to_brokers") == offered(link, 1, direction="to_clients")


def test_other_rules_do_not_wait_for_packets_of_the_former() -> None:
    link = Link(rules=Rules(bits_per_second=80))
    offered(link, 10)
    link.change(Rules())
    assert offered(link, 1) == [0.0]


def test_large_packets_vanish() -> None:
    link = Link(rules=Rules(largest=700))
    assert offered(link, 1, tcp(CLIENT, BROKER, size=660)) == [0.0]
    assert offered(link, 1, tcp(CLIENT, BROKER, size=661)) == [None]


def test_one_direction_may_be_blocked() -> None:
    link = Link(rules=Rules(blocked=("to_brokers",)))
    assert (link.offer("to_brokers", SENT, 0.0), len(link.offer("to_clients", BACK, 0.0))) == ([], 1)


def test_an_address_may_be_gone() -> None:
    link = Link(rules=Rules(gone=(BROKER.address,)))
    assert (link.offer("to_brokers", SENT, 0.0), link.offer("to_clients", BACK, 0.0)) == ([], [])
    assert link.offer("to_brokers", tcp(CLIENT, End("10.66.0.2", 9_092)), 0.0)


def test_connections_that_are_not_known_are_dropped_until_they_are_opened() -> None:
    link = Link(rules=Rules(unknown="drop"))
    assert (link.offer("to_brokers", SENT, 0.0), link.offer("to_clients", BACK, 0.0)) == ([], [])
    for direction, data in (("to_brokers", OPENING), ("to_clients", BACK), ("to_brokers", SENT)):
        assert len(link.offer(direction, data, 0.0)) == 1  # type: ignore[arg-type]


def test_the_other_side_opens_nothing() -> None:
    link = Link(rules=Rules(unknown="drop"))
    assert link.offer("to_clients", tcp(BROKER, CLIENT, SYN), 0.0) == []


def test_what_was_opened_before_the_rule_is_known_until_it_is_forgotten() -> None:
    link = Link()
    link.offer("to_brokers", OPENING, 0.0)
    link.change(Rules(unknown="drop"))
    assert link.offer("to_brokers", SENT, 1.0)
    link.forget()
    assert not link.offer("to_brokers", SENT, 2.0)


def test_an_idle_connection_is_forgotten() -> None:
    link = Link(rules=Rules(unknown="drop", forgets_after=5.0))
    link.offer("to_brokers", OPENING, 0.0)
    assert link.offer("to_clients", BACK, 4.0)
    assert link.offer("to_brokers", SENT, 8.0)
    assert not link.offer("to_clients", BACK, 13.0)
    assert not link.offer("to_brokers", SENT, 13.5)


@pytest.mark.parametrize(("client", "broker"), [(CLIENT, BROKER), (End("fd66:1::1", 40_000), End("fd66::1", 9_092))])
def test_a_reset_goes_back_to_the_sender_with_the_numbers_that_it_expects(client: End, broker: End) -> None:
    link = Link(rules=Rules(unknown="reset"))
    ((_, direction, data),) = link.offer("to_brokers", tcp(client, broker, sequence=7, acknowledged=9), 0.0)
    head = parse(data)
    assert head is not None
    assert (direction, head.source, head.target, head.is_reset) == ("to_clients", broker, client, True)
    start = len(data) - 20
    sequence, _, _, flags = struct.unpack_from(">IIBB", data, start + 4)
    assert (sequence, flags) == (9, RST)
    addresses = data[12:20] if start == 20 else data[8:40]
    assert checksum(addresses + struct.pack(">IHBB", 20, 0, 0, 6) + data[start:]) == 0
    assert start == 40 or checksum(data[:20]) == 0


def test_a_segment_without_acknowledgement_is_acknowledged_by_its_reset() -> None:
    data = reset_for(tcp(CLIENT, BROKER, SYN, sequence=7))
    assert data is not None
    assert struct.unpack_from(">IIBB", data, 24)[:2] == (0, 8)
    assert data[33] == RST | ACK


def test_a_reset_is_not_answered() -> None:
    assert reset_for(tcp(CLIENT, BROKER, RST)) is None
    assert reset_for(b"\x45 short") is None
    assert Link(rules=Rules(unknown="reset")).offer("to_brokers", tcp(CLIENT, BROKER, RST), 0.0) == []


@pytest.mark.parametrize("data", [b"", b"\x45", SENT[:30], b"\x60" + bytes(39), b"\x00" * 60])
def test_what_is_no_tcp_or_udp_has_no_ends(data: bytes) -> None:
    assert parse(data) is None


def test_rules_travel_as_json() -> None:
    rules = Rules(loss=0.3, blocked=("to_clients",), gone=("10.66.0.1",))
    assert rules.as_json() == {"loss": 0.3, "blocked": ("to_clients",), "gone": ("10.66.0.1",)}
    assert rules_of({"loss": 0.3, "blocked": ["to_clients"], "gone": ["10.66.0.1"]}) == rules
    assert rules_of({}) == Rules()
