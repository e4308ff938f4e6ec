"""The translation of this client's errors into aiokafka's: the one table, which every call of this package applies."""

from collections.abc import Callable
from types import TracebackType
from typing import Final

from .. import errors as own
from . import errors as theirs

__all__ = ("TRANSLATED", "translated")

_BY_CLASS: Final[tuple[tuple[type[own.KafkaError], Callable[..., Exception]], ...]] = (
    (own.ConfigError, ValueError),
    (own.ProducerFenced, theirs.ProducerFenced),
    (own.InvalidProducerEpoch, theirs.ProducerFenced),
    (own.InvalidMessage, theirs.IllegalArgumentError),
    (own.RecordTooLarge, theirs.MessageSizeTooLargeError),
    (own.UsageError, theirs.IllegalStateError),
    (own.BufferFull, theirs.KafkaTimeoutError),
    (own.TopicNotReady, theirs.UnknownTopicOrPartitionError),
    (own.SecurityMismatch, theirs.KafkaConnectionError),
    (own.CorruptBatch, theirs.CorruptRecordException),
    (own.WireError, theirs.KafkaProtocolError),
    (own.UnsupportedVersion, theirs.IncompatibleBrokerVersion),
    (own.ConnectionLost, theirs.KafkaConnectionError),
    (own.TlsFailed, theirs.KafkaConnectionError),
    (own.CommitFailed, theirs.CommitFailedError),
    (own.LogTruncated, theirs.OffsetOutOfRangeError),
    (own.RequestTimeout, theirs.KafkaTimeoutError),
)
"""The first row with a class of the error counts. Broker errors without a row are translated by their code."""


def translated(error: own.KafkaError) -> Exception:
    """Return aiokafka's error for an error of this client, which becomes its ``__cause__``.

    An error that holds others is translated by its first one. The error of a deserializer, or a user's error that
    aborted a transaction, is returned itself, as aiokafka raises it.
    """
    made = _made(error)
    if made is not error.__cause__:
        made.__cause__ = error
    return made


def _made(error: own.KafkaError) -> Exception:
    if isinstance(error, own.DeserializationError) and isinstance(error.__cause__, Exception):
        return error.__cause__
    if isinstance(error, own.DeliveryFailed) and error.errors:
        return _first(error.errors[0])
    if isinstance(error, own.AdminError):
        return _first(error.exceptions[0])
    if isinstance(error, own.TransactionAborted) and isinstance(error.__cause__, Exception):
        return _first(error.__cause__)
    for own_class, make in _BY_CLASS:
        if isinstance(error, own_class):
            return make(str(error))
    if isinstance(error, own.BrokerError):
        made = theirs.for_code(error.code)(str(error))
        made.errno = error.code
        return made
    if isinstance(error, own.AuthenticationFailed):
        return theirs.AuthenticationFailedError(str(error))
    return theirs.KafkaError(str(error))


def _first(error: Exception) -> Exception:
    return _made(error) if isinstance(error, own.KafkaError) else error


class _Translation:
    """A context that raises aiokafka's error for this client's; it has no state, so all calls share one."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, own.KafkaError):
            raise translated(error)


TRANSLATED: Final = _Translation()
"""``with TRANSLATED:`` around a call of this client."""
