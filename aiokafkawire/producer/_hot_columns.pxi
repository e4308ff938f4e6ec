"""Columns of records, compiled: part of _hot.pyx."""


@cython.final
@cython.internal
@cython.no_gc
cdef class BinaryView:
    """The buffers of a :class:`~.record_columns.BinaryColumn` with at least ``count`` items."""

    cdef Py_buffer ends, data, validity
    cdef bint holds_ends, holds_data, holds_validity
    cdef const int32_t *short_ends
    cdef const int64_t *long_ends
    cdef const uint8_t *bits
    cdef Py_ssize_t first_bit, gap

    def __cinit__(self, column, Py_ssize_t count):
        cdef Py_ssize_t width = column.ends.itemsize
        self.short_ends, self.long_ends, self.bits = NULL, NULL, NULL
        PyObject_GetBuffer(column.ends, &self.ends, PyBUF_SIMPLE)
        self.holds_ends = True
        PyObject_GetBuffer(column.data, &self.data, PyBUF_SIMPLE)
        self.holds_data = True
        self.first_bit, self.gap = column.first_bit, column.gap
        if column.validity is not None:
            PyObject_GetBuffer(column.validity, &self.validity, PyBUF_SIMPLE)
            self.holds_validity = True
            self.bits = <const uint8_t *>self.validity.buf
            if self.first_bit < 0 or self.validity.len < (self.first_bit + count + 7) // 8:
                raise damaged_column(count)
        if self.ends.len < (count + 1) * width:
            raise damaged_column(count)
        if width == sizeof(int32_t):
            self.short_ends = <const int32_t *>self.ends.buf
        else:
            self.long_ends = <const int64_t *>self.ends.buf

    def __dealloc__(self):
        if self.holds_ends:
            PyBuffer_Release(&self.ends)
        if self.holds_data:
            PyBuffer_Release(&self.data)
        if self.holds_validity:
            PyBuffer_Release(&self.validity)

    cdef inline bint item(self, Py_ssize_t index, const char **at, Py_ssize_t *size) noexcept nogil:
        """Set ``at`` and ``size``, to NULL and -1 for a null; return False if the offsets are outside of the data."""
        cdef int64_t begin, end
        if is_null(self.bits, self.first_bit + index):
            at[0], size[0] = NULL, -1
            return True
        if self.short_ends is not NULL:
            begin, end = self.short_ends[index], self.short_ends[index + 1]
        else:
            begin, end = self.long_ends[index], self.long_ends[index + 1]
        begin += self.gap
        if not 0 <= begin <= end <= self.data.len:
            return False
        at[0], size[0] = <const char *>self.data.buf + begin, end - begin
        return True


@cython.final
@cython.internal
@cython.no_gc
cdef class NumbersView:
    """The buffer of at least ``count`` int64 or int32 numbers."""

    cdef Py_buffer buffer
    cdef bint is_held
    cdef const int64_t *at
    cdef const int32_t *short_at

    def __cinit__(self, numbers, Py_ssize_t count):
        PyObject_GetBuffer(numbers, &self.buffer, PyBUF_SIMPLE)
        self.is_held = True
        self.at, self.short_at = <const int64_t *>self.buffer.buf, <const int32_t *>self.buffer.buf
        if self.buffer.len < count * <Py_ssize_t>numbers.itemsize:
            raise damaged_column(count)

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.buffer)


@cython.final
@cython.internal
cdef class ColumnsView:
    """The buffers of :class:`~.record_columns.RecordColumns`, and the row that :meth:`read` found."""

    cdef BinaryView values, keys
    cdef NumbersView partitions, timestamps, header_ends
    cdef int64_t default_timestamp, default_partition
    cdef Py_ssize_t fixed_size
    cdef bytes headers

    # The row found last; ``partition`` is -1 if the partitioner chooses it.
    cdef const char *key
    cdef const char *value
    cdef Py_ssize_t key_size, value_size, size
    cdef int64_t partition, timestamp

    def __cinit__(self, columns, int64_t now):
        cdef Py_ssize_t count = columns.count
        self.key = self.value = NULL
        self.key_size = self.value_size = -1
        if columns.values is not None:
            self.values = BinaryView(columns.values, count)
        if columns.keys is not None:
            self.keys = BinaryView(columns.keys, count)
        if columns.partitions is not None:
            self.partitions = NumbersView(columns.partitions, count)
        if columns.timestamps is not None:
            self.timestamps = NumbersView(columns.timestamps, count)
        self.default_timestamp = now if columns.timestamp_ms is None else columns.timestamp_ms
        self.default_partition = -1
        if columns.partition is not None:
            # A partition of another type, or below 0, is invalid, and the appender's `put` raises the error.
            self.default_partition = -2
            if type(columns.partition) is int and 0 <= columns.partition < 2**31:
                self.default_partition = columns.partition
        self.fixed_size = EMPTY_RECORD_SIZE
        if columns.header_lists is not None:
            self.header_ends = NumbersView(columns.header_lists.ends, count + 1)
        elif columns.headers:
            self.headers = encoded_headers(columns.headers)
            self.fixed_size = record_size_bound(None, None, columns.headers)

    cdef bint read(self, Py_ssize_t index) noexcept:
        """Find the row; return False if its record must be appended, or refused, as a record of Python objects."""
        cdef int64_t number
        if self.values is not None and not self.values.item(index, &self.value, &self.value_size):
            return False
        if self.keys is not None and not self.keys.item(index, &self.key, &self.key_size):
            return False
        self.partition = self.default_partition
        if self.partitions is not None:
            number = self.partitions.at[index]
            if number >= 0:
                self.partition = number
        self.timestamp = self.default_timestamp
        if self.timestamps is not None:
            number = self.timestamps.at[index]
            if number >= 0:
                self.timestamp = number
        if self.header_ends is not None and self.header_ends.short_at[index] != self.header_ends.short_at[index + 1]:
            return False  # headers of the record's own: rare, and not worth a second encoder
        self.size = self.fixed_size
        if self.key_size > 0:
            self.size += self.key_size
        if self.value_size > 0:
            self.size += self.value_size
        return self.partition >= -1


cdef inline bint is_null(const uint8_t *bits, Py_ssize_t bit) noexcept nogil:
    return bits is not NULL and not bits[bit >> 3] >> (bit & 7) & 1


def item_ends(bytes text not None, bytes delimiter not None):
    cdef const char *start = PyBytes_AS_STRING(text)
    cdef const char *at = start
    cdef const char *end = start + PyBytes_GET_SIZE(text)
    cdef const char *mark = PyBytes_AS_STRING(delimiter)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(delimiter), count = 1, room = 1024
    cdef int64_t *grown
    cdef int64_t *ends
    if not size:
        raise ValueError("empty delimiter")
    ends = <int64_t *>PyMem_Malloc(room * sizeof(int64_t))
    if ends is NULL:
        raise MemoryError
    try:
        ends[0] = -size
        while end - at >= size:
            at = <const char *>memchr(at, mark[0], end - at - size + 1)
            if at is NULL:
                break
            if size > 1 and memcmp(at, mark, size):
                at += 1
                continue
            if count == room:
                room *= 2
                grown = <int64_t *>PyMem_Realloc(ends, room * sizeof(int64_t))
                if grown is NULL:
                    raise MemoryError
                ends = grown
            ends[count] = at - start
            count += 1
            at += size
        return PyBytes_FromStringAndSize(<const char *>ends, count * sizeof(int64_t))
    finally:
        PyMem_Free(ends)
