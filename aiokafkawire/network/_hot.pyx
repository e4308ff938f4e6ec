# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, always_allow_keywords=False, infer_types=False
"""A frame while it is received, compiled: the socket writes directly into the bytes object that the decoders read.

An operating system clears every page that it allocates, and reclaims large blocks as soon as they are freed. So a few
large bytes objects are kept, and reused for the next frame when nothing else refers to them.

Values of records and decompressed batches are many blocks that are freed together. glibc gives more than 128 KiB of
free memory back at once, unless it has seen a larger block come and go: then it retains up to twice that block's size.
Kept frames never go, so this module frees one block when it is imported.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    int _PyBytes_Resize(PyObject **, Py_ssize_t) except -1

__all__ = ("Frame", "bytes_kept")

cdef enum:
    FIRST = 4096
    # The size of large frames, in bytes; the sizes of kept objects are multiples of it.
    LARGE = 256 * 1024
    # The number of kept objects. A connection uses up to three frames: one is decoded, one waits, one is received.
    KEPT = 6
    # The total size of all kept objects.
    KEPT_BYTES = 32 * 1024 * 1024
    # The size of the block that is freed at import: what poll() decompresses of four partitions at once.
    FREED = 8 * 1024 * 1024

PyMem_RawFree(PyMem_RawMalloc(FREED))


cdef class Frame:
    """A frame, as the pure class. Other code gets the bytes object only when it is complete, so it may change and grow.

    Unless the bytes object is a kept one, its size is at most twice the received bytes, or four times the frame's head,
    or FIRST: the announced size may be wrong.
    """

    cdef PyObject *_data
    cdef Py_ssize_t _size, _allocated, _held, _buffers
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
        # An exported buffer keeps this object and its bytes alive, even after the frame was returned.
        if self._data != NULL:
            give_back(self._data)

    def __getbuffer__(self, Py_buffer *view, int flags):
        if self._data == NULL or self._held == self._allocated:
            raise BufferError("the frame is full")
        PyBuffer_FillInfo(
            view, self, PyBytes_AS_STRING(<object>self._data) + self._held, self._allocated - self._held, 0, flags
        )
        self._buffers += 1

    def __releasebuffer__(self, Py_buffer *view):
        self._buffers -= 1

    def buffer(self):
        if self._data != NULL and self._held == self._allocated < self._size:
            if self._buffers:
                raise BufferError("the frame's previous buffer was not released")
            _PyBytes_Resize(&self._data, self._grown(2 * self._allocated))
        return memoryview(self)

    cdef Py_ssize_t _grown(self, Py_ssize_t needed):
        """Return the size to allocate: ``needed``, or for a whole frame a size that fits other frames too."""
        self._allocated = min(self._size, needed)
        return needed if needed < self._size else whole_pieces(self._size)

    def filled(self, Py_ssize_t count):
        if self._data == NULL or not 0 <= count <= self._allocated - self._held:
            raise ValueError("more bytes than the frame's buffer holds")
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

    /* Only for a bytes object with a single reference that was allocated with at least that many bytes. */
    static void set_size(PyObject *data, Py_ssize_t size) {
        Py_SET_SIZE((PyVarObject *)data, size);
        PyBytes_AS_STRING(data)[size] = 0;
    _Py_COMP_DIAG_PUSH
    _Py_COMP_DIAG_IGNORE_DEPR_DECLS
        ((PyBytesObject *)data)->ob_shash = -1;
    _Py_COMP_DIAG_POP
    }

    /* Without the global lock a reference count of 1 proves nothing: then no objects are kept. */
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
cdef Py_ssize_t sizes_kept[KEPT]


cdef inline Py_ssize_t whole_pieces(Py_ssize_t size):
    """Return the size to allocate for a frame, so that it fits slightly larger frames too."""
    return size if size < LARGE else (size + LARGE - 1) // LARGE * LARGE


def bytes_kept():
    """Return how many bytes are kept for large frames, including those in use."""
    return sum([sizes_kept[index] for index in range(KEPT)])


cdef PyObject *reused(Py_ssize_t size):
    """Return a kept object as a frame of this size; NULL if all are in use or too small."""
    cdef int index, best = -1
    for index in range(KEPT):
        if sizes_kept[index] >= size and Py_REFCNT(kept[index]) == 1:
            if best < 0 or sizes_kept[index] < sizes_kept[best]:
                best = index
    if best < 0:
        return NULL
    set_size(kept[best], size)
    return take(<object>kept[best])


cdef void keep(PyObject *data, Py_ssize_t size):
    """Resize the object to a frame of this size, and keep it for later frames instead of a smaller unused one."""
    cdef int index, smallest = -1
    cdef Py_ssize_t allocated = whole_pieces(size), total = allocated
    set_size(data, size)
    for index in range(KEPT):
        total += sizes_kept[index]
        if sizes_kept[index] < allocated and (kept[index] == NULL or Py_REFCNT(kept[index]) == 1):
            if smallest < 0 or sizes_kept[index] < sizes_kept[smallest]:
                smallest = index
    if not KEEPS or smallest < 0 or total - sizes_kept[smallest] > KEPT_BYTES:
        return
    if kept[smallest] != NULL:
        give_back(kept[smallest])
    kept[smallest], sizes_kept[smallest] = take(<object>data), allocated
