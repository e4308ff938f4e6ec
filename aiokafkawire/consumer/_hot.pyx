# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""The loop over records, compiled: what ``async for`` finds at hand it takes without a coroutine."""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

from ..records._hot cimport ConsumerRecord, RecordReader

cimport cython

__all__ = ("IteratorState", "RecordIterator")


cdef extern from "Python.h":
    int PyIter_Send(PyObject *, PyObject *, PyObject **) except -1
    void PyType_Modified(PyTypeObject *)
    void Py_DECREF(PyObject *)


cdef extern from *:
    """
    static void set_send(PyTypeObject *type, void *send) {
        type->tp_as_async->am_send = (sendfunc)send;
        PyType_Modified(type);
    }
    """
    void set_send(PyTypeObject *, void *)


cdef extern from *:
    """
    #if defined(_WIN32)
    #include <windows.h>
    static int64_t monotonic_ms(void) { return (int64_t)GetTickCount64(); }
    #else
    #include <time.h>
    static int64_t monotonic_ms(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    #endif
    """
    int64_t monotonic_ms() noexcept nogil


cdef int LOOK_EVERY = 16  # records between two looks at the clock
cdef int64_t YIELD_EVERY = 10  # ms after which a loop that never has to wait lets other tasks run


@cython.final
@cython.no_gc
cdef class IteratorState:
    """Counts what a loop over records has to know between two of them."""

    cdef public Py_ssize_t changes, asked


@cython.final
cdef class RecordIterator:
    """What ``async for`` runs over: the records of the batch that is being read, and where that ends, the consumer.

    Args:
        marks: the consumer's.
        slow: the coroutine that gives the next record in any case, and has the batch adopted that it is of.
        reads_clock: whether the time that passes is the machine's.
    """

    cdef IteratorState marks
    cdef object slow, place
    cdef RecordReader reader
    cdef Py_ssize_t seen
    cdef int left
    cdef bint reads_clock
    cdef int64_t since

    def __cinit__(self, IteratorState marks not None, slow, bint reads_clock):
        self.marks, self.slow, self.reads_clock = marks, slow, reads_clock

    def adopt(self, reader, place):
        """Go on in this batch, as long as nothing changes."""
        self.reader = reader if type(reader) is RecordReader else None
        self.place, self.seen, self.left = place, self.marks.changes, LOOK_EVERY
        if self.reads_clock:
            self.since = monotonic_ms()

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef Next step = Next.__new__(Next)
        step.iterator = self
        return step

    cdef ConsumerRecord take(self):
        """The next record, if there is one at hand, and no need to let others run first."""
        cdef ConsumerRecord record
        if self.reader is None:
            return None
        if self.seen != self.marks.changes:
            self.reader = None
            return None
        self.left -= 1
        if self.left < 0:
            if not self.reads_clock or monotonic_ms() - self.since > YIELD_EVERY:
                return None
            self.left = LOOK_EVERY
        self.place.held = self.place.position
        try:
            record = self.reader.advance()
        finally:
            self.place.position = self.reader.next_offset
        if record is None:
            self.reader = None  # the end, or damage: whoever reads it next finds out
        else:
            self.marks.asked += 1
        return record


@cython.final
@cython.internal
@cython.freelist(8)
cdef class Next:
    """One step: a record is taken when it is awaited and not before, so that none is lost if that never happens."""

    cdef RecordIterator iterator
    cdef object coroutine

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """As a coroutine's."""
        cdef PyObject *given = NULL
        cdef object result
        cdef int status = send_to(<PyObject *>self, <PyObject *>value, &given)
        result = <object>given
        Py_DECREF(given)
        if status == 1:
            return result
        raise StopIteration(result)

    def throw(self, kind, value=None, trace=None):
        """As a coroutine's."""
        if self.coroutine is not None:
            return self.coroutine.throw(kind if value is None else value)
        self.iterator = None
        if value is not None:
            raise value
        raise kind

    def close(self):
        """As a coroutine's."""
        self.iterator = None
        if self.coroutine is not None:
            self.coroutine.close()


cdef int send_to(PyObject *to, PyObject *value, PyObject **result) except -1:
    """The slot by which an ``await`` gets on: 0 with what it gives, or 1 with what it waits for."""
    cdef Next step = <Next>to
    cdef RecordIterator iterator
    cdef ConsumerRecord record
    if step.coroutine is None:
        if step.iterator is None:
            raise RuntimeError("this step of an iteration over records has been awaited before")
        iterator, step.iterator = step.iterator, None
        record = iterator.take()
        if record is not None:
            Py_INCREF(record)
            result[0] = <PyObject *>record
            return 0
        step.coroutine = iterator.slow(iterator)
    return PyIter_Send(<PyObject *>step.coroutine, value, result)


set_send(<PyTypeObject *>Next, <void *>&send_to)
