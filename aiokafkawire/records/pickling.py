"""What both twins' records need to be pickled by one process and loaded by another."""

from enum import Enum
from typing import Any, Final

__all__ = ("RAW", "restore_record")


class _Raw(Enum):  # an enum's members stay the same object through a pickle
    RAW = "raw"


RAW: Final[Any] = _Raw.RAW
"""Stands for a key or value that no deserializer made: the raw one is meant."""


def restore_record(*fields: Any) -> Any:
    """A record from the fields that its ``__reduce__`` gave, of the class that this process uses.

    A process without the compiled twin must be able to load what one with it has pickled, so neither names itself.
    """
    from .batch import ConsumerRecord  # batch imports the twins, and they this

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
