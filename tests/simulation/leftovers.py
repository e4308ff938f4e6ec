"""What is there when all clients are gone: no task, and no connection."""

from collections import Counter
from typing import Any

import trio

from aiokafkawire.testing.simulation import Simulation

__all__ = ("check_nothing_is_left", "tasks")


def tasks() -> Counter[str]:
    """The tasks of the whole run, by what they run."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: Counter[str] = Counter()
    left: list[Any] = [root]
    while left:
        task = left.pop()
        found[task.name] += 1
        left += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


def check_nothing_is_left(sim: Simulation, before: Counter[str]) -> None:
    """No connection is open, and there is no task that was not there ``before``."""
    connections = [one.name for _, _, one in sim.network._open if one.is_open]
    assert not connections, connections
    more = tasks() - before
    assert not more, more
