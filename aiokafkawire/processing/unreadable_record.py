"""A record whose key or value cannot be deserialized."""

from typing import Any

import attrs

from ..errors import DeserializationError
from ..types import Header, TopicPartition

__all__ = ("Undeserialized", "UnreadableRecord", "failed_partition")


@attrs.frozen(eq=False)
class Undeserialized:
    """The place of a key or value whose deserializer has failed."""

    error: BaseException


@attrs.frozen(eq=False)
class UnreadableRecord:
    """A record whose deserializer has failed: it takes its turn, and fails without a call of the handler."""

    error: DeserializationError
    given: Any = None
    """The record as a share consumer has given it; None for other consumers."""

    @property
    def topic(self) -> str:
        """The record's topic."""
        return failed_partition(self.error).topic

    @property
    def partition(self) -> int:
        """The record's partition."""
        return failed_partition(self.error).partition

    @property
    def offset(self) -> int:
        """The record's offset."""
        return self.error.offset

    @property
    def raw_key(self) -> bytes | None:
        """The key's bytes."""
        return self.error.raw_key

    @property
    def raw_value(self) -> bytes | None:
        """The value's bytes."""
        return self.error.raw_value

    @property
    def headers(self) -> tuple[Header, ...]:
        """The headers."""
        return self.error.headers

    @property
    def timestamp(self) -> int:
        """The timestamp in ms since the epoch; -1 if the record has none."""
        return self.error.timestamp

    @property
    def leader_epoch(self) -> int | None:
        """The epoch of the leader that appended the record, None if it is not known."""
        epoch: int | None = self.error._record.leader_epoch
        return epoch


def failed_partition(error: DeserializationError) -> TopicPartition:
    """Return the partition of the record that could not be deserialized."""
    assert error.partition is not None  # the consumer has made the error
    return TopicPartition(*error.partition)
