"""Recognizes brokers that keep their connections and answer nothing, while other brokers take over their work."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

from ..errors import ConnectionLost, KafkaError
from ..network.connection import Connection
from ..runtime import background_tasks
from ..types import Address, CoordinatorType
from .connection_pool import ConnectionPool
from .coordinators import Coordinators
from .metadata import Node
from .metadata_updater import MetadataUpdater

__all__ = ("WATCH_SECONDS", "SilentBrokers")

WATCH_SECONDS: Final = 1.0
"""The seconds between looks for connections that are dead, that take long to open, or whose broker is silent."""

_MOST_LOOKUPS: Final = 50
"""The lookups at a time: one after another they would take a second for each coordinator that nobody has replaced."""


class SilentBrokers:
    """The brokers that leave requests unanswered: other brokers are asked for leaders and coordinators meanwhile.

    Args:
        brokers: the connections.
        metadata: is refreshed while a broker is silent.
        coordinators: those that are cached.
        look_up: asks brokers for a coordinator, for ``WATCH_SECONDS`` at most.
    """

    def __init__(
        self,
        brokers: ConnectionPool,
        metadata: MetadataUpdater,
        coordinators: Coordinators,
        look_up: Callable[[CoordinatorType, str], Awaitable[Node]],
    ) -> None:
        self._brokers, self._metadata = brokers, metadata
        self._coordinators, self._look_up = coordinators, look_up

    async def leave(self, now: float) -> None:
        """Refresh the metadata if another broker can be asked, and leave coordinators that are silent for new ones."""
        silent = self._brokers.overdue(now)
        snapshot = self._metadata.snapshot
        if not silent or all(node.address in silent for node in snapshot.nodes.values()):
            return
        self._metadata.mark_stale(snapshot)
        outdated = self._coordinators.at(silent)
        remaining = iter(outdated)
        async with background_tasks() as tasks:
            for _ in outdated[:_MOST_LOOKUPS]:
                tasks.start_soon(self._replace, remaining, silent)

    async def _replace(
        self, remaining: Iterator[tuple[CoordinatorType, str, Node]], silent: dict[Address, list[Connection]]
    ) -> None:
        for key_type, key, node in remaining:
            with suppress(KafkaError):  # no other broker knows a coordinator yet
                found = await self._look_up(key_type, key)
                if found.address != node.address:
                    self._coordinators.use(key_type, key, found)
                    # Those who wait for a response ask the successor then.
                    cause = f"{node.address} answered nothing, and another broker is the coordinator by now"
                    for connection in silent[node.address]:
                        await connection.close(ConnectionLost(cause))
