"""Deserializes fetched records before they are handed out, independently of the calls that wait for them."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from ..cluster.cluster import Cluster
from ..errors import DeserializationError
from ..records.batch import AnyBatch, AnyReader, ConsumerRecord
from ..records.deserialization import DeserializedReader, FailureHandler, RecordDeserializer
from ..runtime import is_being_cancelled, new_event, stray_cancellation
from ..serialization import discard_awaitable, run_steps
from ..types import Event
from .completed_fetch import CompletedFetch

__all__ = ("BackgroundDeserialization",)

_CHUNK_SECONDS: Final = 0.01
"""Seconds after which records that are deserialized are handed out, while the rest of their batch is not."""

_Steps: TypeAlias = Generator[Awaitable[Any], Any, None]


@attrs.define(eq=False)
class _Chunk:
    """Records of one batch from ``start`` on that are being deserialized, or that are deserialized."""

    fetched: CompletedFetch
    batch: AnyBatch
    start: int
    reader: AnyReader[bytes, bytes] | None = None
    end: int = attrs.field(init=False)
    """The offset after the records that were read."""
    raw: list[ConsumerRecord[Any, Any]] = attrs.field(factory=list)
    entries: list[ConsumerRecord[Any, Any] | DeserializationError] = attrs.field(factory=list)
    has_begun: bool = False
    is_done: bool = False
    has_more: bool = False
    """Whether records of the batch follow."""
    error: BaseException | None = None
    """Why the record at ``end`` could be neither handed out nor left out."""
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)

    def __attrs_post_init__(self) -> None:
        self.end = self.start

    def rest(self) -> "_Chunk":
        """Return the chunk of the records that follow; after an error, it has only that error."""
        rest = _Chunk(self.fetched, self.batch, self.end, self.reader)
        rest.has_begun = rest.is_done = self.error is not None
        rest.error = self.error
        return rest


class BackgroundDeserialization:
    """The deserialization of one consumer's records, in their order, one partition at a time.

    Records count as handed out only once the user gets them. Asynchronous deserializers run in a background task: it
    continues if the call that waits for it times out or is cancelled, and the next call finds the result.

    Args:
        cluster: runs the background task.
        deserializer: converts the records.
        failures: takes the records that cannot be deserialized; None hands out their errors.
        check_crcs: whether to verify checksums.
        is_wanted: returns whether data may still be handed out: it was neither sought away from nor revoked.
        on_done: is called whenever the background task has deserialized records, or has failed.
    """

    def __init__(
        self,
        cluster: Cluster,
        deserializer: RecordDeserializer,
        failures: FailureHandler | None,
        *,
        check_crcs: bool,
        is_wanted: Callable[[CompletedFetch], bool],
        on_done: Callable[[], None],
    ) -> None:
        self._cluster, self._deserializer, self._failures = cluster, deserializer, failures
        self._check_crcs, self._is_wanted, self._on_done = check_crcs, is_wanted, on_done
        self._running: tuple[_Chunk, _Steps, Awaitable[Any]] | None = None
        self._wake: Event | None = None
        self._scope = anyio.CancelScope()

    def begin(self, fetched: CompletedFetch, batch: AnyBatch) -> bool:
        """Set the reader of ``fetched`` if the next records of ``batch`` are deserialized, and return whether they are.

        If they are not, deserialize them, or continue to.

        Raises:
            CorruptBatch: the batch is damaged.
            KafkaError: a record was to be left out, and the handler of failures could not take it.
            DeserializationError: a record is not to be left out, since only what its deserializer needs has failed.
        """
        chunk, start = fetched.deserialized, fetched.ask.state.position or 0
        if not isinstance(chunk, _Chunk) or chunk.batch is not batch or chunk.start != start:
            chunk = fetched.deserialized = _Chunk(fetched, batch, start)
        if not chunk.has_begun and self._is_free():
            self._start(chunk)
        if not chunk.is_done:
            return False
        if chunk.error is not None and chunk.end == start:
            fetched.deserialized = None
            raise chunk.error
        fetched.reader = DeserializedReader(chunk.raw, chunk.entries, start, chunk.end)
        fetched.timestamp_type = batch.header.timestamp_type
        if chunk.has_more:
            fetched.batch_end = chunk.end
            fetched.deserialized = chunk.rest()
        else:
            fetched.batch_end, fetched.begun, fetched.is_decompressed = batch.header.next_offset, None, False
            fetched.deserialized = None
        return True

    def close(self) -> None:
        """End the background task."""
        self._scope.cancel()

    def _is_free(self) -> bool:
        """Return whether no records are being deserialized; stop deserializing records that no call can return."""
        if self._running is None:
            return True
        chunk = self._running[0]
        if chunk.fetched.deserialized is not chunk or not self._is_wanted(chunk.fetched):
            chunk.scope.cancel()
        return False

    def _start(self, chunk: _Chunk) -> None:
        steps = self._deserialize(chunk)
        chunk.has_begun = True
        try:
            waiting = next(steps)
        except StopIteration:
            chunk.is_done = True
        except Exception as error:
            self._stopped(chunk, error)
        except BaseException:
            chunk.fetched.deserialized = None
            raise
        else:
            if self._wake is None:
                self._cluster.owner.spawn(self._run)
                self._wake = new_event()
            self._running = chunk, steps, waiting
            self._wake.set()

    def _deserialize(self, chunk: _Chunk) -> _Steps:
        """Deserialize records of the chunk's batch until some are ready and it has taken long."""
        now, began = self._cluster.runtime.now, self._cluster.runtime.now()
        state = chunk.fetched.ask.state
        if chunk.reader is None:
            chunk.reader = chunk.batch.records(*state.partition, from_offset=chunk.start, check_crcs=self._check_crcs)
        for raw in chunk.reader:
            if state.until is not None and raw.offset >= state.until:
                break
            try:
                chunk.entries.append((yield from self._deserializer.steps(raw)))
            except DeserializationError as error:
                if self._failures is not None and error.retriable:
                    raise  # it can be read later, so it must not be left out
                if self._failures is None:
                    chunk.entries.append(error)
                elif (waiting := self._failures.handle(error)) is not None:
                    yield waiting
            chunk.raw.append(raw)
            chunk.end = raw.offset + 1
            if now() - began > _CHUNK_SECONDS:
                if chunk.entries:
                    chunk.has_more = True
                    return
                yield anyio.lowlevel.checkpoint()
                began = now()
        chunk.end = chunk.batch.header.next_offset
        if not chunk.entries:
            # A row of such batches must not keep other tasks from running.
            yield anyio.lowlevel.checkpoint()

    def _stopped(self, chunk: _Chunk, error: BaseException) -> None:
        chunk.error, chunk.reader, chunk.has_more, chunk.is_done = error, None, True, True

    async def _run(self) -> None:
        try:
            with self._scope:
                while self._wake is not None:
                    await self._wake.wait()
                    self._wake = new_event()
                    if self._running is not None:
                        await self._run_chunk(*self._running)
        finally:
            if self._running is not None:  # it was not begun
                discard_awaitable(self._running[2])
                self._running = None

    async def _run_chunk(self, chunk: _Chunk, steps: _Steps, waiting: Awaitable[Any]) -> None:
        try:
            with chunk.scope:
                await self._finish(chunk, steps, waiting)
        finally:
            self._running = None
            if not chunk.is_done and chunk.fetched.deserialized is chunk:  # cancelled: it begins anew
                chunk.fetched.deserialized = None
            self._on_done()

    async def _finish(self, chunk: _Chunk, steps: _Steps, waiting: Awaitable[Any]) -> None:
        try:
            await run_steps(steps, waiting)
            chunk.is_done = True
        except Exception as error:
            self._stopped(chunk, error)
        except anyio.get_cancelled_exc_class() as cancelled:
            if is_being_cancelled():
                raise
            self._stopped(chunk, stray_cancellation("a deserializer", cancelled))
        except BaseException as error:  # such as SystemExit, which is for the user's task
            self._stopped(chunk, error)
