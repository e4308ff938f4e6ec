"""What the compiled functions say of a wrong message, what forms they write, and when they are made."""

import linecache
import traceback
from typing import Any
from uuid import UUID

import pytest
from support.rows import every_row
from support.shapes import Item, Names, Point, Shapes, Tiny, shapes, with_tags

from aiokafkawire.errors import InvalidMessage, UnsupportedVersion, WireError
from aiokafkawire.protocol.compiler import DECODERS, decode, decode_prefix, encode, encode_into
from aiokafkawire.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from aiokafkawire.protocol.primitives import Buffer, Int32, String
from aiokafkawire.protocol.schema import Message, Versions, field, message, nested

pytestmark = pytest.mark.usefixtures("each_decoder")

VERSIONS = (0, 1)


def partition(index: int, **changes: Any) -> FetchPartition:
    fields: dict[str, Any] = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1} | changes
    return FetchPartition(**fields)


def fetch(*partitions: FetchPartition) -> FetchRequest:
    topics = [FetchTopic(topic="a", partitions=[partition(0)]), FetchTopic(topic="b", partitions=list(partitions))]
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)


# --- what is wrong, and where --------------------------------------------------------------------------------


def test_a_null_in_a_field_that_takes_none_is_named_by_its_path() -> None:
    with pytest.raises(InvalidMessage) as caught:
        encode(fetch(partition(0), partition(1, fetch_offset=None)), 12)
    assert str(caught.value) == "FetchRequest v12.topics[1].partitions[1].fetch_offset: must not be null in version 12"


@pytest.mark.parametrize("version", VERSIONS)
@every_row(
    "name",
    ["flag", "tiny", "port", "large", "ratio", "key", "text", "data", "numbers", "flags", "strings", "blobs", "items"],
)
def test_null_is_refused_in_every_kind_of_field(name: str, version: int) -> None:
    with pytest.raises(InvalidMessage) as caught:
        encode(shapes(**{name: None}), version)
    assert str(caught.value) == f"Shapes v{version}.{name}: must not be null in version {version}"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "bool": ({"flag": "yes"}, "flag: 'yes' is no bool"),
    "int8": ({"tiny": 128}, "tiny: 128 is no int8"),
    "int16": ({"short": -32769}, "short: -32769 is no int16"),
    "uint16": ({"port": 65536}, "port: 65536 is no uint16"),
    "negative uint16": ({"port": -1}, "port: -1 is no uint16"),
    "int32": ({"number": "9092"}, "number: '9092' is no int32"),
    "int32 out of range": ({"number": 2**31}, "number: 2147483648 is no int32"),
    "int64": ({"large": 1.5}, "large: 1.5 is no int64"),
    "float64": ({"ratio": "1"}, "ratio: '1' is no float64"),
    "uuid": ({"key": "00000000"}, "key: '00000000' is no uuid"),
    "string": ({"text": b"bytes"}, "text: b'bytes' is no string"),
    "string of surrogates": ({"text": "\ud800"}, r"text: '\ud800' is no string"),
    "string too long": ({"text": "x" * 32768}, f"text: '{'x' * 56}... is no string"),
    "bytes": ({"data": "text"}, "data: 'text' is no bytes"),
    "list for bytes": ({"data": [1, 2]}, "data: [1, 2] is no bytes"),
    "bytes with gaps": ({"data": memoryview(b"abcd")[::2]}, "data: <memory at "),
    "records": ({"records": "text"}, "records: 'text' is no records"),
    "number for an array": ({"numbers": 5}, "numbers: 5 is no array of int32"),
    "generator": ({"numbers": (one for one in (1, 2))}, "numbers: <generator object "),
    "element of numbers": ({"numbers": [1, None]}, "numbers: [1, None] is no array of int32"),
    "string for strings": ({"strings": "abc"}, "strings: 'abc' is no array of string"),
    "null element": ({"strings": ["a", None]}, "strings[1]: must not be null"),
    "element of strings": ({"strings": ["a", "b", 3]}, "strings[2]: 3 is no string"),
    "element of byte arrays": ({"blobs": [b"a", "b"]}, "blobs[1]: 'b' is no bytes"),
    "element of uuids": ({"keys": [5]}, "keys[0]: 5 is no uuid"),
    "number for structs": ({"items": 5}, "items: 5 is no array of Item"),
    "string for a struct": ({"items": ["abc"]}, "items[0]."),
    "null for a struct": ({"items": [None]}, "items[0]."),
    "field of a struct": ({"items": [Item(number=0), Item(number=2**40)]}, "items[1].number: 1099511627776 is no"),
    "after a good length": ({"items": [Item(number="1", name="a" * 300)]}, "items[0].number: '1' is no int32"),  # type: ignore[arg-type]
    "array in an array": (
        {"items": [Item(number=0), Item(number=0, inner=[Names(first=""), Names(first="", others=["", 7])])]},  # type: ignore[list-item]
        "items[1].inner[1].others[1]: 7 is no string",
    ),
    "in a struct": ({"names": Names(first=5)}, "names.first: 5 is no string"),  # type: ignore[arg-type]
    "in a struct that may be null": ({"point": Point(x=2**15)}, "point.x: 32768 is no int16"),
    "null for a struct that may not": ({"names": None}, "names.first: "),
}


@pytest.mark.parametrize("version", VERSIONS)
@every_row("case", WRONG)
def test_a_value_of_the_wrong_type_is_named_by_its_path(case: str, version: int) -> None:
    fields, told = WRONG[case]
    if case == "generator":
        fields = {"numbers": (one for one in (1, 2))}
    with pytest.raises(InvalidMessage) as caught:
        encode(shapes(**fields), version)
    assert str(caught.value).startswith(f"Shapes v{version}.{told}")


def test_unknown_tagged_fields_that_are_no_bytes_are_refused() -> None:
    with pytest.raises(InvalidMessage, match=r"^Shapes v1\.names: \{9: 'text'\} is no tagged fields "):
        encode(Shapes(names=with_tags(Names(first=""), {9: "text"})), 1)


def test_a_value_that_the_version_lacks_is_refused_unless_it_may_be_dropped() -> None:
    with pytest.raises(UnsupportedVersion, match=r"^Shapes\.newest needs version 2\+ of Shapes, this is 1$"):
        encode(Shapes(newest=5), 1)
    with pytest.raises(UnsupportedVersion, match=r"^Item\.later needs version 1\+ of Shapes, this is 0$"):
        encode(Shapes(items=[Item(number=0, later=5)]), 0)
    assert encode(Shapes(forgettable=5), 1) == encode(Shapes(), 1)


@pytest.mark.parametrize("version", [-1, 3])
def test_a_version_that_is_not_declared_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=rf"^Shapes has versions 0-2, not {version}$"):
        encode(Shapes(), version)
    with pytest.raises(UnsupportedVersion, match=rf"^Shapes has versions 0-2, not {version}$"):
        decode(Shapes, version, b"")


def test_bytes_that_end_early_are_told_by_field_and_position() -> None:
    with pytest.raises(WireError, match=r"^Shapes v0\.number: no int32 at byte 6 of 7 \("):
        decode(Shapes, 0, encode(Shapes(), 0)[:7])
    data = encode(Shapes(items=[Item(number=1), Item(number=2)]), 1)
    assert decode(Shapes, 1, data).items[1].number == 2
    end = data.index(b"\0\0\0\2")
    with pytest.raises(WireError, match=rf"^Shapes v1\.items\[1\]\.number: no int32 at byte {end} of {end + 2} \("):
        decode(Shapes, 1, data[: end + 2])


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("00 05 61 62", "no string at byte 2 of 4 (its length is 5, and 2 bytes are left)"),
        ("7f ff", "no string at byte 2 of 2 (its length is 32767, and 0 bytes are left)"),
    ],
)
def test_a_length_beyond_the_message_is_told_where_it_stands(data: str, told: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_prefix(Names0, 0, bytes.fromhex(data))
    assert str(caught.value) == f"Names0 v0.first: {told}"


def test_a_count_beyond_the_message_is_told_where_it_stands() -> None:
    data = encode(Nullables(numbers=[1]), 0)
    lie = data[:-8] + b"\x7f\xff\xff\xff" + data[-4:]
    with pytest.raises(WireError) as caught:
        decode_prefix(Nullables, 0, lie)
    assert str(caught.value).endswith(
        ".numbers: no array of int32 at byte 7 of 11 (its length is 2147483647, and 4 bytes are left)"
    )


def test_a_null_that_came_for_a_field_that_takes_none_is_told() -> None:
    with pytest.raises(WireError, match=r"^Names0 v0\.first: no string at byte 2 of 2 \(it is null\)$"):
        decode(Names0, 0, b"\xff\xff")


def test_bytes_left_over_are_refused_unless_a_prefix_is_asked_for() -> None:
    data = encode(Tiny(number=5), 0)
    with pytest.raises(WireError, match=r"^Tiny v0: 1 bytes left over after its end at byte 4$"):
        decode(Tiny, 0, data + b"\0")
    assert decode_prefix(Tiny, 0, b"??" + data + b"\0", 2) == (Tiny(number=5), 6)


# --- forms ---------------------------------------------------------------------------------------------------


@message(versions="0-1", flexible="1+")
class Names0(Message):
    """One string that is needed."""

    first: String = field("0+")


FULL: dict[str, Any] = {
    "flag": True,
    "tiny": -128,
    "short": -32768,
    "port": 65535,
    "number": -(2**31),
    "large": 2**63 - 1,
    "ratio": -0.1,
    "key": UUID(int=2**128 - 1),
    "text": "Ünïcode \0 ☃",
    "maybe_text": "",
    "data": b"\0" * 300,
    "maybe_data": b"",
    "records": b"records",
    "numbers": [1, -1, 2**31 - 1],
    "maybe_numbers": [],
    "flags": [True, False],
    "strings": ["", "a", "x" * 200],
    "blobs": [b"", b"b"],
    "keys": [UUID(int=1), UUID(int=2)],
    "names": Names(first="f", others=["o"]),
    "point": Point(x=-1, label="here"),
    "items": [Item(number=1, name="one", inner=[Names(first="deep", others=["er"])]), Item(number=2)],
    "maybe_items": [],
}


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("fields", [{}, FULL], ids=["defaults", "full"])
def test_what_was_encoded_decodes_to_the_same(fields: dict[str, Any], version: int) -> None:
    written = Shapes(**fields)
    assert decode(Shapes, version, encode(written, version)) == written


@nested
class Half:
    """Two strings, one of which may be null."""

    sure: String = field("0+")
    maybe: String | None = field("0+", nullable="0+", default=None)


@message(versions="0-1", flexible="1+")
class Nullables(Message):
    """Whatever can be null."""

    half: Half | None = field("0+", nullable="0+", default=None)
    text: String | None = field("0+", nullable="0+", default=None)
    numbers: list[Int32] | None = field("0+", nullable="0+", default=None)


def test_nulls_have_a_plain_and_a_compact_form() -> None:
    assert encode(Nullables(), 0).hex(" ") == "ff ff ff ff ff ff ff"
    assert encode(Nullables(), 1).hex(" ") == "ff 00 00 00"
    assert decode(Nullables, 0, bytes.fromhex("ff ff ff ff ff ff ff")) == Nullables()
    assert decode(Nullables, 1, bytes.fromhex("ff 00 00 00")) == Nullables()


def test_empty_is_not_null() -> None:
    empty = Nullables(half=Half(sure=""), text="", numbers=[])
    assert encode(empty, 0).hex(" ") == "01 00 00 ff ff 00 00 00 00 00 00"
    assert encode(empty, 1).hex(" ") == "01 01 00 00 01 01 00"
    assert decode(Nullables, 0, encode(empty, 0)) == empty
    assert decode(Nullables, 1, encode(empty, 1)) == empty


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: memoryview(data).cast("i")])
def test_a_byte_field_takes_every_buffer_by_its_bytes(kind: Any, version: int) -> None:
    assert encode(Shapes(data=kind(b"12345678")), version) == encode(Shapes(data=b"12345678"), version)


def test_bytes_are_neither_copied_on_their_way_out_nor_in() -> None:
    records, parts = bytearray(1000), list[Buffer]()
    encode_into(Shapes(records=records), 1, parts)
    assert any(part is records for part in parts)
    data = encode(Shapes(records=records), 1)
    read = decode(Shapes, 1, data).records
    assert isinstance(read, memoryview)
    assert read.obj is data


# --- compiling -----------------------------------------------------------------------------------------------


def test_functions_are_compiled_when_they_are_first_used_and_linecache_has_their_source() -> None:
    @message(versions="0-1")
    class Fresh(Message):
        """Not used yet."""

        number: Int32 = field("0+")

    names = [f"<aiokafkawire Fresh v{version} {way}>" for version in (0, 1) for way in ("decode", "encode")]
    for name in names:
        linecache.cache.pop(name, None)
    DECODERS["pure"](Fresh, 1, encode(Fresh(number=1), 1), 0)
    assert [name in linecache.cache for name in names] == [False, False, True, True]
    linecache.checkcache()
    assert linecache.getline(names[3], 1) == "def encode(m, parts):\n"


def test_a_traceback_shows_the_line_that_failed() -> None:
    with pytest.raises(InvalidMessage) as caught:
        encode(fetch(partition(0, fetch_offset="first")), 12)
    told = "".join(traceback.format_exception(caught.value))
    assert 'File "<aiokafkawire FetchRequest v12 encode>", line ' in told
    assert ".fetch_offset" in told.partition("<aiokafkawire FetchRequest v12 encode>")[2].splitlines()[1]
    with pytest.raises(WireError) as torn:
        decode(Tiny, 0, b"\0")
    told = "".join(traceback.format_exception(torn.value))
    assert "unpack_from_i(data, p)" in told.partition("<aiokafkawire Tiny v0 decode>")[2].splitlines()[1]


def test_a_field_that_is_needed_must_exist_in_every_version() -> None:
    @message(versions="0-1")
    class Gap(Message):
        """A field without a default that version 0 lacks."""

        number: Int32 = field("1+")

    with pytest.raises(TypeError, match=r"^Gap\.number exists in 1\+ only: it needs a default$"):
        encode(Gap(number=1), 0)


@pytest.mark.parametrize("text", ["", "1-", "-1", "+", "1+2", "a", "none "])
def test_a_range_of_versions_has_four_forms(text: str) -> None:
    with pytest.raises(ValueError, match="not a range of versions"):
        Versions.parse(text)
    assert [str(Versions.parse(one)) for one in ("3", "0-7", "4+", "none")] == ["3", "0-7", "4+", "none"]
    assert 5 not in Versions.parse("none")
    assert Versions.parse("4+").covers(Versions.parse("5-9"))
    assert not Versions.parse("4+").covers(Versions.parse("3-9"))
