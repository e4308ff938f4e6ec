# What other compiled modules reach of the record loop.

from libc.stdint cimport int64_t, uint8_t


cdef class BatchBuilder:
    cdef readonly Py_ssize_t limit, count
    cdef readonly object codec, level
    cdef readonly int64_t base_timestamp, max_timestamp
    cdef uint8_t *buffer
    cdef Py_ssize_t used, room, built_count
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
    cdef bytes compressed(self)


cdef class Delivery:
    cdef object result
    cdef Py_ssize_t index


cdef bytes encoded_headers(headers)
