"""What a Python worker of Spark keeps from one task to the next: its client, and what it has loaded.

Spark starts few workers and gives them one task after the other. A micro-batch has a task for each partition, which
often takes less than 50 ms: what every task does anew counts.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from .. import blocking
from ..config.properties import KafkaSettings

__all__ = ("task_client",)


@contextmanager
def task_client(settings: KafkaSettings) -> Iterator[blocking.Client]:
    """An open client for one task; in a worker of Spark it stays open for the next task with the same settings.

    A task that fails leaves no client behind: whoever tries again begins anew. Raises as
    :class:`~aiokafkawire.blocking.Client`.
    """
    if not _in_worker():
        with _client(settings) as kafka:
            yield kafka
        return
    kafka = _worker.take(settings) or _client(settings).open()
    try:
        yield kafka
    except Exception:
        kafka.close()
        raise
    finally:
        _worker.keep(settings, kafka)


@attrs.define
class _Worker:
    """This process, if it is one."""

    _kept: tuple[KafkaSettings, blocking.Client] | None = attrs.field(default=None, init=False)
    _is_settled: bool = attrs.field(default=False, init=False)

    def take(self, settings: KafkaSettings) -> blocking.Client | None:
        """The kept client, if it is one with these settings; else it is closed."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        theirs, kafka = kept
        # Of another process than this one, in which it would not run, if this was forked from a worker.
        if theirs == settings and not kafka.loop.is_elsewhere:
            return kafka
        kafka.close()
        return None

    def keep(self, settings: KafkaSettings, kafka: blocking.Client) -> None:
        """Have it for the next task, unless it is closed."""
        self._settle()
        if self._kept is None and kafka.loop.is_running:
            self._kept = settings, kafka
        else:
            kafka.close()

    def _settle(self) -> None:
        """Take what is loaded by now, mostly modules, out of the garbage collector's sight.

        Spark's worker collects after each of its tasks, before it takes another: to walk through 80,000 objects that
        stay to the end takes as long as to read 100,000 rows.
        """
        if not self._is_settled:
            self._is_settled = True
            gc.collect()
            gc.freeze()


_worker = _Worker()


def _client(settings: KafkaSettings) -> blocking.Client:
    return blocking.Client(settings.bootstrap_servers, **settings.client)


def _in_worker() -> bool:
    """Whether this is a task of Spark's. Where that is not loaded, it is none."""
    spark = sys.modules.get("pyspark.taskcontext")
    return spark is not None and spark.TaskContext.get() is not None
