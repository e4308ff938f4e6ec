"""Kafka in PySpark without a jar: data source, offset ranges, exactly-once sink, offset commits; see docs/spark.md."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from .batch_window import BatchWindow
    from .errors import DataLost
    from .exactly_once import ExactlyOnceSink
    from .foreach_batch import ranges_in, to_topic
    from .listener import CommitsToGroup
    from .ranges import OffsetRange, plan_ranges, read_ranges
    from .source import KafkaSource, register

__all__ = (
    "BatchWindow",
    "CommitsToGroup",
    "DataLost",
    "ExactlyOnceSink",
    "KafkaSource",
    "OffsetRange",
    "plan_ranges",
    "ranges_in",
    "read_ranges",
    "register",
    "to_topic",
)

_MODULES = {
    "BatchWindow": ".batch_window",
    "CommitsToGroup": ".listener",
    "DataLost": ".errors",
    "ExactlyOnceSink": ".exactly_once",
    "KafkaSource": ".source",
    "OffsetRange": ".ranges",
    "plan_ranges": ".ranges",
    "ranges_in": ".foreach_batch",
    "read_ranges": ".ranges",
    "register": ".source",
    "to_topic": ".foreach_batch",
}
__getattr__: Callable[[str], object] = lazy_exports(__name__, _MODULES)
