"""One direction of a connection in virtual time."""

from random import Random

import pytest

from aiokafkawire.testing.virtual.clock import VirtualClock
from aiokafkawire.testing.virtual.link import Direction, Link

trio = pytest.importorskip("trio")


def test_a_receiver_that_is_cancelled_and_notified_at_once_ends() -> None:
    ended = []

    async def main() -> None:
        direction, scope = Direction(Link((0.1, 0.2)), Random(1)), trio.CancelScope()

        async def receive() -> None:
            with scope:
                await direction.arrival()
            ended.append(True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await trio.sleep(1)
            scope.cancel()
            direction.notify()

    trio.run(main, clock=VirtualClock())
    assert ended == [True]
