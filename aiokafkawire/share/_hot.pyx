# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""Records of share consumers, and acknowledgements of many in a row, compiled; _pure.py has them in plain Python."""

from types import GenericAlias

from libc.stdint cimport int64_t

from ..records._hot cimport ConsumerRecord

from ..errors import UsageError
from .acknowledgements import Acknowledge
from .share_record import Reject, outcome_of

cimport cython

__all__ = ("AcknowledgedRun", "ShareRecord", "mark_accepted", "share_records")


cdef object ACCEPT = Acknowledge.ACCEPT


@cython.final
@cython.freelist(256)
cdef class ShareRecord:
    """A record that this consumer has acquired: no other member gets it while its lock holds.

    Use it as ``async with record`` (or ``with record``): leaving the body accepts the record, an exception releases it,
    and :class:`Reject` rejects it. The lock is renewed while the body runs, on Kafka 4.2 and later. Or call the
    consumer's ``acknowledge()``.
    """

    cdef ConsumerRecord record
    cdef readonly object delivery_count, acquisition, owner
    cdef public object acknowledged

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, ConsumerRecord record not None, delivery_count, acquisition, owner):
        self.record, self.delivery_count, self.acquisition, self.owner = record, delivery_count, acquisition, owner

    @property
    def lock_end(self):
        """When the lock ends at the earliest, in seconds of the event loop's clock."""
        return self.acquisition.renewed.get(self.record._offset, self.acquisition.first_end)

    @property
    def topic(self):
        """The record's topic."""
        return self.acquisition.partition.topic

    @property
    def partition(self):
        """The record's partition."""
        return self.acquisition.partition.partition

    @property
    def offset(self):
        """The record's offset in the partition."""
        return self.record._offset

    @property
    def key(self):
        """The key, deserialized if the consumer has a deserializer."""
        return self.record.key

    @property
    def value(self):
        """The value, deserialized if the consumer has a deserializer."""
        return self.record.value

    @property
    def raw_key(self):
        """The key's bytes, or None for a null key."""
        return self.record.raw_key

    @property
    def raw_value(self):
        """The value's bytes, or None for a null value."""
        return self.record.raw_value

    @property
    def headers(self):
        """The headers, in order."""
        return self.record._headers

    @property
    def timestamp_ms(self):
        """The timestamp in ms since the epoch; -1 if the record has none."""
        return self.record._timestamp

    @property
    def timestamp_type(self):
        """Whether the producer or the broker set the timestamp."""
        return self.record.timestamp_type

    def __enter__(self):
        if self.acknowledged is not None:
            raise UsageError(f"{self} was acknowledged already ({self.acknowledged.name})")
        self.owner.begin(self)
        return self

    def __exit__(self, kind, error, trace):
        if self.acknowledged is None:
            try:
                self.owner.acknowledge(self, ACCEPT if error is None else outcome_of(error))
            except UsageError:
                if error is None:  # closed meanwhile; otherwise the error of the body matters more
                    raise
        return False if error is None else isinstance(error, Reject)

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, kind, error, trace):
        return self.__exit__(kind, error, trace)

    def __repr__(self):
        where = f"{self.topic}-{self.partition} at offset {self.record._offset}"
        return f"<ShareRecord {where}, delivery {self.delivery_count}>"


def share_records(records, counts, acquisition, owner):
    """Return the records of one acquisition as share records; ``counts`` are their delivery counts."""
    cdef ShareRecord made
    cdef ConsumerRecord record
    cdef list found = []
    for record, count in zip(records, counts, strict=True):
        made = ShareRecord.__new__(ShareRecord)
        made.record, made.delivery_count, made.acquisition, made.owner = record, count, acquisition, owner
        found.append(made)
    return found


def mark_accepted(records):
    """Set the acknowledgement of each record to ACCEPT."""
    cdef ShareRecord record
    for record in records:
        record.acknowledged = ACCEPT


@cython.final
cdef class AcknowledgedRun:
    """The user's last acknowledgements: of consecutive records of one acquisition, of one kind, in one event loop.

    Users acknowledge most records in order, and :meth:`extend` costs little for each of them.

    Args:
        place: returns what identifies the running event loop.
    """

    cdef object acquisition, kind, place, where
    cdef int64_t first, last

    def __cinit__(self, place):
        self.place = place

    def begin(self, ShareRecord record not None, kind):
        """Start the run after this record, which is not part of it."""
        self.acquisition, self.kind = record.acquisition, kind
        self.first, self.last = record.record._offset + 1, record.record._offset
        self.where = self.place()

    def extend(self, record, kind):
        """Acknowledge a record if it continues the run; return whether it does."""
        cdef ShareRecord given
        if kind is not self.kind or type(record) is not ShareRecord:
            return False
        given = <ShareRecord>record
        if (
            given.acquisition is not self.acquisition
            or given.record._offset != self.last + 1
            or given.acknowledged is not None
            or self.where != self.place()
        ):
            return False
        self.last += 1
        given.acknowledged = self.kind
        return True

    def end(self):
        """End the run; return its acquisition, its first and last offset, and its kind. Return None if it is empty."""
        acquisition, kind = self.acquisition, self.kind
        self.acquisition = self.kind = self.where = None
        if acquisition is None or kind is None or self.last < self.first:
            return None
        return acquisition, self.first, self.last, kind
