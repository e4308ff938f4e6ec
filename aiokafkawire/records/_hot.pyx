# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""The record reader, compiled: the fast twin of _pure.py, with the same names and behaviour.

It rejects the same bytes as the pure reader. For the error message, the pure reader continues where this one stopped.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.number cimport PyNumber_Index
from cpython.ref cimport Py_XDECREF, PyObject
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cimport cython

from types import GenericAlias

from ..errors import UsageError
from ..types import TimestampType
from . import layout
from ._pure import RecordReader as PureReader
from ._pure_record import shown, undeserializable
from .checksum import crc32c
from .columns import LEFT_OUT, BytesColumn, Columns
from .compression import Codec, compress
from .pickling import RAW as _RAW, restore_record

__all__ = ("BatchBuilder", "ConsumerRecord", "Delivery", "RecordReader", "record_size_bound")


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)
    bint PyBytes_Check(object)
    PyObject *new_bytes "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL
    char *bytes_at "PyBytes_AS_STRING"(PyObject *)
    int resize_bytes "_PyBytes_Resize"(PyObject **, Py_ssize_t) except -1


cdef object RAW = _RAW
cdef object LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME
cdef object CREATE_TIME = TimestampType.CREATE_TIME
cdef Py_ssize_t HEADER_SIZE = layout.HEADER_SIZE
cdef Py_ssize_t LOG_OVERHEAD = layout.LOG_OVERHEAD
cdef Py_ssize_t ATTRIBUTES_AT = layout.ATTRIBUTES_AT
cdef int MAGIC = layout.MAGIC
cdef int TRANSACTIONAL = layout.TRANSACTIONAL
cdef int CONTROL = layout.CONTROL
cdef int64_t SHORTEST_RECORD = layout.SHORTEST_RECORD
cdef Py_ssize_t RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5  # length, attributes, two deltas, three lengths
cdef Py_ssize_t FIRST_ROOM = 1024, GROWTH = 4


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
    """Write ``size`` and the bytes at ``what``; for null (size -1) only the size. Return the position after them."""
    to = put_varint(to, size)
    if size > 0:
        memcpy(to, what, size)
        to += size
    return to


cdef const uint8_t *long_varint(const uint8_t *at, const uint8_t *end, int bits, int64_t *value) noexcept nogil:
    """Decode the varint at ``at``; return the position after it, or NULL if truncated or of more than ``bits`` bits."""
    cdef uint64_t raw = 0, byte
    cdef int shift = 0
    while True:
        # 64 bits take ten bytes, and the tenth has only one bit.
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


include "_hot_record.pxi"
include "_hot_reader.pxi"
include "_hot_builder.pxi"
