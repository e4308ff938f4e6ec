"""The head of an IP packet: its flow, and whether it opens one; and the packet that resets a connection."""

import struct
from ipaddress import ip_address
from typing import Final, NamedTuple

_TCP: Final = 6
_UDP: Final = 17
_FIN, _SYN, _RST, _ACK = 0x01, 0x02, 0x04, 0x10
_V4_HEADER, _V6_HEADER, _TCP_HEADER = 20, 40, 20


class End(NamedTuple):
    """One end of a flow."""

    address: str
    port: int


class Packet(NamedTuple):
    """The head of a packet."""

    source: End
    target: End
    is_tcp: bool
    opens: bool
    """Whether it is the first packet of a TCP connection."""
    is_reset: bool


def parse(data: bytes) -> Packet | None:
    """Return the head of an IPv4 or IPv6 packet with TCP or UDP; None for any other packet."""
    found = _payload(data)
    if found is None:
        return None
    protocol, source, target, start = found
    if protocol not in (_TCP, _UDP) or len(data) < start + (_TCP_HEADER if protocol == _TCP else 8):
        return None
    from_port, to_port = struct.unpack_from(">HH", data, start)
    flags = data[start + 13] if protocol == _TCP else 0
    opens = bool(flags & _SYN) and not flags & _ACK
    ends = End(str(ip_address(source)), from_port), End(str(ip_address(target)), to_port)
    return Packet(*ends, protocol == _TCP, opens, bool(flags & _RST))


def reset_for(data: bytes) -> bytes | None:
    """Return the packet that resets the connection of a TCP packet, for its sender; None if it needs none."""
    found = _payload(data)
    if found is None or found[0] != _TCP:
        return None
    _, source, target, start = found
    ports, sequence, acknowledged, offset, flags = struct.unpack_from(">4sIIBB", data, start)
    if flags & _RST:
        return None
    if flags & _ACK:
        numbers = (acknowledged, 0, _RST)
    else:
        taken = len(data) - start - (offset >> 4) * 4 + bool(flags & _SYN) + bool(flags & _FIN)
        numbers = (0, (sequence + taken) & 0xFFFFFFFF, _RST | _ACK)
    head = struct.pack(">4sIIBBHHH", ports[2:] + ports[:2], *numbers[:2], 5 << 4, numbers[2], 0, 0, 0)
    pseudo = target + source + struct.pack(">IHBB", len(head), 0, 0, _TCP)
    head = head[:16] + struct.pack(">H", checksum(pseudo + head)) + head[18:]
    if len(source) == 4:
        outer = struct.pack(">BBHHHBBH4s4s", 0x45, 0, _V4_HEADER + len(head), 0, 0, 64, _TCP, 0, target, source)
        return outer[:10] + struct.pack(">H", checksum(outer)) + outer[12:] + head
    return struct.pack(">IHBB16s16s", 6 << 28, len(head), _TCP, 64, target, source) + head


def checksum(data: bytes) -> int:
    """Return the checksum of the internet (RFC 1071)."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _payload(data: bytes) -> tuple[int, bytes, bytes, int] | None:
    """Return the protocol, the source, the target, and where the payload begins."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= _V4_HEADER:
        return data[9], data[12:16], data[16:20], (data[0] & 0x0F) * 4
    if version == 6 and len(data) >= _V6_HEADER:
        return data[6], data[8:24], data[24:40], _V6_HEADER
    return None
