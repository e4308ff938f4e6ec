"""Alterations of fetched records: batches whose header, order, codec or contents no honest log has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from support.bombs import as_batch, pieces
from support.message_sets import message, wrapper

from aiokafkawire.records import layout
from aiokafkawire.records._pure_builder import BatchBuilder
from aiokafkawire.records.checksum import crc32c
from aiokafkawire.records.compression import Codec, compress

__all__ = ("RECORD_ALTERATIONS", "AlwaysTheFirst")

_LEAST, _MOST = -(2**63), 2**63 - 1
_FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


@cache
def _template(records: int = 3, codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(limit=1 << 20, codec=codec)
    for number in range(records):
        builder.append(1_700_000_000_000, b"key", b"value %d" % number, [("name", b"header")])
    return bytes(builder.build())


def _batch(value: Any) -> bytes:
    """Return the first batch of the fetched records; a template if there is none."""
    data = bytes(value or b"")
    if len(data) < layout.HEADER_SIZE or data[layout.MAGIC_AT] != layout.MAGIC:
        return _template()
    return data[: layout.LOG_OVERHEAD + layout.INT32.unpack_from(data, layout.LENGTH_AT)[0]]


def _checked(batch: bytearray) -> bytes:
    """Return the batch with the checksum of its contents."""
    layout.UINT32.pack_into(batch, layout.CRC_AT, crc32c(bytes(batch[layout.ATTRIBUTES_AT :])))
    return bytes(batch)


def _with(value: Any, **changed: int) -> bytes:
    """Return the first batch with other fields in its header, and the right checksum unless that is changed."""
    batch = bytearray(_batch(value))
    fields = dict(zip(_FIELDS, layout.HEADER.unpack_from(batch), strict=True)) | changed
    layout.HEADER.pack_into(batch, 0, *(fields[name] for name in _FIELDS))
    return bytes(batch) if "crc" in changed else _checked(batch)


def _moved(value: Any, by: int) -> bytes:
    batch = _batch(value)
    (offset,) = layout.INT64.unpack_from(batch)
    return _with(batch, base_offset=max(_LEAST, min(_MOST, offset + by)))


def _with_body(value: Any, body: bytes, count: int = 3, attributes: int = 0) -> bytes:
    """Return a batch at the place of the fetched one with other bytes as its records."""
    (offset,) = layout.INT64.unpack_from(_batch(value))
    length = layout.HEADER_SIZE - layout.LOG_OVERHEAD + len(body)
    fields = (offset, length, 0, layout.MAGIC, 0, attributes, max(0, count - 1), 0, 0, -1, -1, -1, count)
    return _checked(bytearray(layout.HEADER.pack(*fields) + body))


def _bomb(_: Any, codec: Codec, magic: int) -> bytes:
    return _made_bomb(codec, magic)


@cache
def _made_bomb(codec: Codec, magic: int) -> bytes:
    return as_batch(codec, pieces(codec), magic)


def _nested(_: Any, depth: int = 12) -> bytes:
    inner = message(0)
    for _ in range(depth):
        inner = wrapper(0, inner)
    return inner


def _header_changes() -> dict[str, Callable[[Any], bytes]]:
    changes = {
        "base_offset": (_LEAST, -1, 0, _MOST - 1, _MOST),
        "length": (-(2**31), -1, 0, 48, 49, 2**31 - 1),
        "leader_epoch": (-(2**31), -1, 2**31 - 1),
        "magic": (-128, -1, 0, 1, 3, 127),
        "crc": (0,),
        "attributes": (*range(1, 8), 8, 16, 32, 48, 64, -1, -(2**15)),
        "last_offset_delta": (-(2**31), -1, 0, 2**31 - 1),
        "base_timestamp": (_LEAST, -1, _MOST),
        "max_timestamp": (_LEAST, -1, _MOST),
        "producer_id": (_LEAST, 0, _MOST),
        "producer_epoch": (-(2**15), 0, 2**15 - 1),
        "base_sequence": (-(2**31), 0, 2**31 - 1),
        "count": (-(2**31), -1, 0, 1, 2**31 - 1),
    }
    return {
        f"{name} {number}": partial(
            lambda value, name, number: _with(value, **{name: number}), name=name, number=number
        )
        for name, numbers in changes.items()
        for number in numbers
    }


def _contents() -> dict[str, Callable[[Any], bytes]]:
    bodies = {
        "no records": b"",
        "record of negative length": b"\x01",
        "record of huge length": b"\xfe\xff\xff\xff\x0f",
        "endless varint": b"\xff" * 40,
        "key of negative length": b"\x10\x00\x00\x00\x05\x00\x00\x00\x00",
        "key of huge length": b"\x14\x00\x00\x00\xfe\xff\xff\xff\x0f\x00\x00",
        "headers of huge count": b"\x14\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f",
        "headers of negative count": b"\x0c\x00\x00\x00\x01\x01\x01",
        "garbage": bytes(range(200)),
        "zeros": bytes(5000),
    }
    found: dict[str, Callable[[Any], bytes]] = {
        f"contents: {name}": partial(_with_body, body=body) for name, body in bodies.items()
    }
    found["control batch of garbage"] = partial(_with_body, body=bytes(range(200)), attributes=0x30)
    found["control record without a key"] = partial(
        _with_body, body=b"\x0c\x00\x00\x00\x01\x01\x00", count=1, attributes=0x30
    )
    found["compacted to nothing"] = partial(_with_body, body=b"", count=0)
    for codec in list(Codec)[1:]:
        found[f"{codec.name} of garbage"] = partial(_with_body, body=bytes(range(200)), attributes=int(codec))
        packed = compress(codec, bytes(1000))
        found[f"{codec.name} cut short"] = partial(_with_body, body=packed[: len(packed) // 2], attributes=int(codec))
        found[f"{codec.name} bomb"] = partial(_bomb, codec=codec, magic=2)
        if codec is not Codec.ZSTD:
            found[f"{codec.name} bomb of magic 1"] = partial(_bomb, codec=codec, magic=1)
    return found


class AlwaysTheFirst:
    """Returns the first batch that it has seen, whatever is asked."""

    def __init__(self) -> None:
        self.batch = b""

    def __call__(self, value: Any) -> bytes:
        self.batch = self.batch or _batch(value)
        return self.batch


RECORD_ALTERATIONS: dict[str, Callable[[Any], Any]] = {
    "empty": lambda _: b"",
    "one byte": lambda _: b"\0",
    "garbage": lambda _: bytes(range(256)),
    "ones": lambda _: b"\xff" * 200,
    "zeros": lambda _: bytes(200),
    "cut in the header": lambda value: _batch(value)[:20],
    "cut in the first batch": lambda value: _batch(value)[:-1],
    "cut at the end": lambda value: bytes(value or _template())[:-1],
    "with a tail": lambda value: bytes(value or _template()) + b"\xff" * 100,
    "first batch only": _batch,
    "twice": lambda value: bytes(value or _template()) * 2,
    "backward": lambda value: _moved(value, 10) + _moved(value, -10),
    "later by 1000": partial(_moved, by=1000),
    "earlier by 1": partial(_moved, by=-1),
    "earlier by 1000": partial(_moved, by=-1000),
    "at the first offset": lambda value: _with(value, base_offset=0),
    "always the template": lambda _: _template(),
    "5000 empty batches": lambda value: _with_body(value, b"", 0) * 5000,
    "message sets in one another": _nested,
    "message of magic 0": lambda _: message(0, magic=0),
    "message of magic 1 at the end": lambda _: message(_MOST),
    "message with a codec and no contents": lambda _: message(0, b"", attributes=1),
    "wrapper of nothing": lambda _: wrapper(0),
    **_header_changes(),
    **_contents(),
}
