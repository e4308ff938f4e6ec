"""The thread with an event loop: interrupted while it starts, and called just as it ends."""

from __future__ import annotations

import threading
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from support.interrupting import Interrupt
from support.patience import PATIENCE, SOON

from aiokafkawire import UsageError
from aiokafkawire.loop_thread import LoopThread, ThreadCall


def interrupt_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)


def interrupt_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: ThreadCall[Any]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadCall, "wait", interrupt)


def interrupt_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = ThreadCall.wait

    def wait_and_interrupt(call: ThreadCall[Any]) -> None:
        wait(call)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadCall, "wait", wait_and_interrupt)


@pytest.mark.parametrize("interrupt", [interrupt_the_start, interrupt_the_wait, interrupt_after_the_wait])
def test_an_interrupted_start_leaves_no_thread(interrupt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = LoopThread()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        interrupt(patched)
        loop.start()
    assert not loop.is_running
    for thread in threading.enumerate():
        if thread.name == "aiokafkawire-blocking":
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_a_call_that_begins_as_the_thread_ends_is_refused() -> None:
    async def nothing() -> None: ...

    loop = LoopThread()
    loop.start()
    running = loop.require()
    loop.stop()
    loop._running = running  # as a thread sees it that has looked just before
    for call in (loop.begin, loop.call):
        with pytest.raises(UsageError, match="closed"):
            call(nothing)


def test_an_interrupt_at_any_moment_of_the_stop_can_be_repeated() -> None:
    """Each moment of the stop has its turn: the next call ends the thread."""
    for at in count():
        loop = LoopThread()
        loop.start()
        thread, interrupt = loop._thread, Interrupt(at, but=__file__)
        with suppress(KeyboardInterrupt), interrupt:
            loop.stop()
        loop.stop()
        assert thread is not None
        thread.join(SOON)
        assert not thread.is_alive(), at
        if not interrupt.raised:
            break
    assert at > 5  # there were moments
