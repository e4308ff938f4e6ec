"""Who waits for which log: a fetch sleeps until one of its partitions gets records, or goes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import anyio

from ..logs.log import PartitionLog

__all__ = ("FetchPurgatory", "Watch")


class Watch:
    """One waiting fetch. A change between two waits is not lost."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify(self) -> None:
        """Something changed."""
        self._event.set()

    async def wait(self) -> None:
        """Return when something has changed since the last wait, or since the watch began."""
        await self._event.wait()
        self._event = anyio.Event()


class FetchPurgatory:
    """The watches of each log; notifying one costs what its own watchers cost."""

    def __init__(self) -> None:
        self._watches: dict[PartitionLog, dict[Watch, None]] = {}

    @contextmanager
    def watch(self, logs: Iterable[PartitionLog]) -> Iterator[Watch]:
        """Be told of every change of these logs inside the context."""
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
        """Wake those who watch this log: records came, or the log is gone."""
        for watch in self._watches.get(log, ()):
            watch.notify()
