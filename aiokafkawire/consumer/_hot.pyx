# cython: freethreading_compatible=True
# cython: language_level=3, binding=False, auto_pickle=False, infer_types=False, boundscheck=False, wraparound=False
"""The compiled record iterator: ``async for`` takes buffered records without a coroutine."""

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


cdef extern from *:
    """
    /* Two threads that each write a number and then read the other's need a fence between both; the GIL is one. */
    #ifdef Py_GIL_DISABLED
    #include <stdatomic.h>
    #define order_between_threads() atomic_thread_fence(memory_order_seq_cst)
    #else
    #define order_between_threads()
    #endif
    """
    void order_between_threads() noexcept nogil


cdef int CLOCK_EVERY = 16  # records between two readings of the clock
cdef int64_t YIELD_EVERY = 10  # ms after which an iteration that never waits lets other tasks run


@cython.final
@cython.no_gc
cdef class IteratorState:
    """Counters shared by a consumer and its record iterators; ``_pure.py`` describes them."""

    cdef Py_ssize_t number_of_changes
    cdef public Py_ssize_t polls

    @property
    def changes(self):
        order_between_threads()
        return self.number_of_changes

    @changes.setter
    def changes(self, Py_ssize_t value):
        self.number_of_changes = value
        order_between_threads()


@cython.final
cdef class RecordIterator:
    """An iterator for ``async for``, which reads the current batch itself and calls the consumer for the next one.

    Args:
        iterator_state: the consumer's counters.
        slow: the consumer's coroutine function that returns the next record, and passes its batch to :meth:`adopt`.
        reads_clock: whether the event loop uses the machine's monotonic clock, which the iterator then reads itself.
    """

    cdef IteratorState iterator_state
    cdef object slow, state
    cdef RecordReader reader
    cdef Py_ssize_t seen
    cdef int left
    cdef bint reads_clock
    cdef int64_t since
    cdef object handling
    cdef bint attached

    def __cinit__(self, IteratorState iterator_state not None, slow, bint reads_clock):
        self.iterator_state, self.slow, self.reads_clock = iterator_state, slow, reads_clock

    def adopt(self, reader, state):
        """Take the next records from ``reader``, until a seek, pause or assignment; ``state`` is the partition's."""
        self.reader = reader if type(reader) is RecordReader else None
        self.state, self.seen, self.left = state, self.iterator_state.number_of_changes, CLOCK_EVERY
        if self.reads_clock:
            self.since = monotonic_ms()

    def trace(self, handling):
        """Call ``handling`` for each traced record from now on."""
        self.handling = handling

    def enter(self, record):
        """Start the span of a record that ``slow`` returns, if the record is traced."""
        if self.handling is not None and record.headers:
            self.attached = self.handling.next(record)

    def __aiter__(self):
        return self

    def __anext__(self):
        cdef Next step = Next.__new__(Next)
        step.iterator = self
        return step

    cdef ConsumerRecord take(self):
        """Return the next record of the batch; None if ``slow`` has to return it, or has to let other tasks run."""
        cdef ConsumerRecord record
        if self.reader is None:
            return None
        if self.seen != self.iterator_state.number_of_changes:
            self.reader = None
            return None
        self.left -= 1
        if self.left < 0:
            if not self.reads_clock or monotonic_ms() - self.since > YIELD_EVERY:
                return None
            self.left = CLOCK_EVERY
        self.state.held = self.state.position
        try:
            record = self.reader.advance()
        finally:
            self.state.position = self.reader.next_offset
        if record is None:
            self.reader = None  # the batch has ended or is damaged: ``slow`` handles both
        else:
            self.iterator_state.polls += 1
            if self.handling is not None and (self.attached or record._headers):
                self.attached = self.handling.next(record)
        return record


@cython.final
@cython.internal
@cython.freelist(8)
cdef class Next:
    """One step of the iteration: it takes a record only when awaited, so a step that is never awaited loses none."""

    cdef RecordIterator iterator
    cdef object coroutine

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return self.send(None)

    def send(self, value):
        """Resume the step, as a coroutine's send()."""
        cdef PyObject *given = NULL
        cdef object result
        cdef int status = send_to(<PyObject *>self, <PyObject *>value, &given)
        result = <object>given
        Py_DECREF(given)
        if status == 1:
            return result
        raise StopIteration(result)

    def throw(self, kind, value=None, trace=None):
        """Raise an exception in the step, as a coroutine's throw()."""
        if self.coroutine is not None:
            return self.coroutine.throw(kind if value is None else value)
        self.iterator = None
        if value is not None:
            raise value
        raise kind

    def close(self):
        """Close the step, as a coroutine's close()."""
        self.iterator = None
        if self.coroutine is not None:
            self.coroutine.close()


cdef int send_to(PyObject *to, PyObject *value, PyObject **result) except -1:
    """Implement the am_send slot: return 0 with the step's result, or 1 with the awaited object."""
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
        if iterator.attached:
            iterator.attached = iterator.handling.next(None)
        step.coroutine = iterator.slow(iterator)
    return PyIter_Send(<PyObject *>step.coroutine, value, result)


set_send(<PyTypeObject *>Next, <void *>&send_to)
