# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, always_allow_keywords=False, infer_types=False
"""The message decoder, compiled: the fast twin of the functions that emit_decode.py writes.

A message in one version is a ``Struct`` of ``Field``s (made by decode_plan.py). The decoder writes values directly into
the slots of new objects, without ``__init__``. It rejects the same bytes as the pure decoder, with a bare ValueError;
the caller then runs the pure decoder for the error message.

A decoded message has no reference cycle, so its objects are untracked from the garbage collector: otherwise a metadata
response of 100,000 partitions would make every full collection block the event loop for tens of ms. The collector does
not free a cycle through a decoded message.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from uuid import UUID, SafeUUID

__all__ = ("Field", "Struct")


cdef extern from "Python.h":
    """
    #if PY_VERSION_HEX < 0x030C0000
    #include <structmember.h>
    #define Py_T_OBJECT_EX T_OBJECT_EX
    #endif
    #if defined(PYPY_VERSION)
    #error "this module depends on CPython's layout of objects"
    #endif
    """
    ctypedef struct PyObject:
        pass
    ctypedef struct PyTypeObject:
        pass
    ctypedef struct PyMemberDef:
        int type
        Py_ssize_t offset
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member
    const int Py_T_OBJECT_EX
    PyTypeObject PyMemberDescr_Type
    bint PyObject_TypeCheck(object, PyTypeObject *)
    object PyType_GenericAlloc(PyTypeObject *, Py_ssize_t)
    void PyObject_GC_UnTrack(void *)
    object PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *)
    object PyLong_FromLong(long)
    object PyLong_FromLongLong(long long)
    object PyFloat_FromDouble(double)
    object PyList_New(Py_ssize_t)
    void PyList_SET_ITEM(object, Py_ssize_t, PyObject *)
    PyObject *PyTuple_GET_ITEM(object, Py_ssize_t)
    const char *PyBytes_AS_STRING(object)
    object PyMemoryView_FromObject(object)
    Py_buffer *PyMemoryView_GET_BUFFER(object)
    void Py_INCREF(PyObject *)
    void Py_XDECREF(PyObject *)


cdef enum Kind:
    BOOL
    INT8
    INT16
    UINT16
    INT32
    INT64
    FLOAT64
    UUID_
    STRING
    BYTES
    STRUCT

_KINDS = {
    "bool": BOOL,
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "int64": INT64,
    "float64": FLOAT64,
    "uuid": UUID_,
    "string": STRING,
    "bytes": BYTES,
    "records": BYTES,
}

cdef Py_ssize_t *_WIDTHS = [1, 1, 2, 2, 4, 8, 8, 16]

cdef enum Default:
    CONSTANT
    LIST
    STRUCT_LATER


cdef Py_ssize_t slot_of(type cls, str name) except -1:
    """Return the attribute's offset in objects of ``cls``."""
    descriptor = getattr(cls, name, None)
    if not PyObject_TypeCheck(descriptor, &PyMemberDescr_Type):
        raise TypeError(f"{cls.__name__}.{name} is not a slot")
    cdef PyMemberDef *member = (<PyMemberDescrObject *><PyObject *>descriptor).d_member
    if member.type != Py_T_OBJECT_EX:
        raise TypeError(f"{cls.__name__}.{name} is a slot of another type")
    return member.offset


cdef class Field:
    """A field in one version: the form of its bytes, and the slot that stores its value."""

    cdef Py_ssize_t slot
    cdef Py_ssize_t width  # the minimum size of one element in bytes
    cdef int kind
    cdef bint array
    cdef bint nullable
    cdef bint compact
    cdef int64_t tag
    cdef Struct struct
    cdef int how
    cdef object default

    def __init__(self, type owner, str name, str wire, Struct struct, bint array, bint nullable, bint compact, tag,
                 default):
        self.slot = slot_of(owner, name)
        self.kind = STRUCT if struct is not None else _KINDS[wire]
        self.struct = struct
        self.array = array
        self.nullable = nullable
        self.compact = compact
        self.tag = -1 if tag is None else tag
        self.default = default
        self.how = LIST if default is list else STRUCT_LATER if callable(default) else CONSTANT
        if self.kind == STRUCT:
            self.width = struct.width
        elif self.kind < STRING:
            self.width = _WIDTHS[self.kind]
        else:
            self.width = 1 if compact else 2 if self.kind == STRING else 4

    cdef Py_ssize_t min_size(self):
        """Return the minimum size of the field in bytes."""
        if self.array:
            return 1 if self.compact else 4
        return 1 if self.nullable and self.kind == STRUCT else self.width


cdef class Struct:
    """A message or nested struct in one version: its inline, tagged, and absent fields."""

    cdef type cls
    cdef tuple inline
    cdef tuple tagged
    cdef tuple absent
    cdef bint flexible
    cdef Py_ssize_t unknown
    cdef Py_ssize_t width  # the minimum size in bytes

    def __init__(self, type cls, tuple inline, tuple tagged, tuple absent, bint flexible):
        cdef Field field
        self.cls, self.inline, self.tagged, self.absent, self.flexible = cls, inline, tagged, absent, flexible
        self.unknown = slot_of(cls, "unknown_tagged_fields")
        self.width = flexible
        for field in inline:
            self.width += field.min_size()

    def decode(self, bytes data not None, Py_ssize_t position):
        """Decode a message at ``position``; return it and its end. Raise ValueError for other bytes."""
        cdef Cursor cursor = Cursor.__new__(Cursor)
        cursor.frame = data
        cursor.data = <const uint8_t *>PyBytes_AS_STRING(data)
        cursor.size = len(data)
        cursor.at = position
        if position < 0:
            raise ValueError
        message = read_struct(cursor, self)
        return message, cursor.at


cdef class Cursor:
    """The position of the decoder in a frame."""

    cdef const uint8_t *data
    cdef Py_ssize_t at
    cdef Py_ssize_t size
    cdef bytes frame
    cdef object view
    cdef int structs


cdef inline const uint8_t *take(Cursor cursor, Py_ssize_t size) except NULL:
    """Return the next ``size`` bytes, and move the cursor to their end."""
    if size > cursor.size - cursor.at:
        raise ValueError
    cdef const uint8_t *found = cursor.data + cursor.at
    cursor.at += size
    return found


cdef inline uint16_t two(const uint8_t *data) noexcept:
    return <uint16_t>((data[0] << 8) | data[1])


cdef inline uint32_t four(const uint8_t *data) noexcept:
    return (<uint32_t>data[0] << 24) | (<uint32_t>data[1] << 16) | (<uint32_t>data[2] << 8) | data[3]


cdef inline uint64_t eight(const uint8_t *data) noexcept:
    return (<uint64_t>four(data) << 32) | four(data + 4)


cdef int64_t uvarint(Cursor cursor) except -1:
    cdef uint64_t number = 0
    cdef int shift = 0
    cdef uint8_t byte
    while shift < 35:
        if cursor.at >= cursor.size:
            raise ValueError
        byte = cursor.data[cursor.at]
        cursor.at += 1
        number |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            return <int64_t>number
        shift += 7
    raise ValueError


cdef Py_ssize_t length(Cursor cursor, Field field, bint array) except -2:
    """Read a length or count, at most the remaining bytes, or -1 for null."""
    cdef int64_t count
    if field.compact:
        count = uvarint(cursor) - 1
        if count > 32767 and field.kind == STRING and not array:
            raise ValueError
    elif field.kind == STRING and not array:
        count = <int16_t>two(take(cursor, 2))
    else:
        count = <int32_t>four(take(cursor, 4))
    if count < 0:
        if not field.nullable or field.array != array:
            raise ValueError
        return -1
    # Elements take at least their width: reject larger counts before allocating memory for them.
    if count > (cursor.size - cursor.at) // (field.width if array and field.width else 1):
        raise ValueError
    return <Py_ssize_t>count


cdef inline void put(object target, Py_ssize_t slot, object value) noexcept:
    cdef PyObject **place = <PyObject **>(<char *><PyObject *>target + slot)
    cdef PyObject *before = place[0]
    Py_INCREF(<PyObject *>value)
    place[0] = <PyObject *>value
    Py_XDECREF(before)


cdef inline bint is_empty(object target, Py_ssize_t slot) noexcept:
    return (<PyObject **>(<char *><PyObject *>target + slot))[0] == NULL


cdef inline int put_default(object target, Field field) except -1:
    # schema.py makes a default struct on first access: most responses have several that are never accessed.
    if field.how == CONSTANT:
        put(target, field.slot, field.default)
    elif field.how == LIST:
        put(target, field.slot, [])
    return 0


cdef Py_ssize_t _UUID_INT, _UUID_IS_SAFE
try:
    _UUID_INT, _UUID_IS_SAFE = slot_of(UUID, "int"), slot_of(UUID, "is_safe")
except TypeError as error:
    raise ImportError(f"this module does not support this Python's uuid module: {error}") from error
cdef object _UNKNOWN_SAFETY = SafeUUID.unknown


cdef object make_uuid(const uint8_t *data):
    # UUID's __init__ would take longer than decoding the rest of a topic in a Fetch response.
    cdef object made = PyType_GenericAlloc(<PyTypeObject *>UUID, 0)
    cdef object number = eight(data)
    number = (number << 64) | eight(data + 8)
    put(made, _UUID_INT, number)
    put(made, _UUID_IS_SAFE, _UNKNOWN_SAFETY)
    PyObject_GC_UnTrack(<void *>made)
    return made


cdef object read_fixed(const uint8_t *data, int kind):
    cdef uint64_t bits
    cdef double number
    if kind == INT32:
        return PyLong_FromLong(<int32_t>four(data))
    if kind == INT64:
        return PyLong_FromLongLong(<int64_t>eight(data))
    if kind == INT16:
        return PyLong_FromLong(<int16_t>two(data))
    if kind == INT8:
        return PyLong_FromLong(<int8_t>data[0])
    if kind == BOOL:
        return True if data[0] else False
    if kind == UINT16:
        return PyLong_FromLong(two(data))
    if kind == FLOAT64:
        bits = eight(data)
        memcpy(&number, &bits, 8)
        return PyFloat_FromDouble(number)
    return make_uuid(data)


cdef object read_sized(Cursor cursor, Field field):
    """Read a string or bytes; bytes are views of the frame."""
    cdef Py_ssize_t size = length(cursor, field, False)
    if size < 0:
        return None
    cdef const uint8_t *data = take(cursor, size)
    if field.kind == STRING:
        return PyUnicode_DecodeUTF8(<const char *>data, size, NULL)
    if cursor.view is None:
        cursor.view = memoryview(cursor.frame)
    # Like a slice, without an object for its bounds.
    cdef object part = PyMemoryView_FromObject(cursor.view)
    cdef Py_buffer *bounds = PyMemoryView_GET_BUFFER(part)
    bounds.buf = <void *>data
    bounds.len = size
    bounds.shape[0] = size
    return part


cdef object read_array(Cursor cursor, Field field):
    cdef Py_ssize_t count = length(cursor, field, True)
    cdef Py_ssize_t index
    cdef const uint8_t *data = NULL
    cdef object element
    if count < 0:
        return None
    cdef object made = PyList_New(count)
    PyObject_GC_UnTrack(<void *>made)
    if field.kind < STRING:
        data = take(cursor, count * field.width)
    for index in range(count):
        if field.kind == STRUCT:
            element = read_struct(cursor, field.struct)
        elif field.kind < STRING:
            element = read_fixed(data + index * field.width, field.kind)
        else:
            element = read_sized(cursor, field)
        Py_INCREF(<PyObject *>element)
        PyList_SET_ITEM(made, index, <PyObject *>element)
    return made


cdef object read_value(Cursor cursor, Field field):
    if field.array:
        return read_array(cursor, field)
    if field.kind < STRING:
        return read_fixed(take(cursor, field.width), field.kind)
    if field.kind < STRUCT:
        return read_sized(cursor, field)
    if field.nullable and <int8_t>take(cursor, 1)[0] < 0:
        return None
    return read_struct(cursor, field.struct)


# Large messages are decoded on a thread, which must not block the event loop's thread. At a call of a Python function
# the interpreter releases its lock if another thread requests the lock; releasing the lock without a request is slower.
_pause = eval("lambda: None")


cdef object read_struct(Cursor cursor, Struct struct):
    cdef Field field
    cdef Py_ssize_t index
    cdef object made = PyType_GenericAlloc(<PyTypeObject *>struct.cls, 0)
    PyObject_GC_UnTrack(<void *>made)
    for index in range(len(struct.inline)):
        field = <Field>PyTuple_GET_ITEM(struct.inline, index)
        put(made, field.slot, read_value(cursor, field))
    if struct.flexible:
        read_tags(cursor, struct, made)
    else:
        put(made, struct.unknown, None)
    for index in range(len(struct.tagged)):
        field = <Field>PyTuple_GET_ITEM(struct.tagged, index)
        if is_empty(made, field.slot):
            put_default(made, field)
    for index in range(len(struct.absent)):
        put_default(made, <Field>PyTuple_GET_ITEM(struct.absent, index))
    cursor.structs += 1
    if not cursor.structs & 1023:
        _pause()
    return made


cdef int read_tags(Cursor cursor, Struct struct, object made) except -1:
    """Read the tagged fields: known ones into their slots, unknown ones as bytes."""
    cdef int64_t count = uvarint(cursor)
    cdef int64_t tag, size
    cdef Py_ssize_t start, index
    cdef Field field, known
    cdef dict unknown = None
    while count:
        count -= 1
        tag = uvarint(cursor)
        size = uvarint(cursor)
        start = cursor.at
        known = None
        for index in range(len(struct.tagged)):
            field = <Field>PyTuple_GET_ITEM(struct.tagged, index)
            if field.tag == tag:
                known = field
                break
        if known is not None:
            put(made, known.slot, read_value(cursor, known))
            if cursor.at - start != size:
                raise ValueError
            continue
        take(cursor, size)
        if unknown is None:
            unknown = {}
        unknown[tag] = cursor.frame[start:cursor.at]
    put(made, struct.unknown, unknown)
    return 0
