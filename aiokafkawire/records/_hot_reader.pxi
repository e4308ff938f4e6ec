"""The record reader, compiled: part of _hot.pyx."""


@cython.final
cdef class RecordReader:
    """An iterator that decodes the records of one batch from the batch's decompressed body.

    Errors do not end the iteration: after a DeserializationError, ``next`` returns the next record; after a
    CorruptBatch, ``next`` raises the same error again. Each record is validated completely before it is returned.
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __cinit__(
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
        self._headers = ()
        if not 0 <= count <= self._source.buffer.len // SHORTEST_RECORD:
            self.damaged()

    @property
    def next_offset(self):
        """The next offset to read: the one after the last returned record or, after all records, after the batch.

        A batch may extend beyond its last record, if compaction has removed later records.
        """
        cdef int64_t after = self._base_offset + (self._delta if self._left else self._last_delta) + 1
        return after if after > self._from_offset else self._from_offset

    def __iter__(self):
        return self

    def __next__(self):
        cdef ConsumerRecord record = self.advance()
        return self.ended() if record is None else record

    cdef ConsumerRecord advance(self):
        """Return the next record, deserialized; None at the end of the batch or at damage."""
        cdef ConsumerRecord record
        with cython.critical_section(self):
            record = self.step()
        if record is not None and not self._untracked:
            self.deserialize(record)
        return record

    cdef ConsumerRecord step(self):
        """Return the next record at or after ``from_offset``; None at the end of the batch or at damage."""
        cdef Found found
        cdef ConsumerRecord record
        cdef tuple headers = ()
        if not self.find(&found):
            return None
        if found.has_headers:  # taken before an object is made: that may let another thread use the reader
            headers, self._headers = self._headers, ()
        record = ConsumerRecord.__new__(ConsumerRecord)
        record._source = self._source
        record._offset = found.offset
        record._timestamp = found.timestamp
        record._key_at = found.key_at
        record._key_size = found.key_size
        record._value_at = found.value_at
        record._value_size = found.value_size
        record._headers = headers
        if self._untracked:
            # The record has no reference cycle, and untracking spares the garbage collector millions of records.
            PyObject_GC_UnTrack(record)
        return record

    cdef inline bint find(self, Found *found) except -1:
        """Move past the next record at or after ``from_offset``; set ``found`` and ``_headers``, or return False.

        Making the headers' objects may run the garbage collector, and so let another thread use this reader; then the
        search begins again.
        """
        cdef const uint8_t *start
        cdef const uint8_t *at
        cdef tuple headers
        cdef const uint8_t *limit = self._end
        cdef const uint8_t *end
        cdef int64_t length = 0, elapsed = 0, delta = 0
        while self._left:
            start = self._at
            at = varint(start, limit, 32, &length)
            if at is NULL or not 0 < length <= limit - at:
                return False
            end = at + length
            at = varint(at + 1, limit, 64, &elapsed)  # skip the unused attributes
            if at is NULL:
                return False
            at = varint(at, limit, 32, &delta)
            if at is NULL or not self._delta < delta <= self._last_delta:
                return False
            if self._base_offset + delta < self._from_offset:
                self._at = end
                self._delta = delta
                self._left -= 1
                continue
            at = field(at, limit, &found.key_at, &found.key_size)
            if at is not NULL:
                at = field(at, limit, &found.value_at, &found.value_size)
            if at is NULL or at >= limit:
                return False
            found.has_headers = at[0] != 0
            if found.has_headers:
                headers = read_headers(&at, end)
                if self._at != start:
                    continue
                if headers is None:
                    return False
                self.met_headers, self._headers = True, headers
            else:
                at += 1
            if at != end:
                return False
            found.timestamp = self._max_timestamp
            if not self._log_append_time:
                found.timestamp = <int64_t>(<uint64_t>self._base_timestamp + <uint64_t>elapsed)
                if elapsed > 0 and found.timestamp < self._base_timestamp:
                    return False
                if elapsed < 0 and found.timestamp > self._base_timestamp:
                    return False
            found.offset = self._base_offset + delta
            self._at = end
            self._delta = delta
            self._left -= 1
            return True
        return False

    @cython.critical_section
    def columns(self, *, bint with_keys=True, bint with_values=True):
        """Return the remaining records as columns, with raw keys and values unless these are left out."""
        cdef Py_ssize_t count = 0, room = self._left
        cdef int64_t key_bytes = 0, value_bytes = 0
        cdef list headers = None
        cdef tuple found_headers
        cdef Found *all = <Found *>PyMem_Malloc(max(1, room) * sizeof(Found))
        if all is NULL:
            raise MemoryError
        try:
            while self.find(&all[count]):
                if all[count].has_headers:
                    found_headers, self._headers = self._headers, ()
                    if headers is None:
                        headers = [()] * count
                    headers.append(found_headers)
                elif headers is not None:
                    headers.append(())
                key_bytes += max(0, all[count].key_size)
                value_bytes += max(0, all[count].value_size)
                count += 1
            if self._left or self._at != self._end:
                self.damaged()
            return Columns(
                count,
                numbers(all, count, False),
                numbers(all, count, True),
                bytes_column(all, count, key_bytes, False) if with_keys else LEFT_OUT,
                bytes_column(all, count, value_bytes, True) if with_values else LEFT_OUT,
                headers,
            )
        finally:
            PyMem_Free(all)

    @cython.critical_section
    def joined_values(self, bytes delimiter not None, bytes null not None):
        """Return the number of the remaining records and their raw values, each with the delimiter after it."""
        cdef Py_ssize_t count = 0, index, room = self._left
        cdef int64_t total = 0, size
        cdef int64_t mark = PyBytes_GET_SIZE(delimiter), nothing = PyBytes_GET_SIZE(null)
        cdef bytes made
        cdef char *to
        cdef Found *all = <Found *>PyMem_Malloc(max(1, room) * sizeof(Found))
        if all is NULL:
            raise MemoryError
        try:
            while self.find(&all[count]):
                size = all[count].value_size
                total += mark + (nothing if size < 0 else size)
                count += 1
            self._headers = ()
            if self._left or self._at != self._end:
                self.damaged()
            made = PyBytes_FromStringAndSize(NULL, total)
            to = PyBytes_AS_STRING(made)
            for index in range(count):
                size = all[index].value_size
                if size < 0:
                    memcpy(to, PyBytes_AS_STRING(null), nothing)
                    to += nothing
                else:
                    memcpy(to, all[index].value_at, size)
                    to += size
                memcpy(to, PyBytes_AS_STRING(delimiter), mark)
                to += mark
            return count, made
        finally:
            PyMem_Free(all)

    cdef object ended(self):
        """Raise StopIteration at the end of the batch, or CorruptBatch at damage."""
        if self._left or self._at != self._end:
            self.damaged()
        raise StopIteration

    cdef int damaged(self) except -1:
        """Raise the error that the pure reader raises for the damage at the current position."""
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
        raise AssertionError(f"the compiled reader rejects a record that the pure one reads: {record!r}")

    cdef int deserialize(self, ConsumerRecord record) except -1:
        cdef object raw = record.raw_key
        if self._key_deserializer is not None and raw is not None:
            try:
                record._key = self._key_deserializer(raw)
                record._has_key = True
            except Exception as cause:
                raise undeserializable("key", record) from cause
        raw = record.raw_value
        if self._value_deserializer is not None and raw is not None:
            try:
                record._value = self._value_deserializer(raw)
                record._has_value = True
            except Exception as cause:
                raise undeserializable("value", record) from cause
        return 0


cdef inline const uint8_t *field(
    const uint8_t *at, const uint8_t *limit, const char **field_at, int64_t *size
) noexcept nogil:
    """Read a key or value at ``at``; return the position after it, or NULL at damage. Null is NULL with size -1."""
    at = varint(at, limit, 32, size)
    if at is NULL or not -1 <= size[0] <= limit - at:
        return NULL
    if size[0] < 0:
        field_at[0] = NULL
        return at
    field_at[0] = <const char *>at
    return at + size[0]


cdef bytes numbers(const Found *all, Py_ssize_t count, bint timestamps):
    """Return the timestamps or the offsets of all records as int64 numbers."""
    cdef bytes made = PyBytes_FromStringAndSize(NULL, count * sizeof(int64_t))
    cdef int64_t *to = <int64_t *>PyBytes_AS_STRING(made)
    cdef Py_ssize_t index
    for index in range(count):
        to[index] = all[index].timestamp if timestamps else all[index].offset
    return made


cdef object bytes_column(const Found *all, Py_ssize_t count, int64_t total, bint values):
    """Return the keys or values of all records; ``total``, their size, is far below 2 GiB, as the batch's size is."""
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, (count + 1) * sizeof(int32_t))
    cdef bytes data = PyBytes_FromStringAndSize(NULL, total)
    cdef bytes validity = PyBytes_FromStringAndSize(NULL, (count + 7) // 8)
    cdef int32_t *end = <int32_t *>PyBytes_AS_STRING(ends)
    cdef char *to = PyBytes_AS_STRING(data)
    cdef uint8_t *bits = <uint8_t *>PyBytes_AS_STRING(validity)
    cdef const char *at
    cdef int64_t size, before = 0
    cdef Py_ssize_t index, nulls = 0
    memset(bits, 0, (count + 7) // 8)
    end[0] = 0
    for index in range(count):
        at = all[index].value_at if values else all[index].key_at
        size = all[index].value_size if values else all[index].key_size
        if size < 0:
            nulls += 1
        else:
            memcpy(to + before, at, size)
            before += size
            bits[index >> 3] |= <uint8_t>(1 << (index & 7))
        end[index + 1] = <int32_t>before
    return BytesColumn(nulls, validity if nulls else None, ends, data)


cdef tuple read_headers(const uint8_t **at, const uint8_t *end):
    """Read the headers at ``at`` and move ``at`` past them; return None if they are damaged."""
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
        # Kafka's classes replace invalid UTF-8 in names, so such a record must be readable here, too.
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
