# cython: language_level=3, binding=False, always_allow_keywords=False, infer_types=False
"""A frame while it arrives, compiled: the socket writes right into the bytes object that the decoders read.

An operating system clears every page that it gives, and takes large blocks back as soon as they are freed. So a few large
bytes objects are kept, and one that nobody else refers to any more becomes the next frame.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    int _PyBytes_Resize(PyObject **, Py_ssize_t) except -1

__all__ = ("Frame", "bytes_kept")

cdef enum:
    FIRST = 4096
    # From here on a frame is large, in bytes; and what is kept for them is a multiple of this.
    LARGE = 256 * 1024
    # How many are kept: of one connection there are up to three, which is read, which follows, and which arrives.
    KEPT = 6
    # And how many bytes all of them have.
    KEPT_BYTES = 32 * 1024 * 1024


cdef class Frame:
    """As the pure one: nobody else has the bytes object before it is whole, so it may be written to and grow.

    It holds at most twice what has come, or four times its head, or what was kept: a size that is announced is not yet a
    frame.
    """

    cdef PyObject *_data
    cdef Py_ssize_t _size, _allocated, _held, _rooms
    cdef bint _kept

    def __cinit__(self, Py_ssize_t size, head):
        cdef Py_buffer view
        PyObject_GetBuffer(head, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= view.len < size:
                raise ValueError("a frame's head is shorter than the frame")
            self._size = size
            self._data = reused(size) if size >= LARGE else NULL
            if self._data != NULL:
                self._kept, self._allocated = True, size
            else:
                self._data = take(PyBytes_FromStringAndSize(NULL, self._grown(max(FIRST, 4 * view.len))))
            memcpy(PyBytes_AS_STRING(<object>self._data), view.buf, view.len)
            self._held = view.len
        finally:
            PyBuffer_Release(&view)

    def __dealloc__(self):
        # Until then, a room that is still held has its bytes, though the frame may be in other hands by now.
        if self._data != NULL:
            give_back(self._data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        if self._data == NULL or self._held == self._allocated:
            raise BufferError("the frame has no room")
        PyBuffer_FillInfo(
            view, self, PyBytes_AS_STRING(<object>self._data) + self._held, self._allocated - self._held, 0, flags
        )
        self._rooms += 1

    def __releasebuffer__(self, Py_buffer *view):
        self._rooms -= 1

    def room(self):
        if self._data != NULL and self._held == self._allocated < self._size:
            if self._rooms:
                raise BufferError("the frame's last room is still held")
            _PyBytes_Resize(&self._data, self._grown(2 * self._allocated))
        return memoryview(self)

    cdef Py_ssize_t _grown(self, Py_ssize_t wanted):
        """How much to allocate: what is wanted, and once that is all, what will do for other frames as well."""
        self._allocated = min(self._size, wanted)
        return wanted if wanted < self._size else whole_pieces(self._size)

    def filled(self, Py_ssize_t count):
        if self._data == NULL or not 0 <= count <= self._allocated - self._held:
            raise ValueError("more bytes than there was room for")
        self._held += count
        if self._held < self._size:
            return None
        if not self._kept and self._size >= LARGE:
            self._kept = True
            keep(self._data, self._size)
        return <object>self._data


cdef extern from *:
    """
    static PyObject *take(PyObject *data) { Py_INCREF(data); return data; }
    static void give_back(PyObject *data) { Py_DECREF(data); }

    #ifndef _Py_COMP_DIAG_PUSH
    #define _Py_COMP_DIAG_PUSH
    #define _Py_COMP_DIAG_IGNORE_DEPR_DECLS
    #define _Py_COMP_DIAG_POP
    #endif

    /* Only of a bytes object that nobody else has, and that was allocated with that many bytes or more. */
    static void set_size(PyObject *data, Py_ssize_t size) {
        Py_SET_SIZE((PyVarObject *)data, size);
        PyBytes_AS_STRING(data)[size] = 0;
    _Py_COMP_DIAG_PUSH
    _Py_COMP_DIAG_IGNORE_DEPR_DECLS
        ((PyBytesObject *)data)->ob_shash = -1;
    _Py_COMP_DIAG_POP
    }

    /* Without a global lock nobody can tell that he is the only one: then none are kept. */
    #ifdef Py_GIL_DISABLED
    #define KEEPS 0
    #else
    #define KEEPS 1
    #endif
    """
    PyObject *take(object)
    void give_back(PyObject *)
    void set_size(PyObject *, Py_ssize_t)
    bint KEEPS
    Py_ssize_t Py_REFCNT(PyObject *)


cdef PyObject *kept[KEPT]
cdef Py_ssize_t rooms_kept[KEPT]


cdef inline Py_ssize_t whole_pieces(Py_ssize_t size):
    """What to allocate for a frame, so that it will do for others that are a little larger."""
    return size if size < LARGE else (size + LARGE - 1) // LARGE * LARGE


def bytes_kept():
    """How many bytes are kept for large frames, those in use included."""
    return sum([rooms_kept[place] for place in range(KEPT)])


cdef PyObject *reused(Py_ssize_t size):
    """One of those kept that is large enough, as a frame of this size; NULL if all are in use, or too small."""
    cdef int place, best = -1
    for place in range(KEPT):
        if rooms_kept[place] >= size and Py_REFCNT(kept[place]) == 1:
            if best < 0 or rooms_kept[place] < rooms_kept[best]:
                best = place
    if best < 0:
        return NULL
    set_size(kept[best], size)
    return take(<object>kept[best])


cdef void keep(PyObject *data, Py_ssize_t size):
    """Make it a frame of this size, and keep it for others, rather than a smaller one that is not in use."""
    cdef int place, smallest = -1
    cdef Py_ssize_t room = whole_pieces(size), all_rooms = room
    set_size(data, size)
    for place in range(KEPT):
        all_rooms += rooms_kept[place]
        if rooms_kept[place] < room and (kept[place] == NULL or Py_REFCNT(kept[place]) == 1):
            if smallest < 0 or rooms_kept[place] < rooms_kept[smallest]:
                smallest = place
    if not KEEPS or smallest < 0 or all_rooms - rooms_kept[smallest] > KEPT_BYTES:
        return
    if kept[smallest] != NULL:
        give_back(kept[smallest])
    kept[smallest], rooms_kept[smallest] = take(<object>data), room
