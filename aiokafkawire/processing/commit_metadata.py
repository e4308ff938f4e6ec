"""The text in the metadata of a commit: which records after the committed offset are finished.

The text is ``akw2:`` and base64 of numbers as unsigned varints: the committed offset, the newest leader epoch of the
finished records and one, and then, for each run of finished offsets, the number of unfinished offsets before it and its
own length. The committed offset is in it so that the text does not count for another offset, to which an operator or a
mirroring tool may have moved the group; the epoch, so that it does not count for records that a newer leader has
appended in the place of finished ones, which it had not got.
"""

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import attrs

__all__ = ("MAX_METADATA_BYTES", "FinishedRecords", "OffsetRange", "decode_metadata", "encode_metadata")

OffsetRange: TypeAlias = tuple[int, int]
"""Finished offsets: the first one, and the one after the last."""


@attrs.frozen
class FinishedRecords:
    """The records after a committed offset that are finished."""

    offset: int
    """The committed offset."""
    ranges: Sequence[OffsetRange] = ()
    """Their offsets, in ascending order."""
    leader_epoch: int | None = None
    """The newest leader epoch of them; None if it is not known."""
    epoch_before: int | None = None
    """The leader epoch of the record before the committed offset; None if it is not known."""


MAX_METADATA_BYTES: Final = 4096
"""The default of the broker's ``offset.metadata.max.bytes``."""
_PREFIX: Final = "akw2:"
_MAX_OFFSET: Final = 2**63 - 1
_MAX_VARINT_BYTES: Final = 9


def encode_metadata(
    offset: int,
    finished: Iterable[OffsetRange],
    limit: int = MAX_METADATA_BYTES,
    *,
    leader_epoch: int | None = None,
) -> str:
    """Return the text for finished ranges from ``offset`` on, in at most ``limit`` bytes; empty without ranges.

    The ranges must be ascending, and neither empty nor adjacent. The last ones are left out if the text would be too
    long. The leader epoch is the newest one of their records.
    """
    available = (limit - len(_PREFIX)) // 4 * 3
    data = bytearray()
    _append(data, offset)
    _append(data, 0 if leader_epoch is None else leader_epoch + 1)
    first_length, end = len(data), offset
    for start, stop in finished:
        kept = len(data)
        _append(data, start - end)
        _append(data, stop - start)
        if len(data) > available:
            del data[kept:]
            break
        end = stop
    return _PREFIX + b64encode(data).decode() if len(data) > first_length else ""


def decode_metadata(offset: int, text: str, epoch_before: int | None = None) -> FinishedRecords:
    """Return what is finished after the committed ``offset``; nothing if the text has another origin or is damaged.

    ``epoch_before`` is the leader epoch of the commit.
    """
    nothing = FinishedRecords(offset, epoch_before=epoch_before)
    if not text.startswith(_PREFIX):
        return nothing
    try:
        numbers = _numbers(b64decode(text[len(_PREFIX) :].encode(), validate=True))
    except (ValueError, Error):
        return nothing
    if not numbers or numbers[0] != offset or len(numbers) % 2 or 0 in numbers[3:]:
        return nothing
    found: list[OffsetRange] = []
    end = offset
    for gap, length in zip(numbers[2::2], numbers[3::2], strict=True):
        start = end + gap
        end = start + length
        found.append((start, end))
    if end > _MAX_OFFSET:
        return nothing
    return FinishedRecords(offset, found, numbers[1] - 1 if numbers[1] else None, epoch_before)


def _append(data: bytearray, number: int) -> None:
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)


def _numbers(data: bytes) -> list[int]:
    """Return the varints in the bytes.

    Raises:
        ValueError: a varint is too long, or is cut off.
    """
    found: list[int] = []
    number = shift = 0
    for byte in data:
        if shift >= 7 * _MAX_VARINT_BYTES:
            raise ValueError("a varint is too long")
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            found.append(number)
            number = shift = 0
    if shift:
        raise ValueError("a varint is cut off")
    return found
