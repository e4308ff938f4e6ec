"""Watches a plan until nothing of it moves, with a progress bar on standard error, and removes its throttles."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio
import click

from ...admin.admin import Admin
from ..shell.output import note
from .observing import PlanState, look_at_plan, replica_sizes
from .plan_file import ReassignmentPlan
from .progress import Copied, CopyTracker
from .starting import change_throttles
from .throttles import removed_throttles

__all__ = ("remove_throttles", "watch_plan")

_LAST_LOOKS: Final = 10
_LAST_INTERVAL: Final = 0.1
"""How often, and how many seconds apart, to look when nothing moves: brokers learn of the end after the controller."""


async def watch_plan(admin: Admin, plan: ReassignmentPlan, *, interval: float) -> PlanState:
    """Return the state of a plan when nothing of it moves any more.

    Args:
        admin: asks the brokers.
        plan: the plan.
        interval: the time between two looks, in seconds.

    Raises:
        KafkaError: the brokers cannot be asked.
    """
    tracker, looks_left = CopyTracker(), _LAST_LOOKS
    with _progress() as show:
        while True:
            state = await look_at_plan(admin, plan)
            sizes = await replica_sizes(admin, list(state.moving))
            show(tracker.look(state.moving, sizes))
            looks_left = _LAST_LOOKS if state.is_moving else looks_left - 1
            if state.is_complete or looks_left == 0:
                return state
            await anyio.sleep(interval if state.is_moving else _LAST_INTERVAL)


async def remove_throttles(admin: Admin, plan: ReassignmentPlan) -> None:
    """Remove the throttles of a plan from its topics and from all brokers, unless other partitions still move.

    Raises:
        KafkaError: a broker refuses.
    """
    ongoing = await admin.list_partition_reassignments()
    if ongoing:
        note(f"throttles stay, since partitions still move: {len(ongoing)}")
        return
    topics = {partition.topic for partition in plan.targets}
    existing = set(await admin.list_topics(internal=True))
    await change_throttles(admin, removed_throttles(topics & existing, (await admin.describe_cluster()).nodes))


@contextmanager
def _progress() -> Iterator[Callable[[Copied], None]]:
    """Show a bar on a terminal, and otherwise a line for each change."""
    if not sys.stderr.isatty():
        shown: list[Copied] = []

        def tell(seen: Copied) -> None:
            if seen.partitions and seen not in shown[-1:]:
                shown.append(seen)
                note(f"{_moving(seen)}, {seen.copied:,} of {seen.total:,} bytes are copied")

        yield tell
        return
    with click.progressbar(length=1, label="copied", file=sys.stderr, show_percent=True, item_show_func=_moving) as bar:

        def draw(seen: Copied) -> None:
            bar.length = max(seen.total, 1)
            bar.update(max(seen.copied, int(not seen.partitions)) - bar.pos, seen)
            bar.render_progress()  # also if only the number of partitions has changed

        yield draw


def _moving(seen: Copied | None) -> str:
    if seen is None:
        return ""
    return "1 partition moves" if seen.partitions == 1 else f"{seen.partitions} partitions move"
