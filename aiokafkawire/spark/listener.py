"""Commits what streaming queries have finished to a consumer group, so that lag tools see it."""

import logging
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pyspark.sql.streaming.listener import StreamingQueryListener

from .. import blocking
from ..config import ClientOptions
from ..errors import KafkaError, RequestTimeout
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

_log = logging.getLogger("aiokafkawire.spark")


class CommitsToGroup(StreamingQueryListener):
    """Commits the end offsets of every finished micro-batch, the last one included; it goes on if Kafka is away.

        listener = CommitsToGroup("localhost:9092", "delays")
        spark.streams.addListener(listener)

    The checkpoint stays the truth: a query never reads these offsets, and a commit may come late. The group must have
    no members. It works with this source and with the JVM's.

    Args:
        bootstrap_servers: ``"host:port,host:port"`` or a sequence of such.
        group_id: the group that offsets are committed for.
        query_name: of the query to follow; without it all queries of the session are, and no two should read the
            same partition.
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
        blocking.Client(bootstrap_servers, **options)  # it refuses what is wrong now, and not in the first batch
        self._group_id, self._query_name = group_id, query_name
        self._kafka: blocking.Client | None = None
        self._running: set[str] = set()
        self._none_runs = threading.Condition()
        self._pending: Offsets = {}
        self.committed: Offsets = {}
        """What was committed so far."""
        self.behind: dict[str, Behind] = {}
        """How far each query is behind, by its id, where Spark says so (4.2 and later, and the JVM's source)."""
        self.error: KafkaError | None = None
        """Why the last commit failed; None once one succeeds."""

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:  # noqa: N802 - Spark's names
        """A query began."""
        if self._query_name in (None, event.name):
            with self._none_runs:
                self._running.add(str(event.runId))

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:  # noqa: N802
        """A micro-batch was finished: commit where it ended."""
        progress = event.progress
        if self._query_name not in (None, progress.name):
            return
        self._pending |= reached(source.endOffset for source in progress.sources)
        latest: Offsets = {}
        for source in progress.sources:
            latest |= offsets_in(source.latestOffset) or {}
        now = behind(self._pending, latest)
        if now is not None:
            self.behind[str(progress.id)] = now
        self._commit()

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:  # noqa: N802
        """Nothing was there to read: a commit that failed is tried again."""
        self._commit()

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:  # noqa: N802
        """A query ended: what could not be committed is tried once more."""
        self._commit()
        with self._none_runs:
            self._running.discard(str(event.runId))
            if not self._running:
                self._close()
            self._none_runs.notify_all()

    def wait(self, timeout: float = 30.0) -> None:
        """Wait until the queries have ended and their last offsets are committed: Spark tells of both later.

        ``timeout`` is in seconds.

        Raises:
            RequestTimeout: they have not ended.
            KafkaError: the last commit failed.
        """
        with self._none_runs:
            if not self._none_runs.wait_for(lambda: not self._running, timeout):
                raise RequestTimeout(f"{len(self._running)} queries have not ended within {timeout:g} s")
        if self.error is not None:
            raise self.error

    def _commit(self) -> None:
        new = {where: at for where, at in self._pending.items() if self.committed.get(where) != at}
        if not new:
            return
        try:
            self._client().admin.alter_consumer_group_offsets(self._group_id, new)
        except KafkaError as error:
            # Spark would log it and go on; the next progress has these offsets or later ones.
            self.error = error
            _log.warning(
                "offsets of group %r were not committed, and are with the next batch: %s", self._group_id, error
            )
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
        raise TypeError("a listener stays in the driver's process: add it there")
