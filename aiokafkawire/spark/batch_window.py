"""Batch jobs that each read the records since the last one, and repeat the same records if a job fails."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import attrs

from .. import blocking
from ..client import Client
from ..errors import ConfigError, UsageError
from ..types import OffsetSpec
from .admission import lost_between
from .lookup import data_lost, ends, partitions_now, resolve
from .offsets import OffsetRange
from .options import ReadOptions, read_options
from .planning import split_up
from .window_plan import WindowPlan, next_window, unfinished_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ("BatchWindow",)


class BatchWindow:
    """The records since the last window of a group: the input of one batch job.

        with BatchWindow(options, "nightly") as window:
            window.read(spark).write.mode("overwrite").parquet(f"/flights/window={window.name}")

    Entering it plans the window, and commits the plan to the group. Leaving it commits the window's end, unless the
    body raises. If the job fails, or its machine dies, the next run gets a window with the same name and the same
    records. So a job that overwrites the output of its window's name has each record in its output exactly once, as
    long as Kafka keeps the records. Write the output inside of the ``with``: a frame reads when it is written.

    The first window begins at ``startingOffsets`` or ``startingTimestamp``, by default at the earliest record, and so
    does each partition that is added later. A window ends at ``endingOffsets`` or ``endingTimestamp``, by default at
    the present end. Windows of one group run one after the other. The group must have no members, and brokers forget
    its offsets after ``offsets.retention.minutes`` without a commit (7 days).

    Args:
        options: the options of the data source; see :func:`~.ranges.plan_ranges`.
        group_id: the group that keeps the offsets; tools show its lag.

    Raises:
        ConfigError: an option is wrong, or names offsets of single partitions.
    """

    def __init__(self, options: Mapping[str, str], group_id: str) -> None:
        self._given = dict(options)
        self._options = read_options(options, streaming=False)
        # A partition without a record that late begins at its end, like one that is empty.
        self._options = attrs.evolve(self._options, too_late="latest")
        for bound in (self._options.start, self._options.end):
            if bound.offsets is not None or bound.times is not None:
                raise ConfigError(
                    f"{bound.option}: a window begins where the last one has ended; name one start or end for all "
                    "partitions"
                )
        self._group_id = group_id
        self._plan: WindowPlan | None = None

    @property
    def name(self) -> str:
        """The time at which the window was planned, such as ``20261128T190312.123Z``: the same if it is repeated."""
        return self._entered().name

    @property
    def ranges(self) -> list[OffsetRange]:
        """The ranges of the window's tasks, without empty ones."""
        minimum, maximum = self._options.min_partitions, self._options.max_records_per_partition
        return split_up(self._entered().ranges, min_partitions=minimum, max_records=maximum)

    def read(self, spark: "SparkSession") -> "DataFrame":
        """Return the window's records, with the data source's columns; see :func:`~.ranges.read_ranges`."""
        from .ranges import read_ranges  # planning a window needs no Spark

        return read_ranges(spark, self.ranges, self._given)

    def __enter__(self) -> Self:
        """Plan the window, or take the plan of the last run if its job has not finished.

        Raises:
            DataLost: records of the window were deleted, and ``failOnDataLoss`` is on.
            ConfigError: an unfinished window has partitions that the options do not name.
            KafkaError: the cluster cannot be reached, a topic does not exist, or the group has members.
        """
        with self._client() as kafka:
            self._plan = kafka.loop.call(_planned, kafka.asynchronous, self._options, self._group_id)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        plan, self._plan = self._entered(), None
        if error is not None or not plan.ranges:
            return
        with self._client() as kafka:
            if not plan.is_current(kafka.admin.list_consumer_group_offsets(self._group_id)):
                raise UsageError(
                    f"window {plan.name} is not finished: another run of group {self._group_id!r} has gone on, or its "
                    "offsets were reset; let runs of one group follow one another"
                )
            kafka.admin.alter_consumer_group_offsets(self._group_id, plan.finished)

    def _entered(self) -> WindowPlan:
        if self._plan is None:
            raise UsageError("the window is not planned: use it as `with BatchWindow(...) as window`")
        return self._plan

    def _client(self) -> blocking.Client:
        settings = self._options.settings
        return blocking.Client(settings.bootstrap_servers, **settings.client)

    def __getstate__(self) -> Any:
        raise TypeError("a window cannot be pickled: use it in the driver's process")


async def _planned(kafka: Client, options: ReadOptions, group_id: str) -> WindowPlan:
    partitions = await partitions_now(kafka, options.topics)
    committed = await kafka.admin.list_consumer_group_offsets(group_id)
    first = await ends(kafka, options, partitions, which=OffsetSpec.EARLIEST)
    lost, unfinished = list[str](), unfinished_window(committed)
    if unfinished is not None:
        plan, gone = unfinished
        others = [each.where for each in plan.ranges if each.where not in first]
        if others:
            raise ConfigError(
                f"window {plan.name} of group {group_id!r} is not finished, and has partitions that the options do not "
                f"name, or that cannot be seen: {', '.join(map(str, others))}; repeat it with the options it began with"
            )
        if gone:
            lost.append(f"the group has lost {gone} partitions of window {plan.name}: were they deleted?")
    else:
        new = [partition for partition in partitions if partition not in committed]
        starts = await resolve(kafka, options, options.start, new)
        until = await resolve(kafka, options, options.end, partitions)
        plan = next_window(committed, starts, until, time.time_ns() // 1_000_000)
    last = await ends(kafka, options, partitions, which=OffsetSpec.LATEST)
    lost += [
        f"{each.where} begins at offset {first[each.where]}, and the window at {each.start}"
        for each in plan.ranges
        if each.start < first[each.where]
    ]
    lost += lost_between({each.where: each.end for each in plan.ranges}, {}, last)
    data_lost(lost, fail=options.fail_on_data_loss)
    plan = plan.within(first, last)
    if plan.ranges:
        await kafka.admin.alter_consumer_group_offsets(group_id, plan.begun)
    return plan
