# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""The appender, which encodes records into their batches, compiled: the fast twin of _pure.py."""

from cpython cimport array
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.contextvars cimport get_value
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memchr, memcmp, memcpy

from ..records._hot cimport BatchBuilder, Delivery, encoded_headers

cimport cython

from types import GenericAlias

from ..errors import BufferFull, TopicNotReady
from ..records._hot import record_size_bound
from ..runtime import system_wall_ms
from .record_checks import (
    RECORD_OVERHEAD as _RECORD_OVERHEAD,
    YIELD_EVERY as _YIELD_EVERY,
    PartitionNotKnown,
    copy_bytes,
    header_pairs,
    invalid_partition,
    invalid_timestamp,
    invalid_topic,
    wrong_thread,
)
from .record_columns import RecordColumns, ViewColumn, damaged_column

__all__ = ("Appender", "BatchEvent", "BufferSpace", "OpenBatch", "OpenTopic", "StickyPartition", "item_ends")

cdef extern from "Python.h":
    bint PyBytes_Check(object)
    bint PyUnicode_Check(object)


cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()


cdef extern from "time.h" nogil:
    ctypedef long time_t
    struct timespec:
        time_t tv_sec
        long tv_nsec
    int timespec_get(timespec *, int)
    const int TIME_UTC


cdef Py_ssize_t RECORD_OVERHEAD = _RECORD_OVERHEAD
cdef Py_ssize_t YIELD_EVERY = _YIELD_EVERY
cdef tuple NO_HEADERS = ()
cdef Py_ssize_t EMPTY_RECORD_SIZE = record_size_bound(None, None)


include "_hot_batch_event.pxi"
include "_hot_columns.pxi"


@cython.final
@cython.no_gc
cdef class BufferSpace:
    """The number of bytes that all batches occupy, and its limit (``buffer_memory``)."""

    cdef public Py_ssize_t limit, used

    def __cinit__(self, Py_ssize_t limit):
        self.limit = limit
        self.used = 0


@cython.final
cdef class StickyPartition:
    """The current partition for a topic's records without a key, and the number of bytes sent to this partition."""

    cdef public Py_ssize_t partition, sent, limit, max_sent
    cdef public object available

    def __cinit__(self, Py_ssize_t partition, available, Py_ssize_t sent, Py_ssize_t limit, Py_ssize_t max_sent):
        self.partition = partition
        self.available = available
        self.sent = sent
        self.limit = limit
        self.max_sent = max_sent


@cython.final
cdef class OpenBatch:
    """A batch to which records can be appended: its builder, and the result that the records' deliveries wait for.

    Each record's timestamp, in ms since the epoch, is appended to the array ``timestamps``.
    """

    cdef readonly BatchBuilder builder
    cdef readonly object result
    cdef readonly array.array timestamps
    cdef public bint closed
    cdef public object untraced
    # The context whose records share one span, that span, and its headers, encoded.
    cdef object traced, shared_trace
    cdef bytes shared_headers

    def __cinit__(self, BatchBuilder builder not None, result, array.array timestamps not None):
        if timestamps.ob_descr.itemsize != sizeof(int64_t):
            raise TypeError("timestamps must be an array of 'q'")
        self.builder = builder
        self.result = result
        self.timestamps = timestamps
        self.closed = False

    def append(self, BufferSpace space not None, int64_t timestamp, key, value, headers):
        """Append a record, add its size to ``space`` and return its index; return -1 if the batch is closed or full."""
        for content in (key, value):
            if content is not None and not PyBytes_Check(content):
                raise TypeError(f"bytes are needed, not a {type(content).__name__}")
        return self.put(space, timestamp, <bytes>key, <bytes>value, encoded_headers(headers) if headers else None)

    cdef Py_ssize_t put(self, BufferSpace space, int64_t timestamp, bytes key, bytes value, bytes headers) except -2:
        return self.put_parts(
            space,
            timestamp,
            NULL if key is None else PyBytes_AS_STRING(key),
            -1 if key is None else PyBytes_GET_SIZE(key),
            NULL if value is None else PyBytes_AS_STRING(value),
            -1 if value is None else PyBytes_GET_SIZE(value),
            headers,
        )

    cdef Py_ssize_t put_parts(
        self,
        BufferSpace space,
        int64_t timestamp,
        const char *key,
        Py_ssize_t key_size,
        const char *value,
        Py_ssize_t value_size,
        bytes headers,
    ) except -2:
        """Append a record as :meth:`append`; a null key or value is NULL, with size -1."""
        cdef BatchBuilder builder = self.builder
        cdef Py_ssize_t index, before = builder.used
        if self.closed:
            return -1
        index = builder.add(timestamp, key, key_size, value, value_size, headers)
        if index < 0:
            self.closed = True
            return -1
        space.used += builder.used - (before if index else 0)
        array.extend_buffer(self.timestamps, <char *>&timestamp, 1)
        return index


@cython.final
cdef class OpenTopic:
    """A topic with the open batch of each partition; the object is discarded when the metadata changes."""

    cdef readonly object name, available
    cdef readonly Py_ssize_t count
    cdef public StickyPartition sticky
    cdef list batches

    def __cinit__(self, name, Py_ssize_t count, available, StickyPartition sticky):
        self.name = name
        self.count = count
        self.available = available
        self.sticky = sticky
        self.batches = [None] * count


cdef class Appender:
    """The base class of the producer: its methods encode records into the open batches of the records' partitions.

    The pure twin describes the arguments, and the methods that a subclass must have.
    """

    cdef object _choose_partition, _read_clock, _serialize_key, _serialize_value, _wake, _send_immediately
    cdef object _sticky, _tracing, _context_variable
    cdef BufferSpace _space
    cdef Py_ssize_t _max_record_size, _unyielded
    cdef bint _hashes_keys, _ignores_keys, _has_system_clock, _transactional, _is_bound
    cdef unsigned long _thread
    cdef dict _topics

    __class_getitem__ = classmethod(GenericAlias)

    def __cinit__(self):
        # If a subclass does not call __init__, these values cause an error instead of a crash.
        self._space = BufferSpace.__new__(BufferSpace, 0)
        self._topics = {}

    def __init__(
        self,
        sender,
        BufferSpace space not None,
        Py_ssize_t max_record_size,
        partitioning,
        wall_ms,
        key_serializer=None,
        value_serializer=None,
        *,
        bint transactional=False,
        thread_id=None,
    ):
        self._wake, self._send_immediately = sender.wake, sender.send_immediately
        self._space, self._max_record_size, self._read_clock = space, max_record_size, wall_ms
        self._choose_partition, self._sticky = partitioning.choose, partitioning.sticky
        self._hashes_keys, self._ignores_keys = partitioning.hashes_keys, partitioning.ignores_keys
        self._has_system_clock, self._transactional = wall_ms is system_wall_ms, transactional
        self._serialize_key, self._serialize_value = key_serializer, value_serializer

    @cython.binding(True)
    async def send(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """Send one record, and wait until it is acknowledged.

        Args:
            topic: the record's topic.
            value: bytes or an object for the ``value_serializer``; None is a tombstone.
            key: bytes or an object for the ``key_serializer``; by default hashed to a partition as in Java's client.
            partition: the record's partition, instead of the partitioner's choice.
            timestamp_ms: the record's timestamp, in ms since the epoch; by default the current time.
            headers: a sequence of (name, content) pairs, or a mapping; each content is bytes or None.

        If the call is cancelled before the record is in a batch, the record is not sent; if later, it is still sent.

        Raises:
            BufferFull, TopicNotReady: there was no buffer space, or the topic was not known, within ``max_block_ms``.
            RecordTooLarge: the record is larger than ``max_request_size`` or ``buffer_memory``.
            RequestTimeout: no acknowledgement within ``delivery_timeout_ms``; a broker may have written the record.
            BrokerError: the broker refused the record.
            UsageError: an argument is invalid, the topic does not have the partition, or the producer is not open.
        """
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch
        try:
            batch = self.put(topic, value, key, partition, timestamp_ms, headers, True, &index)
        except (TopicNotReady, BufferFull, PartitionNotKnown):
            batch, index = await self._wait_and_append(topic, value, key, partition, timestamp_ms, headers)
        if index == 0:
            unwritten = self._send_immediately()
            if unwritten is not None:
                await unwritten
        elif batch.builder.used >= batch.builder.limit:
            self._wake()
        result = batch.result
        # The same as result.wait(index), but without a coroutine.
        if not result.completed:
            try:
                await result.wait_handle(index)
            except BaseException:
                result.discard_waiter(index)
                raise
            if not result.parts:
                return result.metadata_at(index)
        return await result.wait(index)

    @cython.binding(True)
    async def enqueue(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """Accept one record: wait for the topic's metadata and for buffer space, but not for the acknowledgement.

        Arguments and errors are those of :meth:`send`. Await the returned delivery for the record's metadata or error.
        """
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch
        cdef Delivery delivery
        self._unyielded += 1
        if self._unyielded >= YIELD_EVERY:
            self._unyielded = 0
            # Yield before the record is accepted: a caller that is cancelled here knows that no batch has the record.
            await self._let_others_run()
        try:
            batch = self.put(topic, value, key, partition, timestamp_ms, headers, False, &index)
        except (TopicNotReady, BufferFull, PartitionNotKnown):
            batch, index = await self._wait_and_append(topic, value, key, partition, timestamp_ms, headers)
        if index == 0 or batch.builder.used >= batch.builder.limit:
            self._wake()
        delivery = Delivery.__new__(Delivery)
        delivery.result = batch.result
        delivery.index = index
        return delivery

    @cython.binding(True)
    def send_nowait(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """Accept one record without waiting, and return its delivery. Arguments are those of :meth:`send`.

        Raises:
            BufferFull: ``buffer_memory`` is used up.
            TopicNotReady: the topic's partitions are not known yet; the client requests the topic's metadata.
            RecordTooLarge, UsageError: as :meth:`send`.
        """
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch = self.put(topic, value, key, partition, timestamp_ms, headers, False, &index)
        if index == 0 or batch.builder.used >= batch.builder.limit:
            self._wake()
        cdef Delivery delivery = Delivery.__new__(Delivery)
        delivery.result = batch.result
        delivery.index = index
        return delivery

    def _bind_thread(self):
        """Accept records only from the calling thread from now on."""
        self._thread, self._is_bound = PyThread_get_thread_ident(), True

    def _trace(self, tracing):
        """Add the trace contexts of ``tracing`` to the records from now on."""
        self._tracing, self._context_variable = tracing, tracing.variable

    def _invalidate_topics(self):
        """Discard the open topics, after a change of the metadata or the producer's state; records open them again."""
        self._topics.clear()

    def _append(self, topic, value, key, partition, timestamp_ms, headers):
        """Append one record to a batch; return the batch and the record's index in the batch."""
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch = self.put(topic, value, key, partition, timestamp_ms, headers, False, &index)
        return batch, index

    def _append_many(
        self, topic, values, keys, partition, timestamp_ms, headers, Py_ssize_t start, Py_ssize_t stop
    ):
        """Append the records from ``start`` to ``stop`` - 1; return the index of the first record that is not appended.

        If record ``start`` has an error, raise it. If a later record has one, stop before that record; the next call
        begins with it, and raises the error.
        """
        cdef Py_ssize_t at, index
        cdef OpenBatch batch
        for at in range(start, stop):
            index = 0
            try:
                key = None if keys is None else keys[at]
                batch = self.put(topic, values[at], key, partition, timestamp_ms, headers, False, &index)
            except Exception:
                if at == start:
                    raise
                return at
            if index == 0 or batch.builder.used >= batch.builder.limit:
                self._wake()
        return stop

    def _append_columns(self, topic, columns, Py_ssize_t start, Py_ssize_t stop):
        """Append records given as columns, as :meth:`_append_many`; all without a timestamp get the same."""
        cdef int64_t now = now_ms() if self._has_system_clock else self._read_clock()
        cdef ColumnsView view = None
        cdef OpenTopic opened = None
        cdef OpenBatch batch
        cdef Py_ssize_t at, index
        cdef bint looks_up
        cdef object added = None  # one byte for each partition: whether it was added to the transaction
        if self._is_bound and PyThread_get_thread_ident() != self._thread:
            raise wrong_thread()
        if columns.count < stop:
            raise IndexError(f"{stop} of {columns.count} records")
        # Serializers and tracing need each record as Python objects.
        if self._tracing is None and self._serialize_key is None and self._serialize_value is None:
            if type(columns) is RecordColumns:
                view = ColumnsView(columns, now)
        looks_up = view is not None and PyUnicode_Check(topic)
        for at in range(start, stop):
            if looks_up:
                looks_up = False
                if self._topics.get(topic) is not opened:
                    opened = self._topics.get(topic)
                    if opened is not None and self._transactional:
                        added = bytearray(opened.count)
            try:
                if opened is not None and view.read(at) and self.put_row(opened, view, added):
                    continue
                index = 0
                parts = columns.record(at, now)
                batch = self.put(topic, parts[0], parts[1], parts[2], parts[3], parts[4], False, &index)
            except Exception:
                if at == start:
                    raise
                return at
            if index == 0 or batch.builder.used >= batch.builder.limit:
                self._wake()
            looks_up = view is not None  # a record of Python objects may have made the topic known
        return stop

    @cython.final
    cdef bint put_row(self, OpenTopic opened, ColumnsView view, added) except -1:
        """Append the row to the open batch of its partition; return False if `put` must append or refuse it."""
        cdef StickyPartition sticky = None
        cdef OpenBatch batch
        cdef PyObject *found
        cdef Py_ssize_t chosen = view.partition, sent = 0
        if view.size > self._max_record_size or self._space.used + view.size > self._space.limit:
            return False
        if chosen < 0:
            if view.key_size >= 0 and self._hashes_keys:
                chosen = (murmur2(view.key, view.key_size) & 0x7FFFFFFF) % opened.count
            elif opened.sticky is not None and (view.key_size < 0 or self._ignores_keys):
                sticky = opened.sticky
                sent = sticky.sent + view.size - RECORD_OVERHEAD
                chosen = sticky.partition
                if sent > sticky.limit and not (
                    sent <= sticky.max_sent and has_room(opened.batches[chosen], view.size)
                ):
                    return False
            else:
                return False
        elif chosen >= opened.count:
            return False
        found = PyList_GET_ITEM(opened.batches, chosen)
        if found is <PyObject *>None:
            return False
        if added is not None and not added[chosen]:
            self._add_to_transaction(opened.name, chosen)
            added[chosen] = 1
        batch = <OpenBatch>found
        if batch.put_parts(
            self._space, view.timestamp, view.key, view.key_size, view.value, view.value_size, view.headers
        ) < 0:
            return False
        if sticky is not None:
            sticky.sent = sent
        if batch.builder.used >= batch.builder.limit:
            self._wake()
        return True

    @cython.final
    cdef OpenBatch put(self, topic, value, key, partition, timestamp_ms, headers, bint alone, Py_ssize_t *index):
        cdef int64_t timestamp = 0
        cdef Py_ssize_t size, chosen
        cdef bytes raw_key, raw_value, encoded = None
        cdef object pairs = ()
        cdef OpenTopic opened
        cdef OpenBatch batch
        cdef PyObject *found
        if self._is_bound and PyThread_get_thread_ident() != self._thread:
            raise wrong_thread()
        if timestamp_ms is not None:
            if type(timestamp_ms) is not int or not 0 <= timestamp_ms < 2**63:
                raise invalid_timestamp(timestamp_ms)
            timestamp = timestamp_ms
        if not PyUnicode_Check(topic):
            raise invalid_topic(topic)
        found = PyDict_GetItemWithError(self._topics, topic)
        if found is NULL:
            opened = self._open_topic(topic)
            self._topics[topic] = opened
        else:
            opened = <OpenTopic>found
        raw_key = raw(key, self._serialize_key, "key")
        raw_value = raw(value, self._serialize_value, "value")
        size = EMPTY_RECORD_SIZE
        if raw_key is not None:
            size += PyBytes_GET_SIZE(raw_key)
        if raw_value is not None:
            size += PyBytes_GET_SIZE(raw_value)
        if headers is not NO_HEADERS and headers is not None:
            pairs = header_pairs(headers)
        if pairs:
            size = record_size_bound(raw_key, raw_value, pairs)
            encoded = encoded_headers(pairs)
        if size > self._max_record_size or self._space.used + size > self._space.limit:
            raise self._no_space(topic, size)
        if partition is None:
            chosen = self.choose(opened, raw_key, size)
        elif not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < opened.count:
            raise self._no_partition(topic, partition, opened.count)
        else:
            chosen = partition
        if self._transactional:
            self._add_to_transaction(topic, chosen)
        if timestamp_ms is None:
            timestamp = now_ms() if self._has_system_clock else self._read_clock()
        found = PyList_GET_ITEM(opened.batches, chosen)
        if found is not <PyObject *>None:
            batch = <OpenBatch>found
            if self._tracing is None or encoded is None and self.is_untraced(batch):
                index[0] = batch.put(self._space, timestamp, raw_key, raw_value, encoded)
                if index[0] >= 0:
                    return batch
        if self._tracing is not None:
            return self.put_traced(opened, chosen, timestamp, raw_key, raw_value, pairs, encoded, size, alone, index)
        batch, index[0] = self._open_batch(topic, chosen, timestamp, raw_key, raw_value, pairs)
        opened.batches[chosen] = batch
        return batch

    @cython.final
    cdef bint is_untraced(self, OpenBatch batch) except -1:
        """Return whether an earlier record of the batch, sent in the same context, was not traced."""
        return batch.untraced is not None and batch.untraced is get_value(self._context_variable)

    @cython.final
    cdef OpenBatch put_traced(
        self,
        OpenTopic opened,
        Py_ssize_t chosen,
        int64_t timestamp,
        bytes key,
        bytes value,
        pairs,
        bytes encoded,
        Py_ssize_t size,
        bint alone,
        Py_ssize_t *index,
    ):
        """Append a record with the caller's trace context, if the caller is traced."""
        cdef OpenBatch batch = opened.batches[chosen]
        cdef Py_ssize_t room = self._max_record_size - size
        cdef object context = get_value(self._context_variable)
        cdef object trace = None, given = pairs
        cdef bint is_own = encoded is not None
        if batch is not None and not batch.closed:
            if (
                is_own
                or alone
                or batch.shared_headers is None
                or batch.traced is not context
                or room < PyBytes_GET_SIZE(batch.shared_headers)
            ):
                if batch.untraced is not context or is_own:
                    trace = self._tracing.begin(
                        opened.name, chosen, batch.result, context, key, value, pairs, room, alone
                    )
                    if trace is not None:
                        pairs = [*given, *trace.headers]
                        encoded = encoded_headers(pairs)
            else:
                trace, encoded = batch.shared_trace, batch.shared_headers
            index[0] = batch.put(self._space, timestamp, key, value, encoded)
            if index[0] >= 0:
                if trace is not None:
                    trace.appended(batch.result, index[0])
                    if not (is_own or alone):
                        batch.traced, batch.shared_trace, batch.shared_headers = context, trace, encoded
                elif not is_own:
                    batch.untraced = context
                return batch
        if trace is None or not trace.is_new:
            trace = self._tracing.begin(opened.name, chosen, None, context, key, value, given, room, alone)
            pairs = given if trace is None else [*given, *trace.headers]
        batch, index[0] = self._open_batch(opened.name, chosen, timestamp, key, value, pairs)
        opened.batches[chosen] = batch
        if trace is not None:
            trace.appended(batch.result, index[0])
        elif not is_own:
            batch.untraced = context
        return batch

    @cython.final
    cdef Py_ssize_t choose(self, OpenTopic opened, bytes key, Py_ssize_t size) except -1:
        cdef StickyPartition sticky = opened.sticky
        cdef Py_ssize_t sent, chosen
        if key is not None and self._hashes_keys:
            return (murmur2(PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & 0x7FFFFFFF) % opened.count
        if sticky is not None and (key is None or self._ignores_keys):
            sent = sticky.sent + size - RECORD_OVERHEAD
            if sent <= sticky.limit or (
                sent <= sticky.max_sent and has_room(opened.batches[sticky.partition], size)
            ):
                sticky.sent = sent
                return sticky.partition
        chosen = self._choose_partition(opened.name, key, opened.available, opened.count, size)
        if not 0 <= chosen < opened.count:
            raise invalid_partition(opened.name, chosen, opened.count)
        if self._sticky is not None:
            opened.sticky = self._sticky.get(opened.name)
        return chosen


cdef inline bint has_room(OpenBatch batch, Py_ssize_t size):
    return batch is not None and not batch.closed and batch.builder.used + size <= batch.builder.limit


cdef inline bytes raw(given, serialize, str part):
    if given is None:
        return None
    if serialize is None:
        if PyBytes_Check(given):
            return <bytes>given
        return copy_bytes(given, part, serialized=False)
    serialized = serialize(given)
    if not PyBytes_Check(serialized):
        return copy_bytes(serialized, part, serialized=True)
    return <bytes>serialized


cdef inline int64_t now_ms() noexcept:
    cdef timespec now
    timespec_get(&now, TIME_UTC)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000


cdef uint32_t murmur2(const char *data, Py_ssize_t left) noexcept nogil:
    """Return the same hash of ``left`` bytes as partitioner.murmur2."""
    cdef const uint8_t *at = <const uint8_t *>data
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>left, k
    while left >= 4:
        k = at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
        k *= <uint32_t>0x5BD1E995
        k ^= k >> 24
        k *= <uint32_t>0x5BD1E995
        h = h * <uint32_t>0x5BD1E995 ^ k
        at += 4
        left -= 4
    if left:
        if left > 2:
            h ^= <uint32_t>at[2] << 16
        if left > 1:
            h ^= <uint32_t>at[1] << 8
        h ^= at[0]
        h *= <uint32_t>0x5BD1E995
    h ^= h >> 13
    h *= <uint32_t>0x5BD1E995
    return h ^ h >> 15
