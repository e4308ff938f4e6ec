"""What only Kafka 0.6 and 0.7, or ZooKeeper, give reason to raise; the rest is in :mod:`aiokafkawire.errors`."""

from typing import Final

from ..errors import BrokerError, CorruptBatch, UnknownBrokerError, broker_error

__all__ = ("MisalignedOffset", "legacy_error")

_CODES: Final = (-1, 1, 2, 3, 4)
"""What 0.7 has names for; they mean what they mean today. Others came later, and mean nothing here."""


class MisalignedOffset(CorruptBatch):
    """The bytes at an offset do not begin a message: it lies inside one, or the log is damaged there.

    A 0.7 broker sends what stands at any offset, without a look. Read on from an offset that a message, or
    ``offsets()``, has given.
    """


def legacy_error(code: int, detail: str) -> BrokerError:
    """The exception for an error code of Kafka 0.7."""
    return broker_error(code, detail) if code in _CODES else UnknownBrokerError(code, detail)
