"""Byte streams in memory behave as sockets do."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from aiokafkawire.testing.serving.memory import memory_connection

pytestmark = pytest.mark.anyio


async def test_bytes_arrive_in_both_directions() -> None:
    one, other = memory_connection()
    async with one, other:
        await one.send(b"ping")
        await other.send(b"pong")
        assert (await other.receive(), await one.receive()) == (b"ping", b"pong")


async def test_receiving_takes_what_is_asked_for_at_most() -> None:
    one, other = memory_connection()
    async with one, other:
        await one.send(b"abcdef")
        await one.send(b"gh")
        assert [await other.receive(4), await other.receive(4), await other.receive(4)] == [b"abcd", b"ef", b"gh"]
        with pytest.raises(ValueError, match="positive"):
            await other.receive(0)


async def test_a_chunk_is_handed_on_uncopied() -> None:
    one, other = memory_connection()
    async with one, other:
        chunk = bytes(1000)
        await one.send(chunk)
        assert await other.receive(1 << 20) is chunk


async def test_a_sender_waits_for_room() -> None:
    one, other = memory_connection()
    sent = bytes(range(256)) * 20_000
    received = bytearray()
    async with one, other, anyio.create_task_group() as tasks:
        tasks.start_soon(one.send, sent)
        await anyio.wait_all_tasks_blocked()
        while len(received) < len(sent):
            received += await other.receive(300_000)
    assert received == sent


async def test_closing_ends_what_the_other_receives() -> None:
    one, other = memory_connection()
    await one.send(b"last words")
    await one.aclose()
    async with other:
        assert await other.receive() == b"last words"
        with pytest.raises(anyio.EndOfStream):
            await other.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await other.send(b"x")
    for broken in (one.send(b"x"), one.receive()):
        with pytest.raises(anyio.ClosedResourceError):
            await broken


async def test_closing_wakes_both_sides() -> None:
    one, other = memory_connection()
    outcomes: list[str] = []

    async def receive(who: str) -> None:
        try:
            await (one if who == "one" else other).receive()
        except (anyio.ClosedResourceError, anyio.EndOfStream) as error:
            outcomes.append(f"{who} {type(error).__name__}")

    async def send() -> None:
        try:
            await other.send(bytes(10_000_000))
        except anyio.BrokenResourceError:
            outcomes.append("send")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive, "other")
        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        await one.aclose()
    assert sorted(outcomes) == ["other EndOfStream", "send"]
    await other.aclose()


async def test_closing_interrupts_ones_own_receiving() -> None:
    one, other = memory_connection()
    interrupted = anyio.Event()

    async def receive() -> None:
        with pytest.raises(anyio.ClosedResourceError):
            await one.receive()
        interrupted.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        await one.aclose()
        await interrupted.wait()
    await other.aclose()


async def test_half_closing_leaves_the_other_half() -> None:
    one, other = memory_connection()
    async with one, other:
        await one.send_eof()
        with pytest.raises(anyio.EndOfStream):
            await other.receive()
        await other.send(b"still here")
        assert await one.receive() == b"still here"
        with pytest.raises(anyio.BrokenResourceError):
            await one.send(b"x")


async def test_one_task_at_a_time() -> None:
    one, other = memory_connection()
    async with one, other, anyio.create_task_group() as tasks:
        tasks.start_soon(one.receive)
        tasks.start_soon(other.send, bytes(10_000_000))
        await anyio.wait_all_tasks_blocked()
        await checkpoint()
        with pytest.raises(anyio.BusyResourceError):
            await other.send(b"x")
        tasks.cancel_scope.cancel()


async def test_a_cancelled_receive_loses_nothing() -> None:
    one, other = memory_connection()
    async with one, other:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await other.receive()
        await one.send(b"kept")
        assert await other.receive() == b"kept"
