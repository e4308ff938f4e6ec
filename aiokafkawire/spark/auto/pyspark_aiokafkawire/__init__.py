"""Spark looks through all packages that begin with ``pyspark_`` for a ``DefaultSource``, and registers it."""

from aiokafkawire.spark.source import KafkaSource as DefaultSource

__all__ = ("DefaultSource",)
