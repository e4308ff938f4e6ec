"""The client that a Python worker of Spark keeps from one task to the next.

Spark starts few workers, and each runs one task after the other. A micro-batch has a task for each partition. As a task
often takes less than 50 ms, opening a client for every task would be expensive.
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
    """Yield an open client for one task; a worker of Spark keeps this client for the next task with the same settings.

    A task that fails closes the client, and its retry opens another. Raise as :class:`~aiokafkawire.blocking.Client`.
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
    """The client that this process keeps between tasks, if the process is a worker of Spark."""

    _kept: tuple[KafkaSettings, blocking.Client] | None = attrs.field(default=None, init=False)
    _is_settled: bool = attrs.field(default=False, init=False)

    def take(self, settings: KafkaSettings) -> blocking.Client | None:
        """Return the kept client if it has these settings; otherwise close it and return None."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        kept_settings, kafka = kept
        # A process that was forked from a worker cannot use the worker's client.
        if kept_settings == settings and not kafka.loop.in_forked_process:
            return kafka
        kafka.close()
        return None

    def keep(self, settings: KafkaSettings, kafka: blocking.Client) -> None:
        """Keep an open client for the next task; close it if another client is kept already."""
        self._settle()
        if self._kept is None and kafka.loop.is_running:
            self._kept = settings, kafka
        else:
            kafka.close()

    def _settle(self) -> None:
        """Exclude the objects that exist now, mostly modules, from garbage collection.

        Spark's worker collects garbage after each task: visiting 80,000 permanent objects takes as long as reading
        100,000 rows.
        """
        if not self._is_settled:
            self._is_settled = True
            gc.collect()
            gc.freeze()


_worker = _Worker()


def _client(settings: KafkaSettings) -> blocking.Client:
    return blocking.Client(settings.bootstrap_servers, **settings.client)


def _in_worker() -> bool:
    """Return whether the caller runs in a Spark task, without importing Spark."""
    spark = sys.modules.get("pyspark.taskcontext")
    return spark is not None and spark.TaskContext.get() is not None
