"""Messages within others: what groups' members tell one another, what control records hold."""

from struct import unpack_from
from typing import Final

import attrs

from ...errors import WireError
from ...protocol.compiler import decode, decode_prefix
from ...protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ...protocol.messages.control_records import (
    AbortedTxn,
    ControlRecordTypeSchema,
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ...protocol.primitives import Buffer
from ...protocol.schema import Message
from .frame_decoder import Reading, position_of

__all__ = ("control_value", "read_embedded", "read_message")

_PREFIXED: Final = (
    ConsumerProtocolSubscription,
    ConsumerProtocolAssignment,
    ControlRecordTypeSchema,
    EndTxnMarker,
    AbortedTxn,
)
"""Their version stands before them, in two bytes that are none of their fields."""

_NUMBERED: Final = (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord)
"""Their first field is their version."""

_CONTROL: Final[dict[int, type[Message]]] = {
    0: EndTxnMarker,
    1: EndTxnMarker,
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
"""What the value of a control record is, by the type in its key."""


def control_value(kind: int) -> type[Message] | None:
    """The message that a control record of this type has as its value."""
    return _CONTROL.get(kind)


def read_embedded(cls: type[Message], data: Buffer) -> tuple[Message, int] | None:
    """The message of these bytes and its version, if they are one from the first byte to the last."""
    held = bytes(data)
    if len(held) < 2:
        return None
    (version,) = unpack_from(">h", held)
    if version not in cls.versions:
        return None
    try:
        return decode(cls, version, held, 2 if cls in _PREFIXED else 0), version
    except WireError:
        return None


def read_message(data: bytes, cls: type[Message], version: int | None) -> Reading:
    """Read a message that stands alone, without a header; without a version it says its own, or the newest that reads.

    Nothing is raised, see :attr:`Reading.problem`.
    """
    if cls in (*_PREFIXED, *_NUMBERED) and len(data) >= 2:
        (said,) = unpack_from(">h", data)
        if version in (None, said) and said >= 0:
            told = _of_its_own_version(data, cls, said)
            if version is None or not told.problem:
                return told
    if version is not None:
        reading = _at(data, cls, version)
        if not reading.problem:
            return reading
        versions = range(cls.versions.last, cls.versions.first - 1, -1)
        others = tuple(one for one in versions if not _at(data, cls, one).problem)
        return attrs.evolve(reading, others=others)
    readings = [_at(data, cls, one) for one in range(cls.versions.last, cls.versions.first - 1, -1)]
    whole = [one for one in readings if not one.problem]
    if not whole:
        furthest = max(readings, key=lambda one: one.position or 0)
        problem = f"no version of {cls.__name__} ({cls.versions}) reads it; the one that got furthest: "
        return attrs.evolve(furthest, problem=problem + furthest.problem)
    too = "".join(f", v{one.version}" for one in whole[1:])
    note = f"no version was given: this is the newest that reads it{too}{' would too' if too else ''}"
    return attrs.evolve(whole[0], notes=(note,))


def _of_its_own_version(data: bytes, cls: type[Message], said: int) -> Reading:
    position = 2 if cls in _PREFIXED else 0
    where = "in the two bytes before it" if position else "in its first field"
    notes = [f"its version is {where}: {said}"]
    version = min(said, cls.versions.last)
    started = Reading("message", version=version, notes=(*notes,))
    if version == said:
        return _at(data, cls, version, position, started)
    # Fields are only ever added at the end, so that older readers can leave them.
    try:
        message, end = decode_prefix(cls, version, data, position)
    except WireError as error:
        return attrs.evolve(started, problem=str(error), position=position_of(error))
    notes.append(f"v{said} is newer than what is known here: read as v{version}, with {len(data) - end} bytes left")
    return attrs.evolve(started, message=message, notes=(*notes,))


def _at(data: bytes, cls: type[Message], version: int, position: int = 0, started: Reading | None = None) -> Reading:
    started = started or Reading("message", version=version)
    try:
        return attrs.evolve(started, message=decode(cls, version, data, position))
    except WireError as error:
        return attrs.evolve(started, problem=str(error), position=position_of(error))
