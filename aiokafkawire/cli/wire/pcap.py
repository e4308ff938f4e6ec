"""Extracts TCP streams from captured packets, one for each direction of each connection."""

import struct
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import Final, NamedTuple

from ..exit_status import CommandFailed
from .streams import ByteStream

__all__ = ("packets_of_pcap", "streams_of")

_TCP: Final = 6
_SYN: Final = 2
_LINKS: Final = (0, 14, 16, 4, 20)
"""The sizes of link headers: no header, Ethernet, Linux's "any" device, BSD's loopback, version 2 of "any"."""

_PCAP: Final = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
}
"""The magic bytes of pcap files, and their byte order; the latter two have times in ns."""

_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"


class _Segment(NamedTuple):
    source: str
    target: str
    sequence: int
    syn: bool
    payload: bytes


def packets_of_pcap(data: bytes) -> list[bytes] | None:
    """Return a pcap file's packets, with link headers; None for other data. Raise CommandFailed for a pcapng file."""
    if data.startswith(_PCAPNG):
        raise CommandFailed("pcapng files are not supported: convert it first, with editcap -F pcap CAPTURE OUT")
    order = _PCAP.get(data[:4])
    if order is None:
        return None
    packets: list[bytes] = []
    position = 24
    while position + 16 <= len(data):
        (length,) = struct.unpack_from(f"{order}I", data, position + 8)
        packets.append(data[position + 16 : position + 16 + length])
        position += 16 + length
    return packets


def streams_of(packets: Iterable[bytes]) -> tuple[ByteStream, ...]:
    """Return the TCP streams in the packets, in order of appearance; ignore other packets.

    Retransmitted bytes are used once. Where bytes were not captured, a stream ends and another begins.
    """
    connections: dict[tuple[str, str, int], list[_Segment]] = {}
    opened: dict[tuple[str, str], int] = {}
    for packet in packets:
        segment = _segment(packet)
        if segment is None:
            continue
        direction = segment.source, segment.target
        if segment.syn:  # a new connection, perhaps with the ports of an earlier one
            opened[direction] = opened.get(direction, 0) + 1
        if segment.payload:
            connections.setdefault((*direction, opened.get(direction, 0)), []).append(segment)
    return tuple(
        stream
        for (source, target, number), segments in connections.items()
        for stream in _assembled(segments, source, f"{source} > {target}", f"{sorted((source, target))} {number}")
    )


def _assembled(segments: list[_Segment], source: str, label: str, connection: str) -> Iterator[ByteStream]:
    first = segments[0].sequence
    payloads = [((segment.sequence - first + 2**31) % 2**32 - 2**31, segment.payload) for segment in segments]
    data, begin, gap = bytearray(), 0, ""
    for at, payload in sorted(payloads, key=lambda pair: pair[0]):
        end = begin + len(data)
        if at > end:
            yield ByteStream(bytes(data), label + gap, connection, source)
            data, begin, gap = bytearray(payload), at, f", after {at - end} bytes that were not captured"
        elif at + len(payload) > end:
            data += payload[end - at :]
    yield ByteStream(bytes(data), label + gap, connection, source)


def _segment(packet: bytes) -> _Segment | None:
    for skipped in _LINKS:
        found = _segment_of_ip(packet[skipped:])
        if found is not None:
            return found
    return None


def _segment_of_ip(packet: bytes) -> _Segment | None:
    """Return the TCP segment of an IP packet; None if the bytes are no such packet or their lengths do not match."""
    if len(packet) >= 40 and packet[0] >> 4 == 4 and packet[9] == _TCP:
        (total,) = struct.unpack_from(">H", packet, 2)
        source, target, at = packet[12:16], packet[16:20], (packet[0] & 15) * 4
    elif len(packet) >= 60 and packet[0] >> 4 == 6 and packet[6] == _TCP:
        (length,) = struct.unpack_from(">H", packet, 4)
        source, target, at = packet[8:24], packet[24:40], 40
        total = length + 40 if length else 0
    else:
        return None
    # Ethernet pads short packets; segmentation offloading leaves a length of 0.
    if total and not (total == len(packet) or (total < len(packet) <= 46)):
        return None
    tcp = packet[at : total or len(packet)]
    if at < 20 or len(tcp) < 20 or not 20 <= (tcp[12] >> 4) * 4 <= len(tcp):
        return None
    from_port, to_port, sequence = struct.unpack_from(">HHI", tcp)
    return _Segment(
        f"{ip_address(source)}:{from_port}",
        f"{ip_address(target)}:{to_port}",
        sequence,
        bool(tcp[13] & _SYN),
        tcp[(tcp[12] >> 4) * 4 :],
    )
