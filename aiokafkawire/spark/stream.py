"""The streaming source: plans the offsets of micro-batches and their input partitions, which tasks read.

Spark runs the planner in a separate, long-lived process with one client. Tasks get their
:class:`~.input_partitions.Part` and the options.
"""

import time
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from .. import blocking
from ..types import OffsetSpec, TopicPartition
from .admission import Admission, lost_between, ranges_between
from .input_partitions import Part, parts_of, read_part
from .lookup import data_lost, ends, existing, partitions_now, resolve
from .offsets import Offsets, SparkOffsets, read_offsets, write_offsets
from .options import ReadOptions

try:  # Spark 4.2 and later pass the start of a batch and its limit
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
        """A stand-in for Spark 4.2's class of this name, which older versions of Spark do not have."""


if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ("LIMITS", "StreamReader", "SupportsTriggerAvailableNow")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The planner of a stream's micro-batches. Its checkpoints are interchangeable with those of the JVM source."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._client: blocking.Client | None = None
        self._target: Offsets | None = None
        self._found: Offsets | None = None
        maximum, minimum = options.max_offsets_per_trigger, options.min_offsets_per_trigger
        self._admission = Admission(maximum, minimum, options.max_trigger_delay)

    def __getstate__(self) -> dict[str, Any]:
        # The client's thread and connections cannot be pickled; tasks need only the options.
        return {**self.__dict__, "_client": None}

    def initialOffset(self) -> SparkOffsets:  # noqa: N802 - Spark's names
        """Return the offsets at which a query without a checkpoint starts."""
        options = self._options
        start = self._call(_resolved, options)
        return write_offsets(start)

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, Any] | None = None, limit: "ReadLimit | None" = None
    ) -> SparkOffsets:
        """Return the end offsets of the next micro-batch. Spark before 4.2 passes neither argument."""
        given = {} if start is None else read_offsets(start, "the start of a batch")
        end = self._now(given) if self._target is None else self._target_with(given)
        if start is None or limit is None or isinstance(limit, ReadAllAvailable):
            return write_offsets(end)
        begins = given | self._begin_of_new(given, end)
        # partitions() reports truncated and deleted partitions when the batch is planned.
        known = {partition: min(begins.get(partition, offset), offset) for partition, offset in end.items()}
        return write_offsets(self._admission.reach(known, end, time.monotonic()))

    def getDefaultReadLimit(self) -> "ReadLimit":  # noqa: N802
        """Return the options' limit. Spark passes it to :meth:`latestOffset` unless the trigger reads all records."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def reportLatestOffset(self) -> SparkOffsets | None:  # noqa: N802
        """Return the end offsets that were looked up last, which Spark shows in the query's progress."""
        return write_offsets(self._now() if self._found is None else self._found)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Let the query end at the partitions' current ends; its batches no longer wait for a minimum of records."""
        self._target = self._now()
        self._admission.minimum = None

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Part]:
        """Return a micro-batch's input partitions. Raise DataLost for lost records, if ``failOnDataLoss`` is on."""
        begins, ends_at = (read_offsets(given, "the checkpoint") for given in (start, end))
        new = self._begin_of_new(begins, ends_at)
        lost = lost_between(begins, new, ends_at) if start != end else []
        lost += [
            f"{partition} is new, and was deleted before its offsets up to {offset} were read"
            for partition, offset in sorted(ends_at.items())
            if partition not in begins and partition not in new and offset > 0
        ]
        data_lost(lost, fail=self._options.fail_on_data_loss)
        return parts_of(self._options, ranges_between(begins | new, ends_at))

    def read(self, partition: Part) -> Iterator["pa.RecordBatch"]:  # type: ignore[override]
        """Yield the records of a task's input partition."""
        return read_part(self._options, partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Do nothing: Spark's checkpoint has the offsets. Spark does not call this method for the last batch."""

    def stop(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _target_with(self, given: Offsets) -> Offsets:
        """Return the ends at which the query ends, also of ``given`` partitions that the broker did not know."""
        assert self._target is not None  # the caller checks it
        if not given.keys() <= self._target.keys():
            self._target = self._now(given) | self._target
        return self._target

    def _now(self, known: Collection[TopicPartition] = ()) -> Offsets:
        """Look up the ends of all partitions; a broker that lacks one of the ``known`` may lag behind."""
        self._found = self._call(_end, self._options, {*(self._found or ()), *known})
        return self._found

    def _begin_of_new(self, begins: Offsets, end: Offsets) -> Offsets:
        """Look up the beginnings of partitions that are in ``end`` but not in ``begins``, as far as they exist."""
        new = [partition for partition in end if partition not in begins]
        return self._call(_begin, self._options, new) if new else {}

    def _call(self, function: Any, *args: Any) -> Offsets:
        if self._client is None:
            settings = self._options.settings
            self._client = blocking.Client(settings.bootstrap_servers, **settings.client).open()
        found: Offsets = self._client.loop.call(function, self._client.asynchronous, *args)
        return found


async def _resolved(kafka: Any, options: ReadOptions) -> Offsets:
    return await resolve(kafka, options, options.start, await partitions_now(kafka, options.topics))


async def _end(kafka: Any, options: ReadOptions, known: Collection[TopicPartition]) -> Offsets:
    return await ends(kafka, options, await partitions_now(kafka, options.topics, known), which=OffsetSpec.LATEST)


async def _begin(kafka: Any, options: ReadOptions, partitions: list[TopicPartition]) -> Offsets:
    return await ends(kafka, options, await existing(kafka, partitions), which=OffsetSpec.EARLIEST)
