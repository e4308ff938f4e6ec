"""Stores the newest snapshot of the cluster's metadata, and notifies listeners and tasks of updates."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

import anyio
import attrs

from ..protocol.messages.metadata import MetadataResponse
from ..runtime import Owner, Runtime
from ..types import TopicPartition
from .metadata import EMPTY, Node, Snapshot, merge, with_leaders

__all__ = ("MetadataCache",)

_Named: TypeAlias = tuple[Mapping[TopicPartition, tuple[int, int]], tuple[Node, ...]]


class MetadataCache:
    """A cache of the newest metadata snapshot, which :class:`~.metadata_updater.MetadataUpdater` refreshes."""

    def __init__(self, owner: Owner, runtime: Runtime) -> None:
        self._owner, self._runtime = owner, runtime
        self.snapshot: Snapshot = EMPTY
        """The newest metadata of the cluster."""
        # While a thread merges a response: the leaders that brokers name meanwhile, to apply to the merged snapshot.
        self._named: list[_Named] | None = None
        self._changed = anyio.Event()
        self._listeners: list[Callable[[], None]] = []

    async def wait_for_update(self, seen: Snapshot) -> Snapshot:
        """Wait for a snapshot newer than ``seen``, and return it. Request no refresh.

        Raises:
            UsageError: the client is not open.
        """
        while self.snapshot.generation <= seen.generation:
            self._owner.require_open()
            await self._changed.wait()
        return self.snapshot

    @contextmanager
    def on_update(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call the listener after every update while the context is open; waiting tasks run after the call."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def use_leaders(self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]) -> None:
        """Apply the leaders that a Produce or Fetch response names because of an error (KIP-951).

        Args:
            leaders: the leader's id and epoch of each partition. Epochs that are not newer than the known ones, and
                unknown partitions, are ignored.
            nodes: the addresses of these leaders. Known brokers keep their addresses.
        """
        named = dict(leaders), tuple(nodes)
        snapshot = with_leaders(self.snapshot, *named)
        if snapshot is not self.snapshot:
            self._replace(snapshot)
        if self._named is not None:
            self._named.append(named)

    async def _merge_on_a_thread(self, before: list[Snapshot], response: MetadataResponse) -> Snapshot:
        """Merge on a thread as :func:`~.metadata.merge`; meanwhile only :meth:`use_leaders` may replace the snapshot.

        ``before`` contains one snapshot. It is a list, so that no variable of this function keeps the snapshot alive.
        """
        named: list[_Named] = []
        self._named = named
        try:
            merged = await self._runtime.offload(merge, before[0], response)
        finally:
            self._named = None
        for leaders, nodes in named:
            merged = with_leaders(merged, leaders, nodes)
        return attrs.evolve(merged, generation=max(merged.generation, self.snapshot.generation + 1))

    def _replace(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for listener in self._listeners:
            listener()
        self.wake()

    def wake(self) -> None:
        """Wake the tasks that wait for an update."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def close(self) -> None:
        """Make current and later waits for an update raise UsageError, since the owner is closed."""
        self._changed.set()
