"""The batch builder and deliveries, compiled: part of _hot.pyx."""


cpdef Py_ssize_t record_size_bound(key, value, headers=()) except -1:
    """Return the maximum encoded size of a record in any batch, without the batch header of 61 bytes."""
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
    """The bytes of a key or value, used without a copy; for None, ``at`` is NULL and ``size`` is -1."""

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
    """The builder of one record batch; :meth:`append` encodes a record immediately.

    ``count``, ``base_timestamp`` (the first record's) and ``max_timestamp`` may be read; both timestamps are -1 in an
    empty batch. ``limit`` bounds the size in bytes with the header, before compression; a first record may exceed it.
    """

    def __cinit__(self):
        self.content, self.buffer, self.is_shared = NULL, NULL, False
        self.used = HEADER_SIZE  # space for the header, then records
        self.room = 0
        self.base_timestamp = self.max_timestamp = -1
        self.built_count = -1
        self.readers = 0

    def __init__(self, *, Py_ssize_t limit, codec=Codec.NONE, level=None):
        self.limit = limit
        self.codec = codec
        self.level = level

    def __dealloc__(self):
        Py_XDECREF(self.content)

    @property
    def size(self):
        """The current size in bytes, with the header and before compression."""
        return self.used

    @cython.critical_section
    def append(self, timestamp, key, value, headers=()):
        """Encode one record; return its offset in the batch, or -1 if the batch is full.

        If an argument has a wrong type, or if a timestamp or its difference to the first timestamp exceeds 64 bits, the
        method raises Python's own error and leaves the batch unchanged.
        """
        cdef Content key_content, value_content
        cdef int64_t milliseconds = PyNumber_Index(timestamp)
        cdef bytes encoded = encoded_headers(headers) if headers else None
        if (key is None or PyBytes_Check(key)) and (value is None or PyBytes_Check(value)):
            return self.add(
                milliseconds,
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
            milliseconds, key_content.at, key_content.size, value_content.at, value_content.size, encoded
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
        """Add a record and return its index, as :meth:`append`; a null key or value is NULL, with size -1."""
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
        to[0] = 0  # attributes, unused
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
        if self.readers:
            raise BufferError("a batch cannot grow while its records are compressed")
        # Not resize_bytes(), which loses the records where there is no memory.
        cdef Py_ssize_t room = max(needed, min(GROWTH * self.room, max(self.limit, needed)), FIRST_ROOM)
        cdef PyObject *content = new_bytes(NULL, room)
        if self.buffer is not NULL:
            memcpy(bytes_at(content), self.buffer, self.used)
            Py_XDECREF(self.content)
        self.content, self.buffer, self.room, self.is_shared = content, <uint8_t *>bytes_at(content), room, False
        return 0

    @cython.critical_section
    def build(
        self,
        *,
        int64_t producer_id=-1,
        int16_t producer_epoch=-1,
        int32_t base_sequence=-1,
        bint transactional=False,
        bint control=False,
    ):
        """Return the batch for a Produce request: with base offset 0, without a leader epoch, with the checksum.

        The method may be called again, also with other arguments; it compresses the records again only after an append.

        Raises:
            UsageError: the batch is empty.
        """
        cdef bytes batch, packed
        cdef char *to
        cdef char *at_checksum
        cdef Py_ssize_t size
        if not self.count:
            raise UsageError("a batch without records cannot be built")
        if self.codec:
            packed = self.compressed()
            size = len(packed)
            batch = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + size)
            memcpy(PyBytes_AS_STRING(batch) + HEADER_SIZE, PyBytes_AS_STRING(packed), size)
        else:
            size = self.used - HEADER_SIZE
            batch = self.taken()
        to = PyBytes_AS_STRING(batch)
        to = put_int64(to, 0)  # the base offset
        to = put_int32(to, <int32_t>(HEADER_SIZE - LOG_OVERHEAD + size))
        to = put_int32(to, -1)  # the leader's epoch
        to[0] = MAGIC
        at_checksum = to + 1
        to = put_int16(at_checksum + 4, <int16_t>(<int>self.codec | TRANSACTIONAL * transactional | CONTROL * control))
        to = put_int32(to, <int32_t>(self.count - 1))
        to = put_int64(to, self.base_timestamp)
        to = put_int64(to, self.max_timestamp)
        to = put_int64(to, producer_id)
        to = put_int16(to, producer_epoch)
        to = put_int32(to, base_sequence)
        put_int32(to, <int32_t>self.count)
        put_int32(at_checksum, <int32_t><uint32_t>crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
        return batch

    @cython.critical_section
    def compress(self):
        """Compress the records in advance for :meth:`build`, also on another thread; no append may run meanwhile."""
        if self.codec and self.count:
            self.compressed()

    cdef bytes taken(self):
        """Return the header's space and the records: what this builder has, the first time, and a copy later."""
        if self.is_shared:
            return PyBytes_FromStringAndSize(<char *>self.buffer, self.used)
        resize_bytes(&self.content, self.used)  # to fewer bytes, for which there is memory
        self.buffer, self.room, self.is_shared = <uint8_t *>bytes_at(self.content), self.used, True
        return <bytes>self.content

    cdef bytes compressed(self):
        if self.built_count != self.count:
            records = memoryview(Records(self))
            self.packed = compress(self.codec, records, self.level)
            self.built_count = self.count
        return self.packed


cdef inline char *put_int16(char *to, int16_t value) noexcept nogil:
    to[0] = <char>(value >> 8)
    to[1] = <char>value
    return to + 2


cdef inline char *put_int32(char *to, int32_t value) noexcept nogil:
    put_int16(to, <int16_t>(value >> 16))
    put_int16(to + 2, <int16_t>value)
    return to + 4


cdef inline char *put_int64(char *to, int64_t value) noexcept nogil:
    put_int32(to, <int32_t>(value >> 32))
    put_int32(to + 4, <int32_t>value)
    return to + 8


@cython.final
@cython.internal
cdef class Records:
    """The encoded records of a batch builder, as an object with the buffer protocol."""

    cdef BatchBuilder builder

    def __cinit__(self, BatchBuilder builder):
        self.builder = builder

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        cdef BatchBuilder builder = self.builder
        PyBuffer_FillInfo(
            buffer, self, <char *>builder.buffer + HEADER_SIZE, builder.used - HEADER_SIZE, 1, flags
        )
        builder.readers += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.builder.readers -= 1


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
@cython.no_gc  # the result does not refer to its deliveries, so there are no reference cycles
@cython.freelist(256)
cdef class Delivery:
    """An awaitable for the outcome of sending one record; it may be awaited several times.

    A delivery refers to the shared result of its batch: it has no event of its own, and does not keep the batch alive.
    """

    def __init__(self, result, Py_ssize_t index):
        self.result = result
        self.index = index

    def __await__(self):
        return self.result.wait(self.index).__await__()

    @property
    def done(self):
        """Whether the outcome is known, so that awaiting returns or raises at once."""
        return self.result.is_done(self.index)

    def add_callback(self, callback):
        """Call a function once when the outcome is known; at once if it is known already.

        It is called in the thread of the event loop, as soon as the broker's response arrives, so it must not wait. An
        exception that it raises is logged. A failure that a callback is given is not reported by ``flush()`` again.

        Args:
            callback: takes the record's metadata and the error of its batch, one of which is None.
        """
        self.result.add_callback(self.index, callback)

    def __repr__(self):
        return f"<Delivery {self.index}, {'done' if self.done else 'pending'}>"
