"""The producers of one partition: their recent batches, to detect retries, and their open transactions (KIP-98)."""

from collections import deque
from typing import Final, NamedTuple

import attrs

from ...errors import ErrorCode
from ...records.batch import BatchHeader
from ..cluster.api_error import ApiError

__all__ = ("Appended", "Completed", "LoggedProducer", "ProducerStates")

_RETAINED: Final = 5  # batches per producer, as many as a producer may have in flight
_SEQUENCES: Final = 2**31  # sequence numbers wrap to 0 after the highest int32
_HIGHEST_EPOCH: Final = 2**15 - 1
_BUMPING: Final = 2  # the transaction.version since which every transaction has its own epoch (KIP-890)


class Appended(NamedTuple):
    """A batch in the log: its sequence numbers, and the values to return if its producer retries it."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class Completed(NamedTuple):
    """A transaction whose marker is in the log, with the offsets of its first record and of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@attrs.define(eq=False)
class LoggedProducer:
    """The state of one producer id; ``first_offset`` is the start of its open transaction, or None."""

    producer_id: int
    epoch: int
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    first_offset: int | None = None
    batches: deque[Appended] = attrs.field(factory=lambda: deque(maxlen=_RETAINED))

    @property
    def last_sequence(self) -> int:
        """The newest sequence number; -1 if the producer has written none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else -1

    def enter(self, epoch: int) -> None:
        """Set the epoch; sequence numbers restart in a new epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


@attrs.define(eq=False)
class _Verifying:
    """The lowest sequence number and the epoch of one producer's batches that the coordinator must verify first."""

    lowest_sequence: int
    epoch: int
    bumps: bool


class ProducerStates:
    """The producer ids that have written to one partition, and their open transactions there."""

    def __init__(self) -> None:
        self._producers: dict[int, LoggedProducer] = {}
        self._verifying: dict[int, _Verifying] = {}
        # The start offsets of open transactions, by producer id; in the order of offsets, since a log only grows.
        self._open: dict[int, int] = {}

    def active(self) -> list[LoggedProducer]:
        """Return the states of all known producers."""
        return list(self._producers.values())

    def forget(self) -> None:
        """Remove producers without an open transaction, as brokers do after ``producer.id.expiration.ms``."""
        self._producers = {
            producer_id: state for producer_id, state in self._producers.items() if state.first_offset is not None
        }
        self._verifying.clear()

    def clear(self) -> None:
        """Remove all states, before they are rebuilt from the log."""
        self._producers.clear()
        self._verifying.clear()
        self._open.clear()

    def first_open(self, but: int | None = None) -> int | None:
        """Return the start of the oldest open transaction, ignoring that of producer ``but``; None if none is left."""
        return next((offset for producer_id, offset in self._open.items() if producer_id != but), None)

    # --- data ----------------------------------------------------------------------------------------------------

    def must_verify(self, header: BatchHeader, *, bumps: bool) -> bool:
        """Return True if a batch's producer has no open transaction in the log; the coordinator must verify the batch.

        ``bumps`` means transaction.version 2, in which every transaction has its own epoch.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, the log has a newer epoch.
        """
        known = self._producers.get(header.producer_id)
        if known is not None:
            _check_epoch(known, header)
            if known.first_offset is not None and known.epoch == header.producer_epoch:
                return False
        asked = self._verifying.get(header.producer_id)
        if asked is None:
            asked = self._verifying[header.producer_id] = _Verifying(header.base_sequence, header.producer_epoch, bumps)
        if header.producer_epoch > asked.epoch:
            asked.epoch, asked.lowest_sequence = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == asked.epoch:
            asked.lowest_sequence = min(asked.lowest_sequence, header.base_sequence)
        return True

    def admit(self, header: BatchHeader) -> Appended | None:
        """Return None if the batch may be appended; if it is a retry, return the first attempt's batch in the log.

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, or INVALID_TXN_STATE, for a batch outside a
                transaction while one is open.
        """
        if header.producer_id < 0:
            return None
        known = self._producers.get(header.producer_id)
        if known is not None and known.epoch == header.producer_epoch:
            sequences = header.base_sequence, _last_sequence(header)
            for batch in known.batches:
                if (batch.first_sequence, batch.last_sequence) == sequences:
                    return batch
        if known is not None:
            _check_epoch(known, header)
        self._check_sequence(known, header)
        if known is not None and known.first_offset is not None and not header.is_transactional:
            raise ApiError(ErrorCode.INVALID_TXN_STATE, reason="a transaction is open, and the batch is not part of it")
        return None

    def appended(self, header: BatchHeader) -> None:
        """Record that an admitted batch was stored, with the offsets in ``header``."""
        if header.producer_id < 0:
            return
        known = self._enter(header)
        known.batches.append(
            Appended(header.base_sequence, _last_sequence(header), header.base_offset, header.max_timestamp)
        )
        known.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self._verifying.pop(header.producer_id, None)
            if known.first_offset is None:
                known.first_offset = self._open[header.producer_id] = header.base_offset

    def _check_sequence(self, known: LoggedProducer | None, header: BatchHeader) -> None:
        first = header.base_sequence
        asked = self._verifying.get(header.producer_id)
        if asked is not None:
            # With transaction.version 2 an unknown producer begins with sequence number 0; with an older version
            # it may begin with any, since its earlier batches may have been deleted.
            unknown = asked.bumps and first != 0 and (known is None or not known.batches)
            if unknown or first > asked.lowest_sequence:
                raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if known is None:
            return
        expected = (known.last_sequence + 1) % _SEQUENCES if header.producer_epoch == known.epoch else 0
        if first != expected:
            raise ApiError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)

    # --- markers -------------------------------------------------------------------------------------------------

    def admit_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, version: int) -> None:
        """Check that a marker may be written; in transaction.version 2 it needs a newer epoch than the data (KIP-1228).

        Raises:
            ApiError: INVALID_PRODUCER_EPOCH; TRANSACTION_COORDINATOR_FENCED, the log has a newer coordinator epoch.
        """
        known = self._producers.get(producer_id)
        if known is None:
            return
        bumping = version >= _BUMPING
        if epoch < known.epoch or (bumping and epoch == known.epoch):
            # The same marker may be written again once the transaction has ended.
            again = bumping and epoch == known.epoch and (known.first_offset is None or epoch == _HIGHEST_EPOCH)
            if not again:
                raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if coordinator_epoch < known.coordinator_epoch:
            raise ApiError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)

    def marked(self, header: BatchHeader, coordinator_epoch: int) -> Completed | None:
        """Record that a marker was stored; return the transaction that it ends, or None if none was open."""
        known = self._enter(header)
        asked = self._verifying.get(header.producer_id)
        if asked is not None and not (asked.bumps and asked.epoch == header.producer_epoch):
            del self._verifying[header.producer_id]
        first, known.first_offset = known.first_offset, None
        self._open.pop(header.producer_id, None)
        known.coordinator_epoch = coordinator_epoch
        known.last_timestamp = header.max_timestamp
        return None if first is None else Completed(header.producer_id, first, header.base_offset)

    def _enter(self, header: BatchHeader) -> LoggedProducer:
        known = self._producers.get(header.producer_id)
        if known is None:
            known = self._producers[header.producer_id] = LoggedProducer(header.producer_id, header.producer_epoch)
        known.enter(header.producer_epoch)
        return known


def _check_epoch(known: LoggedProducer, header: BatchHeader) -> None:
    if header.producer_epoch < known.epoch:
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES
