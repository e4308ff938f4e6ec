"""What only Kafka 0.6 and 0.7, or ZooKeeper, give reason to raise; the rest is in :mod:`aiokafkawire.errors`."""

from ..errors import CorruptBatch

__all__ = ("MisalignedOffset",)


class MisalignedOffset(CorruptBatch):
    """The bytes at an offset do not begin a message: it lies inside one, or the log is damaged there.

    A 0.7 broker sends what stands at any offset, without a look. Read on from an offset that a message, or
    ``offsets()``, has given.
    """
