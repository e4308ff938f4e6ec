"""What is known of the cluster: the newest snapshot, what makes another of it, and who hears of that."""

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
    """The newest snapshot; :class:`~.learning.LearnsMetadata` keeps it fresh."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime: Runtime = runtime
        self.owner: Owner = Owner()
        self._snapshot = EMPTY
        # While a thread merges an answer: the leaders that brokers name meanwhile, which it may not know.
        self._named: list[_Named] | None = None
        self._changed = anyio.Event()
        self._watchers: list[Callable[[], None]] = []

    @property
    def snapshot(self) -> Snapshot:
        """What is known of the cluster now."""
        return self._snapshot

    async def newer(self, seen: Snapshot) -> Snapshot:
        """Wait for a snapshot newer than ``seen``, whenever it comes, without asking for one.

        Raises:
            UsageError: the client is not open.
        """
        while self._snapshot.generation <= seen.generation:
            self.owner.require_open()
            await self._changed.wait()
        return self._snapshot

    @contextmanager
    def watched(self, tell: Callable[[], None]) -> Iterator[None]:
        """Meanwhile, call this as soon as there is another snapshot, before anybody sees it."""
        self._watchers.append(tell)
        try:
            yield
        finally:
            self._watchers.remove(tell)

    def use_leaders(self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]) -> None:
        """Take leaders from an answer to Produce or Fetch that refused to serve a partition (KIP-951).

        Args:
            leaders: the leader's id and epoch of each partition. Epochs that are not newer than what is known, and
                partitions that are not known, are passed over.
            nodes: where these leaders listen. Brokers that are known stay where they are.
        """
        named = dict(leaders), tuple(nodes)
        snapshot = with_leaders(self._snapshot, *named)
        if snapshot is not self._snapshot:
            self._replace(snapshot)
        if self._named is not None:
            self._named.append(named)

    async def _merged_on_a_thread(self, before: list[Snapshot], response: MetadataResponse) -> Snapshot:
        """As :func:`~.metadata.merge`; one task does so at a time, and only :meth:`use_leaders` makes snapshots
        meanwhile. ``before`` is a list of one, so that nothing here holds that when it is to be forgotten."""
        named: list[_Named] = []
        self._named = named
        try:
            merged = await self.runtime.offload(merge, before[0], response)
        finally:
            self._named = None
        for leaders, nodes in named:
            merged = with_leaders(merged, leaders, nodes)
        return attrs.evolve(merged, generation=max(merged.generation, self._snapshot.generation + 1))

    def _replace(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        for tell in self._watchers:
            tell()
        self._wake()

    def _wake(self) -> None:
        """Whoever waits for news has another look."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
