"""Packets that tools for captures understand."""

from __future__ import annotations

from struct import unpack

import pytest

from aiokafkawire.cli.wire.pcap import packets_of_pcap, streams_of
from aiokafkawire.testing.tap.pcap_packets import FILE_HEADER, CapturedConnection, packet_record
from aiokafkawire.types import Address

ENDS = [
    (Address("127.0.0.1", 50000), Address("127.0.0.1", 9092)),
    (Address("::1", 50000), Address("::1", 9092)),
    (Address("fe80::1%eth0", 50000), Address("fe80::2%eth0", 9092)),
]


def ones_complement(data: bytes) -> int:
    """The sum of 16-bit numbers as RFC 1071 adds them, one by one."""
    total = 0
    for (number,) in (unpack(">H", (data + b"\0")[at : at + 2]) for at in range(0, len(data), 2)):
        total += number
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize(("client", "server"), ENDS)
def test_the_streams_are_those_that_were_sent(client: Address, server: Address) -> None:
    captured = CapturedConnection(client, server)
    large = bytes(range(256)) * 500
    packets = [
        *captured.opening(),
        *captured.sent(b"request", by_client=True),
        *captured.sent(large, by_client=False),
        *captured.sent(b"more", by_client=True),
        *captured.closing(by_client=False),
    ]
    data = FILE_HEADER + b"".join(packet_record(packet, 1_700_000_000.25) for packet in packets)
    read = packets_of_pcap(data)
    assert read == packets
    assert [stream.data for stream in streams_of(read)] == [b"requestmore", large]


def test_one_pair_of_ports_may_be_used_again() -> None:
    packets = []
    for text in (b"first", b"second"):
        captured = CapturedConnection(*ENDS[0])
        packets += [*captured.opening(), *captured.sent(text, by_client=True), *captured.closing(by_client=True)]
    assert [stream.data for stream in streams_of(packets)] == [b"first", b"second"]


@pytest.mark.parametrize("payload", [b"", b"x", b"xy", b"\xff" * 7, b"\0" * 6])
@pytest.mark.parametrize(("client", "server"), ENDS)
def test_checksums_and_lengths_are_right(client: Address, server: Address, payload: bytes) -> None:
    captured = CapturedConnection(client, server)
    for packet in [*captured.opening(), *captured.sent(payload, by_client=True)]:
        if packet[0] >> 4 == 4:
            assert ones_complement(packet[:20]) == 0xFFFF
            assert int.from_bytes(packet[2:4]) == len(packet)
            addresses, segment = packet[12:20], packet[20:]
        else:
            assert int.from_bytes(packet[4:6]) == len(packet) - 40
            addresses, segment = packet[8:40], packet[40:]
        assert ones_complement(addresses + len(segment).to_bytes(4) + (6).to_bytes(4) + segment) == 0xFFFF


def test_times_are_in_microseconds() -> None:
    assert packet_record(b"abc", 12.000345)[:8] == (12).to_bytes(4, "little") + (345).to_bytes(4, "little")
