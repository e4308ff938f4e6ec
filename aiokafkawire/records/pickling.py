"""Pickling of records, so that a process with either implementation can load records of the other."""

from enum import Enum
from typing import Any, Final

__all__ = ("RAW", "restore_record")


class _Raw(Enum):  # an enum's members stay the same object through a pickle
    RAW = "raw"


RAW: Final[Any] = _Raw.RAW
"""The marker of a record's key or value that has no deserializer: the raw key or value is used."""


def restore_record(*fields: Any) -> Any:
    """Restore a pickled record from the fields of its ``__reduce__``, with the record class that this process uses.

    Pickles do not name the record's class, so that a process without the compiled class can load them.
    """
    from .batch import ConsumerRecord  # imported here to avoid an import cycle

    topic, partition, offset, key, value, raw_key, raw_value, headers, timestamp, timestamp_type, leader_epoch = fields
    return ConsumerRecord(
        topic,
        partition,
        offset,
        key=key,
        value=value,
        raw_key=raw_key,
        raw_value=raw_value,
        headers=headers,
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        leader_epoch=leader_epoch,
    )
