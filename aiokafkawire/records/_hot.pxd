# The parts of the compiled record modules that other compiled modules use.

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint8_t


cdef class Source:
    cdef object topic, partition, leader_epoch, timestamp_type, view
    cdef Py_buffer buffer
    cdef bint is_held

    cdef int hold(self, view) except -1


cdef class ConsumerRecord:
    cdef Source _source
    cdef int64_t _offset, _timestamp
    # The positions of key and value in the source's body until the first access; NULL afterwards.
    cdef const char *_key_at
    cdef const char *_value_at
    cdef Py_ssize_t _key_size, _value_size
    cdef object _raw_key, _raw_value, _headers
    # What the deserializers have returned, if the fields below are set; otherwise key and value are the raw ones.
    cdef object _key, _value
    cdef bint _has_key, _has_value

    cdef Source source(self)
    cdef tuple location(self)
    cdef tuple rest(self)


cdef struct Found:
    int64_t offset, timestamp, key_size, value_size
    const char *key_at
    const char *value_at
    bint has_headers


cdef class RecordReader:
    cdef Source _source
    cdef const uint8_t *_start
    cdef const uint8_t *_at
    cdef const uint8_t *_end
    cdef int64_t _count, _left, _base_offset, _last_delta, _base_timestamp, _max_timestamp, _from_offset, _delta
    cdef bint _log_append_time, _untracked
    cdef readonly bint met_headers
    cdef object _key_deserializer, _value_deserializer
    cdef tuple _headers  # the headers of the record found last

    cdef bint find(self, Found *found) except -1
    cdef ConsumerRecord advance(self)
    cdef ConsumerRecord step(self)
    cdef object ended(self)
    cdef int damaged(self) except -1
    cdef int deserialize(self, ConsumerRecord record) except -1


cdef class BatchBuilder:
    cdef readonly Py_ssize_t limit, count
    cdef readonly object codec, level
    cdef readonly int64_t base_timestamp, max_timestamp
    # A bytes object of `room` bytes, and its first byte: space for the header, then records. Both are NULL at first.
    cdef PyObject *content
    cdef uint8_t *buffer
    cdef bint is_shared  # somebody else has `content`, as a batch, so that it must not change
    cdef Py_ssize_t used, room, built_count, readers
    cdef bytes packed

    cdef Py_ssize_t add(
        self,
        int64_t timestamp,
        const char *key,
        Py_ssize_t key_size,
        const char *value,
        Py_ssize_t value_size,
        bytes headers,
    ) except -2
    cdef int grow(self, Py_ssize_t needed) except -1
    cdef bytes taken(self)
    cdef bytes compressed(self)


cdef class Delivery:
    cdef object result
    cdef Py_ssize_t index


cdef bytes encoded_headers(headers)
