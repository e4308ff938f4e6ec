"""Decompresses large batches on a thread, independently of the calls that wait for their records."""

from collections.abc import Callable
from functools import partial
from typing import Final

import anyio

from ..cluster.cluster import Cluster
from ..records.batch import AnyBatch, AnyHeader
from ..records.compression import Codec
from ..runtime import new_event
from ..types import Event
from .completed_fetch import CompletedFetch

__all__ = ("BackgroundDecompression", "needs_thread")

_LARGEST_ON_LOOP: Final[dict[int, int]] = {
    Codec.GZIP: 64 * 1024,
    Codec.SNAPPY: 320 * 1024,
    Codec.LZ4: 512 * 1024,
    Codec.ZSTD: 160 * 1024,
}
"""The size in bytes of a compressed batch that the event loop's thread decompresses in about a millisecond, by codec.

Going to another thread and back costs 0.1 to 0.3 ms, during which nothing else of the batch can be done.
"""


def needs_thread(header: AnyHeader) -> bool:
    """Return whether decompressing this batch would block the event loop for too long."""
    return header.size > _LARGEST_ON_LOOP.get(header.codec, header.size)


class BackgroundDecompression:
    """The background task that checks and decompresses one consumer's large batches, one at a time.

    A decompression continues if the call that waits for it times out or is cancelled; the next call finds the result.
    The task runs from the first large batch until :meth:`close`.

    Args:
        cluster: runs the background task.
        check_crcs: whether to verify checksums.
        on_done: is called after each batch, whether or not the decompression succeeded.
    """

    def __init__(self, cluster: Cluster, *, check_crcs: bool, on_done: Callable[[], None]) -> None:
        self._cluster, self._check_crcs, self._on_done = cluster, check_crcs, on_done
        self._work: tuple[CompletedFetch, AnyBatch] | None = None
        self._wake: Event | None = None
        self._scope = anyio.CancelScope()

    def is_done(self, fetched: CompletedFetch, batch: AnyBatch) -> bool:
        """Return whether ``batch`` is decompressed; if not, start its decompression, unless another one is running.

        Raises:
            CorruptBatch: the batch cannot be decompressed.
            UsageError: the client is closed.
        """
        error, fetched.decompression_error = fetched.decompression_error, None
        if error is not None:
            raise error
        if not fetched.is_decompressed and self._work is None:
            if self._wake is None:
                self._cluster.owner.spawn(self._run)
                self._wake = new_event()
            self._work = fetched, batch
            self._wake.set()
        return fetched.is_decompressed

    def close(self) -> None:
        """End the task after the batch in progress."""
        self._scope.cancel()

    async def _run(self) -> None:
        with self._scope:
            while self._wake is not None:
                await self._wake.wait()
                self._wake = new_event()
                if self._work is not None:
                    await self._decompress(*self._work)

    async def _decompress(self, fetched: CompletedFetch, batch: AnyBatch) -> None:
        try:
            await self._cluster.runtime.offload(partial(batch.prepare, check_crcs=self._check_crcs))
            fetched.is_decompressed = True
        except Exception as error:  # the next call of is_done() raises it
            fetched.decompression_error = error
        finally:
            self._work = None
            self._on_done()
