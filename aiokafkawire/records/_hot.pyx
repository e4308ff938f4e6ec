# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""The record loop, compiled: the fast twin of _pure.py, with the same names and behaviour.

It refuses the same bytes as the pure reader. What is wrong with them, that one says: it is asked to read on from where
this one stopped.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.number cimport PyNumber_Index
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cimport cython

from types import GenericAlias

from ..errors import DeserializationError, UsageError
from ..types import TimestampType
from . import layout
from ._pure import RecordReader as PureReader
from ._pure_record import shown
from .checksum import crc32c
from .compression import Codec, compress
from .pickling import RAW as _RAW, restore_record

__all__ = ("BatchBuilder", "ConsumerRecord", "Delivery", "RecordReader", "record_size_bound")


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)
    bint PyBytes_Check(object)


cdef object RAW = _RAW
cdef object LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
cdef object CREATE_TIME = TimestampType.CREATE_TIME
cdef Py_ssize_t HEADER_SIZE = layout.HEADER_SIZE
cdef int64_t SHORTEST_RECORD = layout.SHORTEST_RECORD
cdef Py_ssize_t RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, two deltas, three lengths
cdef Py_ssize_t FIRST_ROOM = 1024


# --- varints -------------------------------------------------------------------------------------------------


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline int64_t unzigzag(uint64_t raw) noexcept nogil:
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)


cdef inline Py_ssize_t varint_size(int64_t value) noexcept nogil:
    cdef uint64_t raw = zigzag(value)
    cdef Py_ssize_t size = 1
    while raw > 0x7F:
        raw >>= 7
        size += 1
    return size


cdef inline uint8_t *put_varint(uint8_t *to, int64_t value) noexcept nogil:
    cdef uint64_t raw = zigzag(value)
    while raw > 0x7F:
        to[0] = <uint8_t>(raw & 0x7F | 0x80)
        to += 1
        raw >>= 7
    to[0] = <uint8_t>raw
    return to + 1


cdef inline uint8_t *put_bytes(uint8_t *to, const char *what, Py_ssize_t size) noexcept nogil:
    """A length and that many bytes; the length alone for null."""
    to = put_varint(to, size)
    if size > 0:
        memcpy(to, what, size)
        to += size
    return to


cdef const uint8_t *long_varint(const uint8_t *at, const uint8_t *end, int bits, int64_t *value) noexcept nogil:
    """The value at ``at``, and where it ends; NULL if it is cut short, or has more than so many bits."""
    cdef uint64_t raw = 0, byte
    cdef int shift = 0
    while True:
        # Ten bytes hold 64 bits, and the tenth only one of them.
        if at >= end or shift > bits:
            return NULL
        byte = at[0]
        at += 1
        if shift == 63 and byte & 0x7F > 1:
            return NULL
        raw |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if bits == 32 and raw >> 32:
        return NULL
    value[0] = unzigzag(raw)
    return at


cdef inline const uint8_t *varint(const uint8_t *at, const uint8_t *end, int bits, int64_t *value) noexcept nogil:
    if at < end and at[0] < 0x80:
        value[0] = unzigzag(at[0])
        return at + 1
    return long_varint(at, end, bits, value)


# --- what was consumed ---------------------------------------------------------------------------------------


@cython.final
@cython.no_gc  # or the collector might empty the view, which is in use here, before it comes to this
cdef class Source:
    """What the records of one batch share, and the inflated body that they pin."""

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


cdef Source NOWHERE = made_source("", -1, None, CREATE_TIME)


@cython.final
@cython.freelist(256)
cdef class ConsumerRecord:
    """One record of a topic: immutable, hashable, picklable.

    A record read from a batch pins the batch's bytes, and copies its key and value out when they are touched first.
    Keep it for long, and :meth:`detach` is what you want. ``key`` and ``value`` are what the consumer's deserializers
    made, or without them the raw bytes.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __cinit__(self, *_, **__):
        self._source = NOWHERE

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
        """A record of your own, for tests and pipelines; ``key`` and ``value`` default to the raw ones."""
        self._source = made_source(topic, partition, leader_epoch, timestamp_type)
        self._offset = offset
        self._timestamp = timestamp
        self._key_at = self._value_at = NULL
        self._raw_key = raw_key
        self._raw_value = raw_value
        self._key = key
        self._value = value
        self._headers = tuple(headers)

    @property
    def topic(self):
        """The topic it is in."""
        return self._source.topic

    @property
    def partition(self):
        """The partition it is in."""
        return self._source.partition

    @property
    def offset(self):
        """Its place in the partition."""
        return self._offset

    @property
    def timestamp(self):
        """In ms since the epoch, -1 for none; ``timestamp_type`` says whose it is."""
        return self._timestamp

    @property
    def timestamp_type(self):
        """Whether the producer set the timestamp, or the broker."""
        return self._source.timestamp_type

    @property
    def leader_epoch(self):
        """The epoch of the leader that appended it, if the broker told."""
        return self._source.leader_epoch

    @property
    def headers(self):
        """Names and values, in the producer's order; names may come twice."""
        return self._headers

    @property
    def raw_key(self):
        """The key's bytes, or None for a null key."""
        if self._key_at is not NULL:
            self._raw_key = PyBytes_FromStringAndSize(self._key_at, self._key_size)
            self._key_at = NULL
        return self._raw_key

    @property
    def raw_value(self):
        """The value's bytes, or None for a null value (a tombstone, in a compacted topic)."""
        if self._value_at is not NULL:
            self._raw_value = PyBytes_FromStringAndSize(self._value_at, self._value_size)
            self._value_at = NULL
        return self._raw_value

    @property
    def key(self):
        """What the key's deserializer made, or the raw key; None for a null key."""
        if self._key is not RAW:
            return self._key
        if self._key_at is not NULL:
            self._raw_key = PyBytes_FromStringAndSize(self._key_at, self._key_size)
            self._key_at = NULL
        return self._raw_key

    @property
    def value(self):
        """What the value's deserializer made, or the raw value; None for a null value."""
        if self._value is not RAW:
            return self._value
        if self._value_at is not NULL:
            self._raw_value = PyBytes_FromStringAndSize(self._value_at, self._value_size)
            self._value_at = NULL
        return self._raw_value

    def detach(self):
        """The same record with bytes of its own, which keeps nothing else of its batch alive."""
        cdef Source source = self._source
        if not source.is_held:
            return self
        return ConsumerRecord(
            source.topic,
            source.partition,
            self._offset,
            key=self._key,
            value=self._value,
            raw_key=self.raw_key,
            raw_value=self.raw_value,
            headers=self._headers,
            timestamp=self._timestamp,
            timestamp_type=source.timestamp_type,
            leader_epoch=source.leader_epoch,
        )

    cdef tuple place(self):
        return self._source.topic, self._source.partition, self._offset

    cdef tuple rest(self):
        cdef Source source = self._source
        return self.raw_key, self.raw_value, self._headers, self._timestamp, source.timestamp_type, source.leader_epoch

    def __eq__(self, other):
        cdef ConsumerRecord one
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        one = other
        if self.place() != one.place() or self.rest() != one.rest():
            return False
        return bool(self.key == one.key and self.value == one.value)

    def __hash__(self):
        return hash((*self.place(), *self.rest()))

    def __reduce__(self):
        return restore_record, (*self.place(), self._key, self._value, *self.rest())

    def __repr__(self):
        headers = f", headers={self._headers!r}" if self._headers else ""
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self._offset}, "
            f"timestamp={self._timestamp}, key={shown(self.key)}, value={shown(self.value)}{headers})"
        )


@cython.final
cdef class RecordReader:
    """Iterates the records of one batch, from its inflated body.

    An iterator that outlives errors: after a DeserializationError the next step gives the next record, after a
    CorruptBatch it finds the same damage again. Every record is checked as a whole before it is handed out.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(
        self,
        body,
        *,
        int64_t count,
        int64_t base_offset,
        int64_t last_offset_delta,
        int64_t base_timestamp,
        int64_t max_timestamp,
        timestamp_type,
        topic,
        partition,
        leader_epoch=None,
        int64_t from_offset=0,
        key_deserializer=None,
        value_deserializer=None,
    ):
        self._source = made_source(topic, partition, leader_epoch, timestamp_type)
        self._source.hold(body)
        self._start = self._at = <const uint8_t *>self._source.buffer.buf
        self._end = self._start + self._source.buffer.len
        self._count = self._left = count
        self._base_offset = base_offset
        self._last_delta = last_offset_delta
        self._base_timestamp = base_timestamp
        self._max_timestamp = max_timestamp
        self._log_append_time = timestamp_type is LOG_APPEND_TIME
        self._from_offset = from_offset
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._untracked = key_deserializer is None and value_deserializer is None
        self._delta = -1
        if not 0 <= count <= self._source.buffer.len // SHORTEST_RECORD:
            self.damaged()

    @property
    def next_offset(self):
        """Where to read on: after the last record handed out, or after the whole batch when all were.

        A batch may reach further than its last record, where compaction removed those behind it.
        """
        cdef int64_t after = self._base_offset + (self._delta if self._left else self._last_delta) + 1
        return after if after > self._from_offset else self._from_offset

    def __iter__(self):
        return self

    def __next__(self):
        cdef ConsumerRecord record = self.advance()
        return self.ended() if record is None else record

    cdef ConsumerRecord advance(self):
        """The next record as users get it; None at the end, and where there is damage."""
        cdef ConsumerRecord record = self.step()
        if record is not None and not self._untracked:
            self.deserialize(record)
        return record

    cdef ConsumerRecord step(self):
        """The next record from the asked offset on; None where there is none."""
        cdef const uint8_t *at = self._at
        cdef const uint8_t *limit = self._end
        cdef const uint8_t *end
        cdef const char *key_at = NULL
        cdef const char *value_at = NULL
        cdef int64_t length = 0, elapsed = 0, delta = 0, key_size = 0, value_size = 0, timestamp
        cdef object headers = ()
        cdef ConsumerRecord record
        while self._left:
            at = varint(self._at, limit, 32, &length)
            if at is NULL or not 0 < length <= limit - at:
                return None
            end = at + length
            at = varint(at + 1, limit, 64, &elapsed)  # past attributes: no bit has a meaning yet
            if at is NULL:
                return None
            at = varint(at, limit, 32, &delta)
            if at is NULL or not self._delta < delta <= self._last_delta:
                return None
            if self._base_offset + delta < self._from_offset:
                self._at = end
                self._delta = delta
                self._left -= 1
                continue
            at = varint(at, limit, 32, &key_size)
            if at is NULL or not -1 <= key_size <= limit - at:
                return None
            if key_size >= 0:
                key_at = <const char *>at
                at += key_size
            at = varint(at, limit, 32, &value_size)
            if at is NULL or not -1 <= value_size <= limit - at:
                return None
            if value_size >= 0:
                value_at = <const char *>at
                at += value_size
            if at >= limit:
                return None
            if at[0]:
                headers = read_headers(&at, end)
                if headers is None:
                    return None
            else:
                at += 1
            if at != end:
                return None
            timestamp = self._max_timestamp
            if not self._log_append_time:
                timestamp = <int64_t>(<uint64_t>self._base_timestamp + <uint64_t>elapsed)
                if elapsed > 0 and timestamp < self._base_timestamp or elapsed < 0 and timestamp > self._base_timestamp:
                    return None
            record = ConsumerRecord.__new__(ConsumerRecord)
            record._source = self._source
            record._offset = self._base_offset + delta
            record._timestamp = timestamp
            record._key_at = key_at
            record._key_size = key_size
            record._value_at = value_at
            record._value_size = value_size
            record._key = record._value = RAW
            record._headers = headers
            if self._untracked:
                # It holds no cycle: a loop over millions of records need not wait for the garbage collector.
                PyObject_GC_UnTrack(record)
            self._at = end
            self._delta = delta
            self._left -= 1
            return record
        return None

    cdef object ended(self):
        """The end, or damage."""
        if self._left or self._at != self._end:
            self.damaged()
        raise StopIteration

    cdef int damaged(self) except -1:
        """Raise what the pure reader says of this damage."""
        cdef Source source = self._source
        reader = PureReader(
            source.view,
            count=self._count,
            base_offset=self._base_offset,
            last_offset_delta=self._last_delta,
            base_timestamp=self._base_timestamp,
            max_timestamp=self._max_timestamp,
            timestamp_type=source.timestamp_type,
            topic=source.topic,
            partition=source.partition,
            leader_epoch=source.leader_epoch,
            from_offset=self._from_offset,
        )
        reader._left, reader._position, reader._delta = self._left, self._at - self._start, self._delta
        record = next(reader)
        raise AssertionError(f"the compiled reader refuses what the pure one reads: {record!r}")

    cdef int deserialize(self, ConsumerRecord record) except -1:
        cdef object raw = record.raw_key
        if self._key_deserializer is not None and raw is not None:
            try:
                record._key = self._key_deserializer(raw)
            except Exception as cause:
                raise undeserializable("key", record) from cause
        raw = record.raw_value
        if self._value_deserializer is not None and raw is not None:
            try:
                record._value = self._value_deserializer(raw)
            except Exception as cause:
                raise undeserializable("value", record) from cause
        return 0


cdef tuple read_headers(const uint8_t **at, const uint8_t *end):
    """The headers at ``at``, which moves behind them; None if they make no sense."""
    cdef const uint8_t *here = at[0]
    cdef int64_t count = 0, length = 0
    here = varint(here, end, 32, &count)
    if here is NULL or not 0 <= count <= (end - here) // 2:  # a header takes two bytes at least
        return None
    cdef list headers = []
    while count:
        here = varint(here, end, 32, &length)
        if here is NULL or not 0 <= length <= end - here:
            return None
        # Kafka's own classes replace what is not UTF-8, and a record must not be unreadable here alone.
        name = PyUnicode_DecodeUTF8(<const char *>here, length, "replace")
        here = varint(here + length, end, 32, &length)
        if here is NULL or not -1 <= length <= end - here:
            return None
        if length < 0:
            headers.append((name, None))
        else:
            headers.append((name, PyBytes_FromStringAndSize(<const char *>here, length)))
            here += length
        count -= 1
    at[0] = here
    return tuple(headers)


cdef object undeserializable(str what, ConsumerRecord record):
    return DeserializationError(
        f"{record.topic}-{record.partition}, offset {record.offset}: the {what} could not be deserialized"
    )


# --- what is produced ----------------------------------------------------------------------------------------


cpdef Py_ssize_t record_size_bound(key, value, headers=()) except -1:
    """The most bytes that a record can take in a batch, whatever the records before it; the batch adds 61."""
    cdef Py_ssize_t size = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += 10 + len(name.encode()) + (0 if content is None else len(content))
    return size


@cython.final
@cython.internal
@cython.no_gc
cdef class Content:
    """Bytes of any kind, read where they are; null has no place and size -1."""

    cdef Py_buffer buffer
    cdef bint is_held
    cdef const char *at
    cdef Py_ssize_t size

    def __cinit__(self):
        self.at, self.size, self.is_held = NULL, -1, False

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.buffer)

    cdef int hold(self, what) except -1:
        if what is None:
            return 0
        PyObject_GetBuffer(what, &self.buffer, PyBUF_SIMPLE)
        self.is_held = True
        self.at, self.size = <const char *>self.buffer.buf, self.buffer.len
        return 0


@cython.final
cdef class BatchBuilder:
    """Gathers the records of one batch, encoded as they come.

    ``count``, ``base_timestamp`` (the first record's) and ``max_timestamp`` are there to be read; both are -1 in an
    empty batch. ``limit`` bounds the size before compression, header included, and lets a first record always in.
    """

    def __cinit__(self):
        self.buffer = NULL
        self.used = HEADER_SIZE  # the header's room, then records
        self.room = 0
        self.base_timestamp = self.max_timestamp = -1
        self.built_count = -1

    def __init__(self, *, Py_ssize_t limit, codec=Codec.NONE, level=None):
        self.limit = limit
        self.codec = codec
        self.level = level

    def __dealloc__(self):
        PyMem_Free(self.buffer)

    @property
    def size(self):
        """Bytes so far, before compression and with the header."""
        return self.used

    def append(self, timestamp, key, value, headers=()):
        """Encode one record; give its offset in the batch, or -1 if it does not fit any more.

        An argument of another type raises what Python raises for it, and leaves the batch as it was; so do timestamps
        of more than 64 bits, and those that are further apart.
        """
        cdef Content key_content, value_content
        cdef int64_t when = PyNumber_Index(timestamp)
        cdef bytes encoded = encoded_headers(headers) if headers else None
        if (key is None or PyBytes_Check(key)) and (value is None or PyBytes_Check(value)):
            return self.add(
                when,
                NULL if key is None else PyBytes_AS_STRING(key),
                -1 if key is None else PyBytes_GET_SIZE(key),
                NULL if value is None else PyBytes_AS_STRING(value),
                -1 if value is None else PyBytes_GET_SIZE(value),
                encoded,
            )
        key_content, value_content = Content(), Content()
        key_content.hold(key)
        value_content.hold(value)
        return self.add(
            when, key_content.at, key_content.size, value_content.at, value_content.size, encoded
        )

    cdef Py_ssize_t add(
        self,
        int64_t timestamp,
        const char *key,
        Py_ssize_t key_size,
        const char *value,
        Py_ssize_t value_size,
        bytes headers,
    ) except -2:
        """One record, of null or of bytes at ``key`` and ``value``, and of encoded headers, None for none."""
        cdef Py_ssize_t index = self.count, size, whole
        cdef int64_t delta = 0
        cdef uint8_t *to
        if index:
            delta = timestamp_delta(timestamp, self.base_timestamp)
        size = 1 + varint_size(delta) + varint_size(index) + varint_size(key_size) + varint_size(value_size)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        size += 1 if headers is None else PyBytes_GET_SIZE(headers)
        whole = size + varint_size(size)
        if index and self.used + whole > self.limit:
            return -1
        if size > INT32_MAX:
            raise OverflowError(f"a record of {size} bytes")
        if self.used + whole > self.room:
            self.grow(self.used + whole)
        to = put_varint(self.buffer + self.used, size)
        to[0] = 0  # attributes: no bit has a meaning yet
        to = put_varint(to + 1, delta)
        to = put_varint(to, index)
        to = put_bytes(to, key, key_size)
        to = put_bytes(to, value, value_size)
        if headers is None:
            to[0] = 0
        else:
            memcpy(to, PyBytes_AS_STRING(headers), PyBytes_GET_SIZE(headers))
        self.used += whole
        self.count = index + 1
        if not index:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return index

    cdef int grow(self, Py_ssize_t needed) except -1:
        cdef Py_ssize_t room = max(needed, min(2 * self.room, max(self.limit, needed)), FIRST_ROOM)
        cdef uint8_t *buffer = <uint8_t *>PyMem_Realloc(self.buffer, room)
        if buffer is NULL:
            raise MemoryError(f"{room} bytes for a batch")
        self.buffer, self.room = buffer, room
        return 0

    def build(
        self, *, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, control=False
    ):
        """The batch as a producer sends it: base offset 0, no leader epoch, checksum set.

        May be called again, with other producer state too; records are compressed again only if more came.

        Raises:
            UsageError: there are no records.
        """
        cdef bytes batch, packed = None
        cdef char *to
        cdef Py_ssize_t size
        if not self.count:
            raise UsageError("a batch without records cannot be built")
        size = self.used - HEADER_SIZE
        if self.codec:
            packed = self.compressed()
            size = len(packed)
        batch = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + size)
        to = PyBytes_AS_STRING(batch)
        memcpy(
            to + HEADER_SIZE,
            <char *>self.buffer + HEADER_SIZE if packed is None else PyBytes_AS_STRING(packed),
            size,
        )
        attributes = self.codec | transactional * layout.TRANSACTIONAL | control * layout.CONTROL
        state = (producer_id, producer_epoch, base_sequence)
        head = layout.HEADER.pack(
            0,
            HEADER_SIZE - layout.LOG_OVERHEAD + size,
            -1,
            layout.MAGIC,
            0,
            attributes,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            *state,
            self.count,
        )
        memcpy(to, PyBytes_AS_STRING(head), HEADER_SIZE)
        checksum = layout.UINT32.pack(crc32c(memoryview(batch)[layout.ATTRIBUTES_AT :]))
        memcpy(to + <Py_ssize_t>layout.CRC_AT, PyBytes_AS_STRING(checksum), 4)
        return batch

    def compress(self):
        """Do the slow part of :meth:`build` now, on another thread if need be; nothing may be appended meanwhile."""
        if self.codec and self.count:
            self.compressed()

    cdef bytes compressed(self):
        if self.built_count != self.count:
            records = memoryview(Records(self))
            self.packed = compress(self.codec, records, self.level)
            self.built_count = self.count
        return self.packed


@cython.final
@cython.internal
cdef class Records:
    """The encoded records of a batch in the making, for those who read buffers."""

    cdef BatchBuilder builder

    def __cinit__(self, BatchBuilder builder):
        self.builder = builder

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef BatchBuilder builder = self.builder
        PyBuffer_FillInfo(
            buffer, self, <char *>builder.buffer + HEADER_SIZE, builder.used - HEADER_SIZE, 1, flags
        )

    def __releasebuffer__(self, Py_buffer *buffer):
        pass


cdef int64_t timestamp_delta(int64_t timestamp, int64_t base) except? -1:
    cdef int64_t delta = <int64_t>(<uint64_t>timestamp - <uint64_t>base)
    if (timestamp >= base) != (delta >= 0):
        raise OverflowError(f"a timestamp of {timestamp}, in a batch that begins at {base}")
    return delta


cdef bytes encoded_headers(headers):
    cdef list parts = [varint_bytes(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts.append(varint_bytes(len(encoded)))
        parts.append(encoded)
        if content is None:
            parts.append(varint_bytes(-1))
        else:
            parts.append(varint_bytes(len(content)))
            parts.append(content)
    return b"".join(parts)


cdef bytes varint_bytes(int64_t value):
    cdef uint8_t room[10]
    return PyBytes_FromStringAndSize(<char *>room, put_varint(room, value) - room)


@cython.final
@cython.no_gc  # its result knows nothing of it, so that no cycle can run through it
@cython.freelist(256)
cdef class Delivery:
    """What becomes of one record that was handed to a producer; await it as often as you like.

    It refers to its batch's result, and pins neither the batch nor an event of its own.
    """

    def __init__(self, result, Py_ssize_t index):
        self.result = result
        self.index = index

    def __await__(self):
        return self.result.wait(self.index).__await__()

    @property
    def done(self):
        """Whether the outcome is known: awaiting then gives it, or raises it, at once."""
        return self.result.is_done(self.index)

    def __repr__(self):
        return f"<Delivery {self.index}, {'done' if self.done else 'pending'}>"
