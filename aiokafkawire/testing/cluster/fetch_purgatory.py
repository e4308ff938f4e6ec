"""The Fetch requests that wait for new records: each waits until one of its partitions changes or is deleted."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import anyio

from ..logs.log import PartitionLog

__all__ = ("FetchPurgatory", "Watch")


class Watch:
    """A Fetch request that waits for changes of its logs. A change before a wait is not lost: the wait ends at once."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify(self) -> None:
        """Wake the fetch."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until one of the logs has changed since the last wait, or since the watch began."""
        await self._event.wait()
        self._event = anyio.Event()


class FetchPurgatory:
    """The waiting Fetch requests of each log."""

    def __init__(self) -> None:
        self._watches: dict[PartitionLog, dict[Watch, None]] = {}

    @contextmanager
    def watch(self, logs: Iterable[PartitionLog]) -> Iterator[Watch]:
        """Watch these logs for changes while the context is open."""
        watch = Watch()
        watched = list(dict.fromkeys(logs))
        for log in watched:
            self._watches.setdefault(log, {})[watch] = None
        try:
            yield watch
        finally:
            for log in watched:
                others = self._watches[log]
                del others[watch]
                if not others:
                    del self._watches[log]

    def notify(self, log: PartitionLog) -> None:
        """Wake the fetches that watch this log, after its partition changed or was deleted."""
        for watch in self._watches.get(log, ()):
            watch.notify()
