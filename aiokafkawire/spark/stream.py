"""The streaming source: which offsets the next micro-batch has, and its parts; tasks read them.

One long-lived process beside the driver plans, with one client; it is not the user's process. What tasks need comes
with their :class:`~.parts.Part`.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from .. import blocking
from ..types import OffsetSpec, TopicPartition
from .admission import Admission, lost_between, ranges_between
from .input_partitions import Part, parts_of, read_part
from .lookup import data_lost, ends, partitions_now, partitions_of, resolve
from .offsets import Offsets, SparkOffsets, read_offsets, write_offsets
from .options import ReadOptions

try:  # Spark 4.2 and later say where a batch begins, and how much it may have
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    LIMITS = True
except ImportError:
    LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark before 4.2 reads all that is there in one batch."""


if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("LIMITS", "StreamReader", "SupportsTriggerAvailableNow")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches. Offsets are the JVM source's JSON, so a checkpoint may go from one to the other."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: blocking.Client | None = None
        self._target: Offsets | None = None
        self._known: frozenset[TopicPartition] = frozenset()
        most, least = options.max_offsets_per_trigger, options.min_offsets_per_trigger
        self._admission = Admission(most, least, options.max_trigger_delay, passed_at=time.monotonic())

    def __getstate__(self) -> dict[str, Any]:
        # A thread and its connections stay where they are: tasks need the options only.
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> SparkOffsets:  # noqa: N802 - Spark's names
        """Where a query without a checkpoint begins."""
        options = self._options
        start = self._call(_resolved, options)
        return write_offsets(start)

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> SparkOffsets:
        """Where the next micro-batch ends. Spark before 4.2 gives neither argument."""
        end = self._now() if self._target is None else self._target
        if start is None or limit is None or isinstance(limit, ReadAllAvailable):
            return write_offsets(end)
        begun = read_offsets(start, "the start of a batch")
        begins = begun | self._begin_of_new(begun, end)
        # One that was cut off, or is gone, is told of when the batch is planned.
        known = {where: min(begins[where], end[where]) for where in end}
        return write_offsets(self._admission.reach(known, end, time.monotonic()))

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        """What Spark hands back to :meth:`latestOffset`; unless the trigger wants all there is."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> SparkOffsets | None:  # noqa: N802
        """Where the partitions end now, for the query's progress."""
        return write_offsets(self._now())

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """All batches together read to where the partitions end now; none of them waits for more."""
        self._target = self._now()
        self._admission.least = None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Part]:
        """The tasks of a micro-batch. Raises DataLost if records are missing, and ``failOnDataLoss`` is on."""
        begun, until = (read_offsets(given, "the checkpoint") for given in (start, end))
        new = self._begin_of_new(begun, until)
        lost = lost_between(begun, new, until) if start != end else []
        data_lost(lost, fail=self._options.fail_on_data_loss)
        return parts_of(self._options, ranges_between(begun | new, until))

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        """What a task does."""
        return read_part(self._options, partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing: Spark's checkpoint has the offsets. It is not told of the last batch; a listener is."""

    def stop(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _now(self) -> Offsets:
        found = self._call(_end, self._options, self._known)
        self._known = frozenset(found)
        return found

    def _begin_of_new(self, begun: Offsets, end: Offsets) -> Offsets:
        """Partitions that came after the query began are read from their beginning."""
        new = [where for where in end if where not in begun]
        return self._call(_begin, self._options, new) if new else {}

    def _call(self, function: Any, *args: Any) -> Offsets:
        if self._client is None:
            settings = self._options.settings
            self._client = blocking.Client(settings.bootstrap_servers, **settings.client).open()
        found: Offsets = self._client.loop.call(function, self._client.asynchronous, *args)
        return found


async def _resolved(kafka: Any, options: ReadOptions) -> Offsets:
    return await resolve(kafka, options, options.start, await partitions_of(kafka, options.topics))


async def _end(kafka: Any, options: ReadOptions, known: Collection[TopicPartition]) -> Offsets:
    return await ends(kafka, options, await partitions_now(kafka, options.topics, known), which=OffsetSpec.LATEST)


async def _begin(kafka: Any, options: ReadOptions, partitions: list[TopicPartition]) -> Offsets:
    return await ends(kafka, options, partitions, which=OffsetSpec.EARLIEST)
