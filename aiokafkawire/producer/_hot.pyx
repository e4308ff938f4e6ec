# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""How a record comes into its batch, compiled: the fast twin of _pure.py, with the same names and behaviour."""

from cpython cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from ..records._hot cimport BatchBuilder, Delivery, encoded_headers

cimport cython

from ..errors import BufferFull, TopicNotReady
from ..records._hot import record_size_bound
from ..runtime import system_wall_ms
from .door import (
    SPARE as _SPARE,
    YIELD_EVERY as _YIELD_EVERY,
    copy_bytes,
    header_pairs,
    refuse_partition,
    refuse_thread,
    refuse_timestamp,
    refuse_topic,
)

__all__ = ("Appender", "Budget", "OpenBatch", "OpenTopic", "Turn", "Waiters")

include "_hot_waiters.pxi"


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


cdef Py_ssize_t SPARE = _SPARE
cdef Py_ssize_t YIELD_EVERY = _YIELD_EVERY
cdef tuple NO_HEADERS = ()
cdef Py_ssize_t WITHOUT_CONTENT = record_size_bound(None, None)


@cython.final
@cython.no_gc
cdef class Budget:
    """Bytes that count against ``buffer_memory``, and how many may."""

    cdef public Py_ssize_t limit, used

    def __cinit__(self, Py_ssize_t limit):
        self.limit = limit
        self.used = 0


@cython.final
cdef class Turn:
    """A partition's turn to get the records without a key, and the bytes it was chosen for so far."""

    cdef public Py_ssize_t partition, sent, limit, most
    cdef public object available

    def __cinit__(self, Py_ssize_t partition, available, Py_ssize_t sent, Py_ssize_t limit, Py_ssize_t most):
        self.partition = partition
        self.available = available
        self.sent = sent
        self.limit = limit
        self.most = most


@cython.final
cdef class OpenBatch:
    """What the records of a batch come into: its builder, and the result that their deliveries wait on.

    ``timestamps`` (an array of ms) gets the time of each.
    """

    cdef readonly BatchBuilder builder
    cdef readonly object result
    cdef readonly array.array timestamps
    cdef public bint closed

    def __cinit__(self, BatchBuilder builder not None, result, array.array timestamps not None):
        if timestamps.ob_descr.itemsize != sizeof(int64_t):
            raise TypeError("timestamps are an array of 'q'")
        self.builder = builder
        self.result = result
        self.timestamps = timestamps
        self.closed = False

    def append(self, Budget budget not None, int64_t timestamp, key, value, headers):
        """Put a record in: its index, or -1 where it takes none any more."""
        for content in (key, value):
            if content is not None and not PyBytes_Check(content):
                raise TypeError(f"bytes are needed, not a {type(content).__name__}")
        return self.put(budget, timestamp, <bytes>key, <bytes>value, encoded_headers(headers) if headers else None)

    cdef Py_ssize_t put(self, Budget budget, int64_t timestamp, bytes key, bytes value, bytes headers) except -2:
        cdef BatchBuilder builder = self.builder
        cdef Py_ssize_t index, before = builder.used
        if self.closed:
            return -1
        index = builder.add(
            timestamp,
            NULL if key is None else PyBytes_AS_STRING(key),
            -1 if key is None else PyBytes_GET_SIZE(key),
            NULL if value is None else PyBytes_AS_STRING(value),
            -1 if value is None else PyBytes_GET_SIZE(value),
            headers,
        )
        if index < 0:
            self.closed = True
            return -1
        budget.used += builder.used - (before if index else 0)
        array.extend_buffer(self.timestamps, <char *>&timestamp, 1)
        return index


@cython.final
cdef class OpenTopic:
    """A topic that records are sent to, as long as nothing changes."""

    cdef readonly object name, available
    cdef readonly Py_ssize_t count
    cdef public Turn turn
    cdef list batches

    def __cinit__(self, name, Py_ssize_t count, available, Turn turn):
        self.name = name
        self.count = count
        self.available = available
        self.turn = turn
        self.batches = [None] * count


@cython.final
cdef class Appender:
    """Puts records into the open batches of their partitions. What it is not told at once, it asks the ``door``.

    Arguments are those of the pure twin.
    """

    cdef object _door, _choose, _wall_ms, _serialize_key, _serialize_value, _wake, _go_now
    cdef object _turns
    cdef Budget _budget
    cdef Py_ssize_t _most, _unyielded
    cdef bint _hashes_keys, _ignores_keys, _reads_clock, _asks_first, _is_bound
    cdef unsigned long _thread
    cdef dict _topics

    def __cinit__(
        self,
        door,
        Budget budget not None,
        Py_ssize_t most,
        partitioning,
        wall_ms,
        key_serializer=None,
        value_serializer=None,
        *,
        bint asks_first=False,
        thread_id=None,
    ):
        self._door, self._budget, self._most, self._wall_ms = door, budget, most, wall_ms
        self._wake, self._go_now = door.wake, door.go_now
        self._choose, self._turns = partitioning.choose, partitioning.turns
        self._hashes_keys, self._ignores_keys = partitioning.hashes_keys, partitioning.ignores_keys
        self._reads_clock, self._asks_first = wall_ms is system_wall_ms, asks_first
        self._serialize_key, self._serialize_value = key_serializer, value_serializer
        self._topics = {}
        self._unyielded = 0
        self._thread, self._is_bound = 0, False

    def bind(self):
        """Take records in this thread alone from now on."""
        self._thread, self._is_bound = PyThread_get_thread_ident(), True

    def forget(self):
        """Something has changed: ask the door about every topic again."""
        self._topics.clear()

    def send_nowait(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """As :meth:`aiokafkawire.producer.producer.Producer.send_nowait`, which this is."""
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch = self.put(topic, value, key, partition, timestamp_ms, headers, &index)
        if index == 0 or batch.builder.used >= batch.builder.limit:
            self._wake()
        cdef Delivery delivery = Delivery.__new__(Delivery)
        delivery.result = batch.result
        delivery.index = index
        return delivery

    async def send(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """As :meth:`aiokafkawire.producer.producer.Producer.send`, which this is."""
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch
        try:
            batch = self.put(topic, value, key, partition, timestamp_ms, headers, &index)
        except (TopicNotReady, BufferFull):
            batch, index = await self._door.accept(topic, value, key, partition, timestamp_ms, headers)
        if index == 0:
            unwritten = self._go_now()
            if unwritten is not None:
                await unwritten
        elif batch.builder.used >= batch.builder.limit:
            self._wake()
        result = batch.result
        # What result.wait(index) does, without its coroutine.
        if not result.settled:
            try:
                await result.settling(index)
            except BaseException:
                result.unhear(index)
                raise
            if not result.parts:
                return result.place(index)
        return await result.wait(index)

    async def enqueue(self, topic, value=None, *, key=None, partition=None, timestamp_ms=None, headers=()):
        """As :meth:`aiokafkawire.producer.producer.Producer.enqueue`, which this is."""
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch
        cdef Delivery delivery
        self._unyielded += 1
        if self._unyielded >= YIELD_EVERY:
            self._unyielded = 0
            # Before the record is accepted: whoever is cancelled in here knows that it was not.
            await self._door.let_others_run()
        try:
            batch = self.put(topic, value, key, partition, timestamp_ms, headers, &index)
        except (TopicNotReady, BufferFull):
            batch, index = await self._door.accept(topic, value, key, partition, timestamp_ms, headers)
        if index == 0 or batch.builder.used >= batch.builder.limit:
            self._wake()
        delivery = Delivery.__new__(Delivery)
        delivery.result = batch.result
        delivery.index = index
        return delivery

    def append(self, topic, value, key, partition, timestamp_ms, headers):
        """Put one record into a batch: the batch, and its index there."""
        cdef Py_ssize_t index = 0
        cdef OpenBatch batch = self.put(topic, value, key, partition, timestamp_ms, headers, &index)
        return batch, index

    def append_many(
        self, topic, values, keys, partition, timestamp_ms, headers, Py_ssize_t start, Py_ssize_t stop
    ):
        """Put records ``start`` to ``stop`` into batches; the index of the first that is not in one.

        Raises what is the matter with the first; with a later one, the next call does.
        """
        cdef Py_ssize_t at, index
        cdef OpenBatch batch
        for at in range(start, stop):
            index = 0
            try:
                key = None if keys is None else keys[at]
                batch = self.put(topic, values[at], key, partition, timestamp_ms, headers, &index)
            except Exception:
                if at == start:
                    raise
                return at
            if index == 0 or batch.builder.used >= batch.builder.limit:
                self._wake()
        return stop

    cdef OpenBatch put(self, topic, value, key, partition, timestamp_ms, headers, Py_ssize_t *place):
        cdef int64_t timestamp = 0
        cdef Py_ssize_t size, chosen
        cdef bytes raw_key, raw_value, encoded = None
        cdef object pairs = ()
        cdef OpenTopic opened
        cdef OpenBatch batch
        cdef PyObject *found
        if self._is_bound and PyThread_get_thread_ident() != self._thread:
            raise refuse_thread()
        if timestamp_ms is not None:
            if type(timestamp_ms) is not int or not 0 <= timestamp_ms < 2**63:
                raise refuse_timestamp(timestamp_ms)
            timestamp = timestamp_ms
        if not PyUnicode_Check(topic):
            raise refuse_topic(topic)
        found = PyDict_GetItemWithError(self._topics, topic)
        if found is NULL:
            opened = self._door.open_topic(topic)
            self._topics[topic] = opened
        else:
            opened = <OpenTopic>found
        raw_key = raw(key, self._serialize_key, "key")
        raw_value = raw(value, self._serialize_value, "value")
        size = WITHOUT_CONTENT
        if raw_key is not None:
            size += PyBytes_GET_SIZE(raw_key)
        if raw_value is not None:
            size += PyBytes_GET_SIZE(raw_value)
        if headers is not NO_HEADERS and headers is not None:
            pairs = header_pairs(headers)
        if pairs:
            size = record_size_bound(raw_key, raw_value, pairs)
            encoded = encoded_headers(pairs)
        if size > self._most or self._budget.used + size > self._budget.limit:
            raise self._door.refuse(topic, size)
        if partition is None:
            chosen = self.choose(opened, raw_key, size)
        elif not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < opened.count:
            raise refuse_partition(topic, partition, opened.count)
        else:
            chosen = partition
        if self._asks_first:
            self._door.ask(topic, chosen)
        if timestamp_ms is None:
            timestamp = now_ms() if self._reads_clock else self._wall_ms()
        found = PyList_GET_ITEM(opened.batches, chosen)
        if found is not <PyObject *>None:
            batch = <OpenBatch>found
            place[0] = batch.put(self._budget, timestamp, raw_key, raw_value, encoded)
            if place[0] >= 0:
                return batch
        batch, index = self._door.open_batch(topic, chosen, timestamp, raw_key, raw_value, pairs)
        opened.batches[chosen] = batch
        place[0] = index
        return batch

    cdef Py_ssize_t choose(self, OpenTopic opened, bytes key, Py_ssize_t size) except -1:
        cdef Turn turn = opened.turn
        cdef Py_ssize_t sent, chosen
        if key is not None and self._hashes_keys:
            return (murmur2(key) & 0x7FFFFFFF) % opened.count
        if turn is not None and (key is None or self._ignores_keys):
            sent = turn.sent + size - SPARE
            if sent <= turn.limit or (sent <= turn.most and has_room(opened.batches[turn.partition], size)):
                turn.sent = sent
                return turn.partition
        chosen = self._choose(opened.name, key, opened.available, opened.count, size)
        if not 0 <= chosen < opened.count:
            raise refuse_partition(opened.name, chosen, opened.count)
        if self._turns is not None:
            opened.turn = self._turns.get(opened.name)
        return chosen


cdef inline bint has_room(OpenBatch batch, Py_ssize_t size):
    return batch is not None and not batch.closed and batch.builder.used + size <= batch.builder.limit


cdef inline bytes raw(given, serialize, str what):
    if given is None:
        return None
    if serialize is None:
        if PyBytes_Check(given):
            return <bytes>given
        return copy_bytes(given, what, made=False)
    made = serialize(given)
    if not PyBytes_Check(made):
        return copy_bytes(made, what, made=True)
    return <bytes>made


cdef inline int64_t now_ms() noexcept:
    cdef timespec now
    timespec_get(&now, TIME_UTC)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1_000_000


cdef uint32_t murmur2(bytes data) noexcept:
    """As partitioner.murmur2."""
    cdef const uint8_t *at = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef Py_ssize_t left = PyBytes_GET_SIZE(data)
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
