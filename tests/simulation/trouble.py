"""The faults of a scenario besides those of chaos: each has random numbers of its own, and can be left out."""

from random import Random

import anyio

from aiokafkawire.testing.virtual.study import current_study

__all__ = ("next_fault",)


async def next_fault(source: str, chance: Random, every: tuple[float, float]) -> Random:
    """Wait for the next fault of this source that is to happen, and return its random numbers."""
    while True:
        await anyio.sleep(chance.uniform(*every))
        own = Random(chance.getrandbits(64))
        if current_study().admits(source):
            return own
