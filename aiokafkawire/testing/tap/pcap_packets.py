"""Packets of TCP connections for a pcap file, made from the bytes that were sent in each direction.

The file has raw IP packets without link headers (LINKTYPE_RAW). Sequence numbers, lengths and checksums are those of a
connection without losses, so that all tools that read captures can follow the streams.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from struct import Struct, pack
from typing import Final

from ...protocol.primitives import Buffer
from ...types import Address

__all__ = ("FILE_HEADER", "CapturedConnection", "packet_record")

FILE_HEADER: Final = pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 101)
"""The header of a pcap file: version 2.4, times in microseconds, packets of up to 256 KiB, LINKTYPE_RAW."""

_FIN, _SYN, _ACK, _PSH = 1, 2, 16, 8
_SEGMENT: Final = 32 * 1024
"""The largest number of bytes in a packet, which an IP packet can hold."""
_TCP_PROTOCOL: Final = 6
_RECORD: Final = Struct("<IIII")
_TCP: Final = Struct(">HHIIBBHHH")
_IPV4: Final = Struct(">BBHHHBBH4s4s")
_IPV6: Final = Struct(">IHBB16s16s")


def packet_record(packet: bytes, time: float) -> bytes:
    """Return a packet as a pcap file has it; ``time`` is in seconds since the epoch."""
    microseconds = round(time * 1e6)
    return _RECORD.pack(microseconds // 1_000_000, microseconds % 1_000_000, len(packet), len(packet)) + packet


class CapturedConnection:
    """One TCP connection: it makes the packets for its opening, for sent bytes, and for its end.

    Args:
        client: the client's IP address and port.
        server: the server's IP address and port, of the same IP version.
    """

    def __init__(self, client: Address, server: Address) -> None:
        self._client, self._server = _End(client), _End(server)

    def opening(self) -> Iterator[bytes]:
        """Yield the packets of the handshake."""
        yield self._packet(self._client, self._server, _SYN)
        yield self._packet(self._server, self._client, _SYN | _ACK)
        yield self._packet(self._client, self._server, _ACK)

    def sent(self, data: Buffer, *, by_client: bool) -> Iterator[bytes]:
        """Yield the packets with bytes that one side sent."""
        source, target = self._direction(by_client)
        view = memoryview(data)
        for start in range(0, len(view), _SEGMENT):
            yield self._packet(source, target, _PSH | _ACK, view[start : start + _SEGMENT])

    def closing(self, *, by_client: bool) -> Iterator[bytes]:
        """Yield the packets of the connection's end, which one side began."""
        source, target = self._direction(by_client)
        yield self._packet(source, target, _FIN | _ACK)
        yield self._packet(target, source, _FIN | _ACK)

    def _direction(self, by_client: bool) -> "tuple[_End, _End]":
        return (self._client, self._server) if by_client else (self._server, self._client)

    def _packet(self, source: "_End", target: "_End", flags: int, payload: Buffer = b"") -> bytes:
        acknowledged = target.sequence if flags & _ACK else 0
        header = (source.port, target.port, source.sequence, acknowledged, 5 << 4, flags, 0xFFFF)
        length = _TCP.size + len(payload)
        pseudo = source.ip + target.ip + pack(">II", length, _TCP_PROTOCOL)
        checksum = _checksum(b"".join((pseudo, _TCP.pack(*header, 0, 0), payload)))
        segment = b"".join((_TCP.pack(*header, checksum, 0), payload))
        source.sequence = (source.sequence + len(payload) + bool(flags & (_SYN | _FIN))) % 2**32
        return _ip_header(source.ip, target.ip, length) + segment


class _End:
    """One side of a connection, and the sequence number of its next byte."""

    def __init__(self, address: Address) -> None:
        self.ip = ip_address(address.host.partition("%")[0]).packed
        self.port = address.port
        self.sequence = 0


def _ip_header(source: bytes, target: bytes, length: int) -> bytes:
    if len(source) == 16:
        return _IPV6.pack(6 << 28, length, _TCP_PROTOCOL, 64, source, target)
    fields = (0x45, 0, _IPV4.size + length, 0, 0x4000, 64, _TCP_PROTOCOL)
    return _IPV4.pack(*fields, _checksum(_IPV4.pack(*fields, 0, source, target)), source, target)


def _checksum(data: bytes) -> int:
    """Return the Internet checksum: the complement of the sum of all 16-bit numbers, with carries added (RFC 1071)."""
    padded = data if len(data) % 2 == 0 else data + b"\0"
    # 2**16 is 1 modulo 2**16 - 1, so the remainder is the sum with carries added.
    total = int.from_bytes(padded) % 0xFFFF
    return 0xFFFF - total if total or not any(padded) else 0
