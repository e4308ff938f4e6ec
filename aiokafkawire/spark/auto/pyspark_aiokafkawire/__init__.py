"""The data source for Spark's discovery: Spark registers ``DefaultSource`` of packages that begin with ``pyspark_``."""

from aiokafkawire.spark.source import KafkaSource as DefaultSource

__all__ = ("DefaultSource",)
