# cython: language_level=3, binding=False, always_allow_keywords=False, infer_types=False
"""A frame while it arrives, compiled: the socket writes right into the bytes object that the decoders read."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from libc.string cimport memcpy

cdef extern from "Python.h":
    ctypedef struct PyObject:
        pass
    int _PyBytes_Resize(PyObject **, Py_ssize_t) except -1

__all__ = ("Frame",)

cdef enum:
    FIRST = 4096


cdef class Frame:
    """As the pure one: nobody else has the bytes object before it is whole, so it may be written to and grow.

    It holds at most twice what has come, or four times its head: a size that is announced is not yet a frame.
    """

    cdef PyObject *_data
    cdef Py_ssize_t _size, _allocated, _held, _rooms

    def __cinit__(self, Py_ssize_t size, head):
        cdef Py_buffer view
        PyObject_GetBuffer(head, &view, PyBUF_SIMPLE)
        try:
            if not 0 <= view.len < size:
                raise ValueError("a frame's head is shorter than the frame")
            self._size = size
            self._allocated = min(size, max(FIRST, 4 * view.len))
            data = PyBytes_FromStringAndSize(NULL, self._allocated)
            memcpy(PyBytes_AS_STRING(data), view.buf, view.len)
            self._held = view.len
            self._data = take(data)
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
            self._allocated = min(self._size, 2 * self._allocated)
            _PyBytes_Resize(&self._data, self._allocated)
        return memoryview(self)

    def filled(self, Py_ssize_t count):
        if self._data == NULL or not 0 <= count <= self._allocated - self._held:
            raise ValueError("more bytes than there was room for")
        self._held += count
        return None if self._held < self._size else <object>self._data


cdef extern from *:
    """
    static PyObject *take(PyObject *data) { Py_INCREF(data); return data; }
    static void give_back(PyObject *data) { Py_DECREF(data); }
    """
    PyObject *take(object)
    void give_back(PyObject *)
