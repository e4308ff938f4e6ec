"""What must hold for any bytes: a result or the documented error. Plain functions; the tests call them, too.

Each target takes bytes and returns whether they were taken for what they claim to be. Anything else than the
documented error, and any disagreement between two ways of reading the same bytes, leaves it as an exception.
"""

from collections.abc import Callable
from random import Random
from typing import NamedTuple
from zlib import crc32

from support.twins import compiled, pure
from support.vectors import declared_messages

from aiokafkawire.errors import CorruptBatch, InvalidMessage, UnsupportedVersion
from aiokafkawire.protocol.compiler import DECODERS, encode
from aiokafkawire.protocol.schema import Message, Request, Response
from aiokafkawire.records.batch import AnyBatch, AnyReader, BatchBuilder, split
from aiokafkawire.types import Header

from .feeding import fed

__all__ = (
    "EMBEDDED",
    "INFLATE_LIMIT",
    "MESSAGES",
    "TARGETS",
    "Decoder",
    "embedded",
    "frames",
    "messages",
    "read_batches",
    "read_frames",
    "read_message",
    "read_records",
    "records",
)

Decoder = tuple[type[Message], int]
"""A message and its version."""


def _decoders(*, of_an_api: bool) -> list[Decoder]:
    return [
        (cls, version)
        for _, cls in sorted(declared_messages().items())
        if issubclass(cls, Request | Response) == of_an_api
        for version in range(cls.versions.first, cls.versions.last + 1)
    ]


MESSAGES = _decoders(of_an_api=True)
EMBEDDED = _decoders(of_an_api=False)
INFLATE_LIMIT = 64 * 1024


class Record(NamedTuple):
    """What is compared of a record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


# --- messages --------------------------------------------------------------------------------------------------


def messages(data: bytes) -> bool:
    """A request or response; the first two bytes choose it and its version."""
    return _chosen(MESSAGES, data)


def embedded(data: bytes) -> bool:
    """A header, or data that travels in a byte field; the first two bytes choose it and its version."""
    return _chosen(EMBEDDED, data)


def _chosen(decoders: list[Decoder], data: bytes) -> bool:
    if len(data) < 2:
        return False
    return read_message(*decoders[int.from_bytes(data[:2], "big") % len(decoders)], data[2:])


def read_message(cls: type[Message], version: int, data: bytes) -> bool:
    """Read one message, alone, in the middle of a frame, with a tail and cut short; write it and read it again."""
    whole = _decoded(cls, version, data)
    inside = _decoded(cls, version, b"\xff" * 5 + data, 5)
    if whole is None or inside is None:
        assert inside is whole, "where it stands decides whether it is read"
        return False
    message, end = whole
    written = encode(message, version)
    # Not the very bytes that came: a default among the tagged fields is left out. And NaN differs from itself.
    assert (encode(inside[0], version), inside[1]) == (written, end + 5)
    again = _decoded(cls, version, written)
    assert again is not None, "what was written is not read"
    assert (encode(again[0], version), again[1]) == (written, len(written))
    with_tail = _decoded(cls, version, data + b"\xfe\1" * 40)
    assert with_tail is not None, "a tail changes what came before it"
    assert (encode(with_tail[0], version), with_tail[1]) == (written, end)
    if end:
        assert _decoded(cls, version, data[: crc32(data) % end]) is None, "what is cut short is read"
    for other in {cls.versions.first, cls.versions.last} - {version}:
        try:
            encode(message, other)
        except (InvalidMessage, UnsupportedVersion):
            continue  # a null or a field that the other version lacks
    return end == len(data)


def _decoded(cls: type[Message], version: int, data: bytes, position: int = 0) -> tuple[Message, int] | None:
    """The message at ``position`` and where it ends; None for WireError. The compiled decoder must say the same."""
    read = pure(cls, version, data, position)
    if "cython" in DECODERS:
        other = compiled(cls, version, data, position)
        said = [one and (encode(one[0], version), one[0].unknown_tagged_fields, one[1]) for one in (read, other)]
        assert said[0] == said[1], "the twins disagree"
    return read


# --- frames ----------------------------------------------------------------------------------------------------


def frames(data: bytes) -> bool:
    """What a broker sends; the first byte says how many requests wait, and of which kind."""
    return bool(data) and read_frames(data[0], data[1:])


def read_frames(waiting: int, data: bytes) -> bool:
    """The stream whole, byte by byte, in random pieces, and with a tail."""
    whole = fed(waiting, [data])
    assert fed(waiting, [data[at : at + 1] for at in range(len(data))]) == whole, "byte by byte is something else"
    chance = Random(crc32(data))
    cuts = sorted(chance.choices(range(len(data) + 1), k=8))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert fed(waiting, pieces) == whole, "pieces are something else"
    for tail in (b"\0", b"\0\0\0\x05\0\0\0\0\0", b"\xff" * 4):
        longer = fed(waiting, [data + tail])
        assert longer.answers[: len(whole.answers)] == whole.answers, "a tail changes what came before it"
        assert whole.failure is None or longer == whole
        assert fed(waiting, [data, tail]) == longer
    return whole.failure is None


# --- records ---------------------------------------------------------------------------------------------------


def records(data: bytes) -> bool:
    """The records of a fetched buffer. Checksums are left unchecked, or nothing damaged would come further."""
    return read_batches(data, check_crcs=False)


def read_batches(data: bytes, *, check_crcs: bool = True) -> bool:
    """Split, inflate and walk; whole, with a tail and cut short. What was read is written and read again."""
    read, damaged = read_records(data, check_crcs=check_crcs)
    for tail in (b"\0" * 20, data[:40]):
        longer, _ = read_records(data + tail, check_crcs=check_crcs)
        assert longer[: len(read)] == read, "a tail changes what came before it"
    shorter, _ = read_records(data[: crc32(data) % (len(data) + 1)], check_crcs=check_crcs)
    assert shorter == read[: len(shorter)], "a cut changes what came before it"
    times = [one.timestamp for one in read]
    if read and max(times) - min(times) < 1 << 63:  # no batch spans more
        _written_and_read(read)
    return not damaged


def read_records(data: bytes, *, check_crcs: bool = True) -> tuple[list[Record], bool]:
    """The records up to the first damage, and whether there is any."""
    found: list[Record] = []
    try:
        for batch in split(memoryview(data), "t-0"):
            _read_batch(batch, found, check_crcs=check_crcs)
    except CorruptBatch:
        return found, True
    return found, False


def _read_batch(batch: AnyBatch, found: list[Record], *, check_crcs: bool) -> None:
    before, header = len(found), batch.header
    is_set = header.magic < 2  # what is inside a message set may contradict its wrapper's offset
    assert header.next_offset < 1 << 63, "no fetch can ask for that offset"
    body = batch.prepare(limit=INFLATE_LIMIT, check_crcs=check_crcs)
    assert len(body) <= INFLATE_LIMIT
    reader: AnyReader[bytes, bytes] = batch.records("t", 0, limit=INFLATE_LIMIT, check_crcs=check_crcs)
    for record in reader:
        assert record.offset > (found[-1].offset if len(found) > before else header.base_offset - 1)
        assert record.offset < reader.next_offset
        found.append(Record(record.offset, record.timestamp, record.key, record.value, record.headers))
        repr(record)
    assert is_set or reader.next_offset == header.next_offset
    assert sum(len(one.key or b"") + len(one.value or b"") for one in found[before:]) <= len(body)


def _written_and_read(read: list[Record]) -> None:
    builder = BatchBuilder(limit=1 << 30)
    for record in read:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    again, damaged = read_records(builder.build(), check_crcs=True)
    assert not damaged
    assert [one[1:] for one in again] == [one[1:] for one in read]


TARGETS: dict[str, Callable[[bytes], bool]] = {
    "frames": frames,
    "messages": messages,
    "embedded": embedded,
    "records": records,
}
