"""A consumed record, compiled: part of _hot.pyx."""


@cython.final
@cython.no_gc  # otherwise the collector might clear the view while the buffer is in use
cdef class Source:
    """The fields that are equal for all records of a batch, and the batch's decompressed body."""

    def __cinit__(self):
        self.is_held = False

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.buffer)

    cdef int hold(self, view) except -1:
        PyObject_GetBuffer(view, &self.buffer, PyBUF_SIMPLE)
        self.is_held = True
        self.view = view
        return 0


cdef Source made_source(topic, partition, leader_epoch, timestamp_type):
    cdef Source source = Source.__new__(Source)
    source.topic = topic
    source.partition = partition
    source.leader_epoch = leader_epoch
    source.timestamp_type = timestamp_type
    return source


# The source of a record that was never initialised. Records do not refer to it, or to RAW: without the GIL, threads wait
# for each other when they count references to an object that all records share.
cdef Source NOWHERE = made_source("", -1, None, CREATE_TIME)


@cython.final
@cython.freelist(256)
cdef class ConsumerRecord:
    """One record of a topic: immutable, hashable, picklable.

    A record from a batch keeps the batch's bytes alive, and copies its key and value on first access. To keep a record
    for a long time, keep the copy that :meth:`detach` returns. ``key`` and ``value`` are the results of the consumer's
    deserializers, or the raw bytes if it has none.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        topic,
        partition,
        offset,
        *,
        key=RAW,
        value=RAW,
        raw_key=None,
        raw_value=None,
        headers=(),
        timestamp=-1,
        timestamp_type=CREATE_TIME,
        leader_epoch=None,
    ):
        """Make a record for tests and pipelines; ``key`` and ``value`` default to ``raw_key`` and ``raw_value``."""
        self._source = made_source(topic, partition, leader_epoch, timestamp_type)
        self._offset = offset
        self._timestamp = timestamp
        self._key_at = self._value_at = NULL
        self._raw_key = raw_key
        self._raw_value = raw_value
        self._has_key, self._has_value = key is not RAW, value is not RAW
        self._key = key
        self._value = value
        self._headers = tuple(headers)

    cdef inline Source source(self):
        return NOWHERE if self._source is None else self._source

    @property
    def topic(self):
        """The record's topic."""
        return self.source().topic

    @property
    def partition(self):
        """The record's partition."""
        return self.source().partition

    @property
    def offset(self):
        """The record's offset in the partition."""
        return self._offset

    @property
    def timestamp(self):
        """The timestamp in ms since the epoch; -1 if the record has none."""
        return self._timestamp

    @property
    def timestamp_type(self):
        """Whether the producer or the broker set the timestamp."""
        return self.source().timestamp_type

    @property
    def leader_epoch(self):
        """The epoch of the leader that appended the record; None if the broker did not return it."""
        return self.source().leader_epoch

    @property
    def headers(self):
        """The headers' names and values, in the producer's order; a name may occur several times."""
        return self._headers

    @property
    def raw_key(self):
        """The key's bytes, or None for a null key."""
        with cython.critical_section(self):
            if self._key_at is not NULL:
                self._raw_key = PyBytes_FromStringAndSize(self._key_at, self._key_size)
                self._key_at = NULL
            return self._raw_key

    @property
    def raw_value(self):
        """The value's bytes, or None for a null value (a tombstone, in a compacted topic)."""
        with cython.critical_section(self):
            if self._value_at is not NULL:
                self._raw_value = PyBytes_FromStringAndSize(self._value_at, self._value_size)
                self._value_at = NULL
            return self._raw_value

    @property
    def key(self):
        """The deserialized key, or the raw key if there is no ``key_deserializer``; None for a null key."""
        if self._has_key:
            return self._key
        with cython.critical_section(self):
            if self._key_at is not NULL:
                self._raw_key = PyBytes_FromStringAndSize(self._key_at, self._key_size)
                self._key_at = NULL
            return self._raw_key

    @property
    def value(self):
        """The deserialized value, or the raw value if there is no ``value_deserializer``; None for a null value."""
        if self._has_value:
            return self._value
        with cython.critical_section(self):
            if self._value_at is not NULL:
                self._raw_value = PyBytes_FromStringAndSize(self._value_at, self._value_size)
                self._value_at = NULL
            return self._raw_value

    def detach(self):
        """Return a copy of the record with its own bytes, which does not keep the batch alive."""
        cdef Source source = self.source()
        if not source.is_held:
            return self
        return ConsumerRecord(
            source.topic,
            source.partition,
            self._offset,
            key=self._key if self._has_key else RAW,
            value=self._value if self._has_value else RAW,
            raw_key=self.raw_key,
            raw_value=self.raw_value,
            headers=self._headers,
            timestamp=self._timestamp,
            timestamp_type=source.timestamp_type,
            leader_epoch=source.leader_epoch,
        )

    cdef tuple location(self):
        cdef Source source = self.source()
        return source.topic, source.partition, self._offset

    cdef tuple rest(self):
        cdef Source source = self.source()
        return self.raw_key, self.raw_value, self._headers, self._timestamp, source.timestamp_type, source.leader_epoch

    def __eq__(self, other):
        cdef ConsumerRecord record
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        record = other
        if self.location() != record.location() or self.rest() != record.rest():
            return False
        return bool(self.key == record.key and self.value == record.value)

    def __hash__(self):
        return hash((*self.location(), *self.rest()))

    def __reduce__(self):
        key = self._key if self._has_key else RAW
        value = self._value if self._has_value else RAW
        return restore_record, (*self.location(), key, value, *self.rest())

    def __repr__(self):
        headers = f", headers={self._headers!r}" if self._headers else ""
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self._offset}, "
            f"timestamp={self._timestamp}, key={shown(self.key)}, value={shown(self.value)}{headers})"
        )
