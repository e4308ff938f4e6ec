"""Converts record batches to the view model; the batches after a damaged batch are shown, too."""

from collections.abc import Callable
from struct import unpack_from
from typing import Any, Final, TypeAlias

from ...errors import CorruptBatch
from ...records import layout
from ...records.batch import AnyBatch, AnyHeader, split
from ...records.compression import Codec
from ...types import TimestampType
from ..counted import counted
from .enum_names import iso_time
from .view_model import Array, Leaf, NamedValue, Shown, Struct

__all__ = ("describe_batches",)

Control: TypeAlias = Callable[[bytes | None, bytes | None], tuple[Struct | None, Struct | None]]
"""A function that decodes the key and value of a control record."""

_TOPIC: Final = "records"
_MAX_RECORDS: Final = 200_000
"""The maximum number of records to show of a batch, to bound memory for highly compressed batches."""

_HEADER: Final = (
    "magic",
    "leader_epoch",
    "crc",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)


def describe_batches(data: bytes, control: Control) -> tuple[Array, bool]:
    """Return the batches of a buffer, and whether any is damaged; a truncated last batch does not count as damaged."""
    shown: list[Shown] = []
    damaged, position = False, 0
    view = memoryview(data)
    while position < len(data):
        try:
            for batch in split(view[position:]):
                struct, bad = _batch(batch, position, control)
                shown.append(struct)
                damaged = damaged or bad
                position += batch.header.size
        except CorruptBatch as error:
            damaged = True
            size = _size_at(data, position)
            # Remove the error's position, which is relative to the bytes passed to split().
            what = str(error).partition(": ")[2] or str(error)
            shown.append(_note(f"damaged batch at byte {position}: {what}", data[position : position + size]))
            position += size
            continue
        if position < len(data):  # the last batch is truncated
            shown.append(_cut(data, position))
            break
    return Array((*shown,)), damaged


def _size_at(data: bytes, position: int) -> int:
    """Return the size to skip for a damaged batch: its own size if that is plausible, or else all remaining bytes."""
    left = len(data) - position
    if left <= layout.MAGIC_AT:
        return left
    (length,) = unpack_from(">i", data, position + layout.LENGTH_AT)
    size = layout.LOG_OVERHEAD + int(length)
    return size if length >= layout.SHORTEST_MESSAGE and size <= left else left


def _cut(data: bytes, position: int) -> Struct:
    left = len(data) - position
    if left <= layout.MAGIC_AT:
        return _note(f"{left} bytes at byte {position}, of a truncated batch", data[position:])
    base_offset, length = unpack_from(">qi", data, position)
    whole = layout.LOG_OVERHEAD + length
    text = f"truncated batch at byte {position} (offset {base_offset}): the buffer has {left} of its {whole} bytes"
    return _note(text, data[position:])


def _note(text: str, data: bytes) -> Struct:
    return Struct((NamedValue("note", Leaf(text)), NamedValue("bytes", Leaf(data))), text, frozenset({"note"}))


def _batch(batch: AnyBatch, position: int, control: Control) -> tuple[Struct, bool]:
    header = batch.header
    crc_problem = _problem(batch.check)
    records, damage = _records(batch, control, check_crcs=not crc_problem)
    facts: dict[str, Any] = {
        "position": position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": getattr(header, "count", None),
        "size": header.size,
        "compression": _codec(header.codec),
        "timestamp_type": _timestamp_type(header),
        "crc_ok": not crc_problem,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "delete_horizon": getattr(header, "delete_horizon", None),
        **{name: value for name in _HEADER if (value := getattr(header, name, None)) is not None},
    }
    entries = [NamedValue(name, Leaf(value, _time(name, value))) for name, value in facts.items()]
    problems = [problem for problem in (crc_problem, damage) if problem]
    if problems:
        entries.append(NamedValue("damage", Array(tuple(Leaf(problem) for problem in problems))))
    if len(records) == _MAX_RECORDS:
        entries.append(NamedValue("note", Leaf(f"records after the first {_MAX_RECORDS} are left out")))
    entries.append(NamedValue("records", Array(records)))
    return Struct((*entries,), _title(facts, len(records)), frozenset(facts)), bool(problems)


def _records(batch: Any, control: Control, *, check_crcs: bool) -> tuple[tuple[Shown, ...], str]:
    """Return the records before the first damaged record, and a description of the damage, or ``""`` without damage."""
    shown: list[Shown] = []
    is_control = batch.header.is_control
    try:
        for record in batch.records(_TOPIC, 0, check_crcs=check_crcs):
            key, value = record.raw_key, record.raw_value
            decoded_key, decoded_value = control(key, value) if is_control else (None, None)
            time = iso_time(record.timestamp) if record.timestamp >= 0 else ""
            entries = (
                NamedValue("offset", Leaf(record.offset)),
                NamedValue("timestamp", Leaf(record.timestamp, time)),
                NamedValue("key", Leaf(key, holds=decoded_key)),
                NamedValue("value", Leaf(value, holds=decoded_value)),
                NamedValue("headers", Array(tuple(_header(*header) for header in record.headers))),
            )
            when = f", {time} ({record.timestamp} ms)" if time else f", timestamp {record.timestamp}"
            shown.append(Struct(entries, f"offset {record.offset}{when}", frozenset({"offset", "timestamp"})))
            if len(shown) == _MAX_RECORDS:
                break
    except CorruptBatch as error:
        return (*shown,), str(error).removeprefix(f"{_TOPIC}-0: ")
    return (*shown,), ""


def _header(name: str, value: bytes | None) -> Struct:
    return Struct((NamedValue("name", Leaf(name)), NamedValue("value", Leaf(value))))


def _problem(check: Callable[[], object]) -> str:
    try:
        check()
    except CorruptBatch as error:
        return str(error).partition(": ")[2] or str(error)
    return ""


def _codec(number: int) -> str:
    try:
        return Codec(number).name.lower()
    except ValueError:
        return f"unknown codec {number}"


def _timestamp_type(header: AnyHeader) -> str:
    kind: Any = getattr(header, "timestamp_type", None)
    names = {TimestampType.CREATE_TIME: "CreateTime", TimestampType.LOG_APPEND_TIME: "LogAppendTime"}
    return names.get(kind, "no timestamps")


def _time(name: str, value: object) -> str:
    if name.endswith(("timestamp", "delete_horizon")) and isinstance(value, int) and value >= 0:
        return iso_time(value)
    return ""


def _title(facts: dict[str, Any], read: int) -> str:
    last, count = facts["last_offset"], facts["count"]
    crc = [f"{facts['crc']:#010x}"] if "crc" in facts else []  # message sets may have one for each message
    parts = [
        _offsets(facts["base_offset"], last),
        counted(read if count is None else count, "record"),
        f"{facts['size']} bytes at byte {facts['position']}",
        f"magic {facts.get('magic', '?')}",
        "not compressed" if facts["compression"] == "none" else facts["compression"],
        " ".join(("CRC", *crc, "ok" if facts["crc_ok"] else "BAD")),
        facts["timestamp_type"],
    ]
    if facts.get("producer_id", -1) >= 0:
        epoch, sequence = facts.get("producer_epoch"), facts.get("base_sequence")
        parts.append(f"producer {facts['producer_id']} epoch {epoch} sequence {sequence}")
    if facts.get("leader_epoch", -1) >= 0:
        parts.append(f"leader epoch {facts['leader_epoch']}")
    parts += [name for name in ("transactional", "control") if facts[name]]
    if facts["delete_horizon"] is not None:
        parts.append(f"delete horizon {_time('delete_horizon', facts['delete_horizon']) or facts['delete_horizon']}")
    return ", ".join(parts)


def _offsets(first: int, last: int | None) -> str:
    if first < 0 and last is not None:
        return f"offsets up to {last}"  # a compressed message set has only its last offset
    return f"offset {first}" if last in (None, first) else f"offsets {first}-{last}"
