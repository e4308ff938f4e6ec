"""Decodes embedded messages: subscriptions and assignments of group members, and control records."""

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
"""Messages that have their version in two bytes before the first field."""

_NUMBERED: Final = (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord)
"""Messages whose first field is their version."""

_CONTROL: Final[dict[int, type[Message]]] = {
    0: EndTxnMarker,
    1: EndTxnMarker,
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
"""The message in the value of a control record, by the type in its key."""


def control_value(control_type: int) -> type[Message] | None:
    """Return the class of the message in the value of a control record of this type, or None."""
    return _CONTROL.get(control_type)


def read_embedded(cls: type[Message], data: Buffer) -> tuple[Message, int] | None:
    """Decode a message that fills ``data``, and return it with its version; return None for other data."""
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
    """Decode a message without a header. Errors are in :attr:`Reading.problem`.

    If ``version`` is None, the version in the message is used or, if it has none, the newest version that decodes it.
    """
    if cls in (*_PREFIXED, *_NUMBERED) and len(data) >= 2:
        (own,) = unpack_from(">h", data)
        if version in (None, own) and own >= 0:
            reading = _of_its_own_version(data, cls, own)
            if version is None or not reading.problem:
                return reading
    if version is not None:
        reading = _at(data, cls, version)
        if not reading.problem:
            return reading
        versions = range(cls.versions.last, cls.versions.first - 1, -1)
        others = tuple(other for other in versions if not _at(data, cls, other).problem)
        return attrs.evolve(reading, others=others)
    readings = [_at(data, cls, candidate) for candidate in range(cls.versions.last, cls.versions.first - 1, -1)]
    whole = [reading for reading in readings if not reading.problem]
    if not whole:
        furthest = max(readings, key=lambda reading: reading.position or 0)
        problem = f"no version of {cls.__name__} ({cls.versions}) decodes it; the longest attempt: "
        return attrs.evolve(furthest, problem=problem + furthest.problem)
    listed = ", ".join(f"v{reading.version}" for reading in whole[1:])
    note = f"no version was given: this is the newest that decodes it{'; others: ' if listed else ''}{listed}"
    return attrs.evolve(whole[0], notes=(note,))


def _of_its_own_version(data: bytes, cls: type[Message], own: int) -> Reading:
    position = 2 if cls in _PREFIXED else 0
    source = "in the two bytes before it" if position else "in its first field"
    notes = [f"its version is {source}: {own}"]
    version = min(own, cls.versions.last)
    started = Reading("message", version=version, notes=(*notes,))
    if version == own:
        return _at(data, cls, version, position, started)
    # New fields are added at the end, so that older readers can ignore them.
    try:
        message, end = decode_prefix(cls, version, data, position)
    except WireError as error:
        return attrs.evolve(started, problem=str(error), position=position_of(error))
    notes.append(f"v{own} is newer than the known versions: read as v{version}, with {len(data) - end} bytes left")
    return attrs.evolve(started, message=message, notes=(*notes,))


def _at(data: bytes, cls: type[Message], version: int, position: int = 0, started: Reading | None = None) -> Reading:
    started = started or Reading("message", version=version)
    try:
        return attrs.evolve(started, message=decode(cls, version, data, position))
    except WireError as error:
        return attrs.evolve(started, problem=str(error), position=position_of(error))
