# Those who await the records of a batch: included by _hot.pyx.

cdef enum:
    WAITING
    TOLD
    GONE


@cython.final
cdef class Waiters:
    """As the pure one. One callback of the loop resumes all tasks, where futures would take one for each."""

    cdef object _loop
    cdef list _waiting
    cdef bint _is_set

    def __cinit__(self, loop):
        self._loop = loop
        self._waiting = []
        self._is_set = False

    def set(self):
        cdef Waiter waiter
        if self._is_set:
            return
        self._is_set = True
        for waiter in self._waiting:
            if waiter.state == WAITING:
                waiter.state = TOLD
        if self._waiting:
            self._waiting.reverse()
            self._loop.call_soon(self._resume)

    def wait(self):
        cdef Waiter waiter = Waiter.__new__(Waiter)
        waiter.loop = self._loop
        if self._is_set:
            waiter.state = TOLD
        else:
            self._waiting.append(waiter)
        return waiter

    def _resume(self):
        cdef Waiter waiter
        try:
            while self._waiting:
                waiter = self._waiting.pop()
                if waiter.state == TOLD and waiter.wakeup is not None:
                    waiter.context.run(waiter.wakeup, waiter)
        finally:
            if self._waiting:  # who interrupts the loop does not do so for the others
                self._loop.call_soon(self._resume)


@cython.final
cdef class Waiter:
    """What one task awaits: of a future, as much as a task asks for."""

    cdef public bint _asyncio_future_blocking
    cdef bint was_given
    cdef object loop, wakeup, context
    cdef int state

    def __cinit__(self):
        self.state = WAITING

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        if self.state == WAITING:
            if self.was_given:
                raise RuntimeError("a record is not there yet, and was awaited by what is no task of the loop")
            self._asyncio_future_blocking = self.was_given = True
            return self
        raise StopIteration

    def get_loop(self):
        return self.loop

    def add_done_callback(self, wakeup, *, context):
        if self.state == WAITING:
            self.wakeup, self.context = wakeup, context
        else:
            self.loop.call_soon(wakeup, self, context=context)

    def cancel(self, msg=None):
        if self.state != WAITING:
            return False
        self.state = GONE
        # It knows how the task is told.
        future = self.loop.create_future()
        future.cancel(msg)
        future.add_done_callback(self.wakeup, context=self.context)
        self.wakeup = self.context = None
        return True

    def result(self):
        return None
