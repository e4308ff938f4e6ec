"""Tagged fields (KIP-482): known ones by their defaults, unknown ones kept, all of them in ascending order."""

from typing import Any

import pytest
from support.shapes import Names, Point, Tagged, with_tags

from aiokafkawire.errors import WireError
from aiokafkawire.protocol.compiler import decode, encode
from aiokafkawire.protocol.messages.metadata import ApiVersion, ApiVersionsResponse, SupportedFeatureKey
from aiokafkawire.protocol.primitives import decode_tags, decode_uvarint, encode_tags, encode_uvarint

pytestmark = pytest.mark.usefixtures("each_decoder")

FIFTH = (5, b"\0\0\0\1")


def tagged(*fields: tuple[int, bytes], plain: bytes = b"\7") -> bytes:
    parts = [encode_uvarint(tag) + encode_uvarint(len(data)) + data for tag, data in fields]
    return plain + encode_uvarint(len(parts)) + b"".join(parts)


def test_a_known_one_is_written_when_it_differs_from_its_default() -> None:
    assert encode(Tagged(), 0) == tagged()
    assert encode(Tagged(fifth=1), 0) == tagged(FIFTH)
    assert encode(Tagged(names=Names(first="")), 0) == tagged()
    assert encode(Tagged(names=Names(first="a")), 0) == tagged((9, b"\2a\1\0"))


def test_known_and_unknown_ones_go_out_ascending() -> None:
    written = with_tags(Tagged(fifth=1, second="s", point=Point(x=3)), {128: b"far", 1: b"one", 7: b""})
    point = (300, b"\1\0\3\0\0")
    assert encode(written, 0) == tagged((1, b"one"), (2, b"\2s"), FIFTH, (7, b""), (128, b"far"), point)
    assert decode(Tagged, 0, encode(written, 0)) == written


def test_they_may_come_in_any_order_and_go_out_ascending() -> None:
    read = decode(Tagged, 0, tagged((200, b"u"), (9, b"\2a\1\0"), (0, b"zero"), FIFTH))
    assert read == with_tags(Tagged(fifth=1, names=Names(first="a")), {200: b"u", 0: b"zero"})
    assert encode(read, 0) == tagged((0, b"zero"), FIFTH, (9, b"\2a\1\0"), (200, b"u"))


def test_unknown_ones_of_a_struct_without_known_ones_are_kept() -> None:
    api = with_tags(ApiVersion(api_key=1, min_version=0, max_version=2), {3: b"new"})
    feature = with_tags(SupportedFeatureKey(name="f", min_version=0, max_version=1), {0: b"", 9: b"nine"})
    written = ApiVersionsResponse(error_code=0, api_keys=[api], supported_features=[feature])
    assert decode(ApiVersionsResponse, 3, encode(written, 3)) == written


def test_unknown_ones_are_bytes_of_their_own_and_do_not_hold_the_frame() -> None:
    read: Any = decode(Tagged, 0, tagged((1, b"kept")))
    assert type(read.unknown_tagged_fields[1]) is bytes


def test_a_null_that_is_the_default_may_still_come() -> None:
    assert decode(Tagged, 0, tagged((2, b"\0"), (300, b"\xff"))) == Tagged()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([(5, b"\0\0\0\1\0")], "Tagged v0.fifth: .*its length is 5, not what it takes"),
        ([(5, b"\0\0\0"), (6, b"long enough")], "Tagged v0.fifth: .*its length is 3, not what it takes"),
        ([(5, b"\0\0\0")], "Tagged v0.fifth: no int32 at byte"),
        ([(2, b"\5abc")], "Tagged v0.second: no string at byte"),
        ([(2, b"\5abcd\0")], "Tagged v0.second: .*its length is 6"),
        ([(9, b"\2a\1")], r"Tagged v0\.names: no tagged fields at byte"),
    ],
)
def test_a_known_one_of_the_wrong_size_is_refused(fields: list[tuple[int, bytes]], told: str) -> None:
    with pytest.raises(WireError, match=f"^{told}"):
        decode(Tagged, 0, tagged(*fields))


@pytest.mark.parametrize(
    "data",
    [b"\7", b"\7\1", b"\7\1\1", b"\7\1\1\2", b"\7\1\1\2a", b"\7\xff\xff\xff\xff\xff\1", b"\7\1\1\xff\xff\xff\xff\x0f"],
)
def test_those_that_end_beyond_the_message_are_refused(data: bytes) -> None:
    with pytest.raises(WireError, match=r"^Tagged v0: no tagged fields at byte \d of \d"):
        decode(Tagged, 0, data)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16383, 16384, 2**31 - 1, 2**32 - 1])
def test_a_varint_comes_back_and_says_where_it_ends(number: int) -> None:
    data = encode_uvarint(number)
    assert decode_uvarint(b"?" + data + b"?", 1) == (number, 1 + len(data))
    for end in range(len(data)):
        with pytest.raises(IndexError):
            decode_uvarint(data[:end], 0)


def test_a_varint_has_five_bytes_at_most() -> None:
    with pytest.raises(ValueError, match="more than five bytes"):
        decode_uvarint(b"\xff\xff\xff\xff\xff\1", 0)


def test_tags_by_themselves_come_back_ascending() -> None:
    data = encode_tags({300: b"x", 0: b"", 2: b"yy"})
    assert decode_tags(b"?" + data + b"?", 1) == ({0: b"", 2: b"yy", 300: b"x"}, 1 + len(data))
    assert list(decode_tags(data, 0)[0]) == [0, 2, 300]
