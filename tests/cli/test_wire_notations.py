"""Hex comes in many notations, and all of them are the same bytes."""

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokafkawire.cli.exit_status import CommandFailed
from aiokafkawire.cli.wire.input_formats import read_base64, read_bytes, read_text

FRAME = bytes.fromhex("000000230012000300000007000464656d6f000d61696f6b61666b617769726506302e312e3000")

XXD = """\
00000000: 0000 0023 0012 0003 0000 0007 0004 6465  ...#..........de
00000010: 6d6f 000d 6169 6f6b 6166 6b61 7769 7265  mo..aiokafkawire
00000020: 0630 2e31 2e30 00                        .0.1.0.
"""
HEXDUMP_C = """\
00000000  00 00 00 23 00 12 00 03  00 00 00 07 00 04 64 65  |...#..........de|
00000010  6d 6f 00 0d 61 69 6f 6b  61 66 6b 61 77 69 72 65  |mo..aiokafkawire|
00000020  06 30 2e 31 2e 30 00                              |.0.1.0.|
00000027
"""
OD = """\
0000000 00 00 00 23 00 12 00 03 00 00 00 07 00 04 64 65
0000020 6d 6f 00 0d 61 69 6f 6b 61 66 6b 61 77 69 72 65
0000040 06 30 2e 31 2e 30 00
0000047
"""
TCPDUMP = """\
09:15:02.371 IP6 no packet of ours
\t0x0000:  0000 0023 0012 0003 0000 0007 0004 6465  ...#..........de
\t0x0010:  6d6f 000d 6169 6f6b 6166 6b61 7769 7265  mo..aiokafkawire
\t0x0020:  0630 2e31 2e30 00                        .0.1.0.
"""
WIRESHARK = """\
0000   00 00 00 23 00 12 00 03 00 00 00 07 00 04 64 65   ...#..........de
0010   6d 6f 00 0d 61 69 6f 6b 61 66 6b 61 77 69 72 65   mo..aiokafkawire
0020   06 30 2e 31 2e 30 00                              .0.1.0.
"""


@pytest.mark.parametrize(
    "text",
    [
        FRAME.hex(),
        FRAME.hex().upper(),
        FRAME.hex(" "),
        FRAME.hex(":"),
        FRAME.hex("-"),
        FRAME.hex(" ", 4),
        "0x" + FRAME.hex(),
        f"0X{FRAME.hex().upper()}\n",
        " ".join(f"0x{byte:02x}" for byte in FRAME),
        "{" + ", ".join(f"0x{byte:02X}" for byte in FRAME) + "};",
        "".join(f"\\x{byte:02x}" for byte in FRAME),
        "b" + "".join(f"\\x{byte:02x}" for byte in FRAME),
        "\n".join((FRAME.hex()[:24], FRAME.hex()[24:])),
        repr(FRAME),
        f"sent {FRAME!r} to kafka:9092",
        f"bytearray({bytes(FRAME)!r})",
        f"{FRAME[:9]!r}\n    {FRAME[9:]!r}",
        f"[2026-11-21 09:15:02,371] WARN bad request of 39 bytes: {FRAME.hex()} (kafka.network)",
        XXD,
        HEXDUMP_C,
        OD,
        TCPDUMP,
        WIRESHARK,
    ],
)
def test_the_same_bytes(text: str) -> None:
    (stream,) = read_text(text).streams
    assert stream.data == FRAME
    assert read_bytes(text.encode()).streams == (stream,), "a file is recognised as text"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (FRAME.hex(), "hex"),
        (XXD, "a hexdump"),
        (repr(FRAME), "a bytes literal of Python"),
        (f"one\nsaw {FRAME.hex()}", "78 hex digits within line 2"),
        (f"{FRAME.hex()} or {FRAME.hex()[:40]} said x", "78 hex digits within line 1, the longest of 2 runs of hex"),
        (f"{XXD}{XXD}", "2 hexdumps"),
    ],
)
def test_it_says_what_it_took_it_for(text: str, form: str) -> None:
    assert read_text(text).form == form


def test_repeated_lines_that_a_dump_leaves_out_are_there() -> None:
    text = (
        "00000000  00 00 00 40 00 00 00 00  00 00 00 00 00 00 00 00  |...@............|\n"
        "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
        "*\n00000040  01 02 03 04                                       |....|\n00000044\n"
    )
    (stream,) = read_text(text).streams
    assert stream.data == b"\0\0\0\x40" + bytes(60) + b"\1\2\3\4"
    (stream,) = read_text(text[: text.index("00000040  01")] + "00000040\n").streams
    assert stream.data == b"\0\0\0\x40" + bytes(60)


def test_the_two_directions_of_wiresharks_follow_stream_are_apart() -> None:
    text = "00000000  01 02 03 04   ....\n    00000000  0a 0b   ..\n00000004  05   .\n"
    assert [stream.data for stream in read_text(text).streams] == [b"\1\2\3\4\5", b"\x0a\x0b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abc", "3 hex digits, but a byte has two"),
        ("no hex at all", "no hex: 'n' is not a hex digit"),
        ("0000000 0000 2300 1200 0300\n", "in the machine's byte order"),
        ("00000000: 0000 0023\n00000010: 0012\n", "line 2: it begins at offset 00000010, after 4 bytes"),
        ("b'\\xzz'", "invalid bytes literal of Python"),
        ("b'é'", "invalid bytes literal of Python"),
    ],
)
def test_what_is_none_is_told(text: str, said: str) -> None:
    with pytest.raises(CommandFailed) as failed:
        read_text(text)
    assert said in str(failed.value)


@pytest.mark.parametrize("data", [FRAME, b"", b"\xff\xfe", b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"])
def test_other_bytes_are_taken_as_they_are(data: bytes) -> None:
    assert read_bytes(data).streams[0].data == data
    assert read_bytes(data).form == "raw bytes"


def test_text_can_be_meant_as_bytes() -> None:
    assert read_bytes(b"00000004", raw=True).streams[0].data == b"00000004"


def test_damaged_hex_in_a_file_is_no_raw_file() -> None:
    with pytest.raises(CommandFailed, match="77 hex digits"):
        read_bytes(FRAME.hex()[:-1].encode())


def test_base64() -> None:
    assert read_base64(base64.b64encode(FRAME).decode()).streams[0].data == FRAME
    assert read_base64(base64.urlsafe_b64encode(FRAME).decode().rstrip("=")).streams[0].data == FRAME
    with pytest.raises(CommandFailed, match="is not base64"):
        read_base64("!!")


# --- packets ---------------------------------------------------------------------------------------------------------

CLIENT, SERVER = ("10.0.0.1", 50000), ("10.0.0.2", 9092)
Side = tuple[str, int]


def packet(source: Side, target: Side, sequence: int, payload: bytes, flags: int = 0x18) -> bytes:
    """An IPv4 packet with TCP, its checksums left at 0."""
    tcp = struct.pack(">HHIIBBHHH", source[1], target[1], sequence % 2**32, 0, 5 << 4, flags, 1024, 0, 0) + payload
    addresses = b"".join(bytes(map(int, side[0].split("."))) for side in (source, target))
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + addresses + tcp


def packet_6(payload: bytes) -> bytes:
    tcp = struct.pack(">HHIIBBHHH", 50000, 9092, 1, 0, 5 << 4, 0x18, 1024, 0, 0) + payload
    return struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + bytes(15) + b"\1" + bytes(15) + b"\1" + tcp


def pcap(*packets: bytes, order: str = "<") -> bytes:
    head = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack(order + "IIII", 0, 0, len(one), len(one)) + one for one in packets)


def dump(data: bytes) -> str:
    rows = range(0, len(data), 16)
    return "".join(f"\t0x{row:04x}:  {data[row : row + 16].hex(' ', 2):<39}  ....\n" for row in rows)


def test_dumped_packets_lose_their_headers() -> None:
    text = f"09:15 IP a > b: Flags [P.]\n{dump(packet(CLIENT, SERVER, 1, FRAME[:20]))}"
    text += f"09:16 IP a > b: Flags [P.]\n{dump(packet(CLIENT, SERVER, 21, FRAME[20:]))}"
    source = read_text(text)
    assert source.form == "2 dumped packets with TCP"
    assert [(stream.data, stream.label) for stream in source.streams] == [(FRAME, "10.0.0.1:50000 > 10.0.0.2:9092")]


@pytest.mark.parametrize("link", [b"", bytes(12) + b"\x08\x00", bytes(14) + b"\x08\x00", b"\2\0\0\0"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_pcap_file(link: bytes, order: str) -> None:
    packets = (packet(CLIENT, SERVER, 5, FRAME), packet(SERVER, CLIENT, 9, b"answer"), b"\xff" * 60)
    source = read_bytes(pcap(*(link + one for one in packets), order=order))
    assert source.form == "3 packets of a pcap file"
    assert [stream.data for stream in source.streams] == [FRAME, b"answer"]


def test_ipv6_and_ethernets_padding() -> None:
    (stream,) = read_bytes(pcap(packet_6(FRAME))).streams
    assert (stream.data, stream.label) == (FRAME, "::1:50000 > ::1:9092")
    padded = bytes(12) + b"\x08\x00" + packet(CLIENT, SERVER, 5, b"abc") + bytes(3)
    assert read_bytes(pcap(padded)).streams[0].data == b"abc"


@pytest.mark.parametrize("first", [1, 2**32 - 3])
def test_segments_are_put_in_order_and_taken_once(first: int) -> None:
    pieces = [(0, b"abcd"), (8, b"ijkl"), (4, b"efgh"), (4, b"efgh"), (6, b"ghijkl")]
    segments = (packet(CLIENT, SERVER, first + at, data) for at, data in pieces)
    assert [stream.data for stream in read_bytes(pcap(*segments)).streams] == [b"abcdefghijkl"]


def test_what_was_not_captured_parts_the_stream() -> None:
    first, second = read_bytes(pcap(packet(CLIENT, SERVER, 1, b"ab"), packet(CLIENT, SERVER, 10, b"cd"))).streams
    assert (first.data, second.data) == (b"ab", b"cd")
    assert second.label.endswith(", after 7 bytes that were not captured")


def test_a_port_that_is_used_again_is_another_stream() -> None:
    again = [packet(CLIENT, SERVER, 1, b"ab"), packet(CLIENT, SERVER, 0, b"", 2), packet(CLIENT, SERVER, 1, b"cd")]
    assert [stream.data for stream in read_bytes(pcap(*again)).streams] == [b"ab", b"cd"]


def test_captures_without_anything_to_read() -> None:
    with pytest.raises(CommandFailed, match="1 packet, none of which carries bytes over TCP"):
        read_bytes(pcap(b"\xff" * 60))
    with pytest.raises(CommandFailed, match="editcap -F pcap"):
        read_bytes(b"\x0a\x0d\x0d\x0a" + bytes(40))


@given(st.binary(max_size=200) | st.text(alphabet="0123456789abcdef xb'\\:|*\n\t", max_size=200).map(str.encode))
def test_anything_is_read_or_refused(data: bytes) -> None:
    for given_bytes in (data, pcap(data), b"00000000: " + data):
        try:
            source = read_bytes(given_bytes)
        except CommandFailed:
            continue
        assert source.form
