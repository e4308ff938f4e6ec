"""Columns of records, compiled: part of _hot.pyx."""


cdef extern from *:
    """
    typedef struct {
        int32_t size;
        union {
            char content[12];
            struct { char prefix[4]; int32_t buffer, begin; } place;
        };
    } View;
    """
    ctypedef struct Place:
        int32_t buffer, begin

    ctypedef struct View:  # an item of Arrow's binary_view
        int32_t size
        char content[12]
        Place place


@cython.final
@cython.internal
@cython.no_gc
cdef class ItemsView:
    """The buffers of a BinaryColumn or a ViewColumn with at least ``count`` items."""

    # The validity, then the ends and the data, or the views and the buffers of longer items; `held` of them are held.
    cdef Py_buffer *buffers
    cdef Py_ssize_t held
    cdef const Py_buffer *data
    cdef Py_ssize_t data_count  # the number of buffers of longer items
    cdef const int32_t *short_ends
    cdef const int64_t *long_ends
    cdef const View *views
    cdef const uint8_t *bits
    cdef Py_ssize_t first_bit, gap

    def __cinit__(self, column, Py_ssize_t count):
        cdef bint has_views = type(column) is ViewColumn
        cdef tuple data = column.buffers if has_views else (column.data,)
        cdef Py_ssize_t width = sizeof(View) if has_views else column.ends.itemsize
        self.data_count = len(data)
        self.first_bit, self.gap = column.first_bit, 0 if has_views else column.gap
        self.buffers = <Py_buffer *>PyMem_Malloc((2 + self.data_count) * sizeof(Py_buffer))
        if self.buffers is NULL:
            raise MemoryError
        self.hold(b"" if column.validity is None else column.validity)
        self.hold(column.views if has_views else column.ends)
        self.data = self.buffers + self.held
        for buffer in data:
            self.hold(buffer)
        if column.validity is not None:
            self.bits = <const uint8_t *>self.buffers[0].buf
            if self.first_bit < 0 or self.buffers[0].len < (self.first_bit + count + 7) // 8:
                raise damaged_column(count)
        if self.buffers[1].len < (count if has_views else count + 1) * width:
            raise damaged_column(count)
        if has_views:
            self.views = <const View *>self.buffers[1].buf
        elif width == sizeof(int32_t):
            self.short_ends = <const int32_t *>self.buffers[1].buf
        else:
            self.long_ends = <const int64_t *>self.buffers[1].buf

    def __dealloc__(self):
        while self.held:
            self.held -= 1
            PyBuffer_Release(&self.buffers[self.held])
        PyMem_Free(self.buffers)

    cdef int hold(self, buffer) except -1:
        PyObject_GetBuffer(buffer, &self.buffers[self.held], PyBUF_SIMPLE)
        self.held += 1
        return 0

    cdef inline bint item(self, Py_ssize_t index, const char **at, Py_ssize_t *size) noexcept nogil:
        """Set ``at`` and ``size``, to NULL and -1 for a null; return False if the item is outside of the data."""
        cdef int64_t begin, end
        cdef const View *view
        if is_null(self.bits, self.first_bit + index):
            at[0], size[0] = NULL, -1
            return True
        if self.views is not NULL:
            view = self.views + index
            size[0] = view.size
            if 0 <= view.size <= <int32_t>sizeof(view.content):
                at[0] = view.content
                return True
            if view.size < 0 or not 0 <= view.place.buffer < self.data_count:
                return False
            begin = view.place.begin
            if not 0 <= begin <= self.data[view.place.buffer].len - view.size:
                return False
            at[0] = <const char *>self.data[view.place.buffer].buf + begin
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

    cdef ItemsView values, keys
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
            self.values = ItemsView(columns.values, count)
        if columns.keys is not None:
            self.keys = ItemsView(columns.keys, count)
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
