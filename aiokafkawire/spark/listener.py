"""A listener that commits the offsets of streaming queries to a consumer group, for monitoring of lag."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql.streaming.listener import StreamingQueryListener

from .. import blocking
from ..config import ClientOptions
from ..errors import AdminError, KafkaError, RequestTimeout
from ..event_log import EventLog
from .offsets import Offsets
from .progress import Behind, behind, offsets_in, reached

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

__all__ = ("CommitsToGroup",)

_log = EventLog("aiokafkawire.spark")


class CommitsToGroup(StreamingQueryListener):
    """A listener that commits the end offsets of every finished micro-batch to a group, and retries failed commits.

        listener = CommitsToGroup("localhost:9092", "delays")
        spark.streams.addListener(listener)

    Queries start from their checkpoint, never from these offsets, and a commit may be late. The group must have no
    members. The listener supports queries of this source and of Spark's JVM source.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of addresses.
        group_id: the group to commit offsets for.
        query_name: the query to follow; by default all queries of the session, which must not share a partition.
        options: see :class:`~aiokafkawire.config.ClientConfig`.

    Raises:
        ConfigError: an address or a setting is wrong.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        group_id: str,
        *,
        query_name: str | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._servers, self._options = bootstrap_servers, options
        blocking.Client(bootstrap_servers, **options)  # raises ConfigError now instead of in the first batch
        self._group_id, self._query_name = group_id, query_name
        self._kafka: blocking.Client | None = None
        self._running: set[str] = set()
        self._none_runs = threading.Condition()
        # The end of each running query's last micro-batch, by the query's id, in the order in which these have ended.
        self._ends: dict[str, Offsets] = {}
        self.committed: Offsets = {}
        """The last committed offset of each partition."""
        self.behind: dict[str, Behind] = {}
        """The lag by query id, if Spark reports it: for this source since Spark 4.2, and for the JVM source."""
        self.error: KafkaError | None = None
        """The error of the last commit; None if the last commit succeeded."""

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802 - Spark's names
        """Record that a query has started."""
        if self._query_name in (None, event.name):
            with self._none_runs:
                self._running.add(str(event.runId))

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        """Commit the end offsets of a finished micro-batch."""
        progress = event.progress
        if self._query_name not in (None, progress.name):
            return
        query = str(progress.id)
        before = self._ends.pop(query, {})
        # A partition that is no longer in it was deleted: brokers would refuse its offset for ever.
        ends = self._ends[query] = reached(source.endOffset for source in progress.sources) or before
        latest: Offsets = {}
        for source in progress.sources:
            latest |= offsets_in(source.latestOffset) or {}
        now = behind(ends, latest)
        if now is not None:
            self.behind[query] = now
        self._commit()

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        """Retry a failed commit while the query is idle."""
        self._commit()

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        """Retry a failed commit once more after the query has ended."""
        self._commit()
        # After that no more: brokers would refuse the offsets of a topic that was deleted with the query for ever.
        self._ends.pop(str(event.id), None)
        with self._none_runs:
            self._running.discard(str(event.runId))
            if not self._running:
                self._close()
            self._none_runs.notify_all()

    def wait(self, timeout: float = 30.0) -> None:
        """Wait until the queries have ended and their last offsets are committed.

        Call this after the last query, since Spark notifies listeners late. ``timeout`` is in seconds.

        Raises:
            RequestTimeout: a query has not ended within the timeout.
            KafkaError: the last commit failed.
        """
        with self._none_runs:
            if not self._none_runs.wait_for(lambda: not self._running, timeout):
                raise RequestTimeout(f"{len(self._running)} queries have not ended within {timeout:g} s")
        if self.error is not None:
            raise self.error

    def _commit(self) -> None:
        ended = {partition: offset for ends in self._ends.values() for partition, offset in ends.items()}
        new = {partition: offset for partition, offset in ended.items() if self.committed.get(partition) != offset}
        if not new:
            return
        try:
            self._client().admin.alter_consumer_group_offsets(self._group_id, new)
        except KafkaError as error:
            # Do not raise: the next progress commits these offsets or later ones.
            self.error = error
            if isinstance(error, AdminError):
                self.committed |= {partition: new[partition] for partition in error.results}
            message = "committing offsets of group %(group)r failed, the next batch retries: %(error)s"
            _log.warning(message, group=self._group_id, error=error)
            self._close()
            return
        self.committed |= new
        self.error = None

    def _client(self) -> blocking.Client:
        if self._kafka is None:
            self._kafka = blocking.Client(self._servers, **self._options).open()
        return self._kafka

    def _close(self) -> None:
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.close()

    def __getstate__(self) -> Any:
        raise TypeError("a listener cannot be pickled: add it in the driver's process")
