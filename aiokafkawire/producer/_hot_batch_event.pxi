# The event that a batch's completion sets, and that tasks await for their records; _hot.pyx includes this file.

cdef enum:
    WAITING
    RESUMED
    CANCELLED


@cython.final
cdef class BatchEvent:
    """The compiled twin of the batch's event: one callback of the loop resumes all tasks; futures need one per task."""

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
                waiter.state = RESUMED
        if self._waiting:
            self._waiting.reverse()
            self._loop.call_soon(self._resume)

    def wait(self):
        cdef Waiter waiter = Waiter.__new__(Waiter)
        waiter.loop = self._loop
        if self._is_set:
            waiter.state = RESUMED
        else:
            self._waiting.append(waiter)
        return waiter

    def _resume(self):
        cdef Waiter waiter
        try:
            while self._waiting:
                waiter = self._waiting.pop()
                if waiter.state == RESUMED and waiter.wakeup is not None:
                    waiter.context.run(waiter.wakeup, waiter)
        finally:
            if self._waiting:  # a task has interrupted the loop, such as by KeyboardInterrupt: resume the other tasks
                self._loop.call_soon(self._resume)


@cython.final
cdef class Waiter:
    """The awaitable of one task, with the part of a future's interface that a task uses."""

    cdef public bint _asyncio_future_blocking
    cdef bint was_yielded
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
            if self.was_yielded:
                raise RuntimeError("a record is not acknowledged yet, and was awaited outside of a task of the event loop")
            self._asyncio_future_blocking = self.was_yielded = True
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
        self.state = CANCELLED
        # This future raises the CancelledError in the task.
        future = self.loop.create_future()
        future.cancel(msg)
        future.add_done_callback(self.wakeup, context=self.context)
        self.wakeup = self.context = None
        return True

    def result(self):
        return None
