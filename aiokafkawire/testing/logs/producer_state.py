"""What a partition remembers of producers: which batch is a retry, and whose transaction is open (KIP-98)."""

from collections import deque
from typing import Final, NamedTuple

import attrs

from ...errors import ErrorCode
from ...records.batch import BatchHeader
from ..cluster.api_error import ApiError

__all__ = ("Appended", "Completed", "ProducerState", "ProducerStates")

_RETAINED: Final = 5  # batches per producer, as many as it may have in flight
_SEQUENCES: Final = 2**31  # sequence numbers wrap to 0 after the highest int32
_HIGHEST_EPOCH: Final = 2**15 - 1
_BUMPING: Final = 2  # the transaction.version from which every transaction has an epoch of its own (KIP-890)


class Appended(NamedTuple):
    """A batch in the log: its sequences, and what its producer is told if it sends it again."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp: int


class Completed(NamedTuple):
    """A transaction whose marker is in the log, from its first record to the marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@attrs.define(eq=False)
class ProducerState:
    """One producer id; ``first_offset`` is where its open transaction begins, None if none is open."""

    producer_id: int
    epoch: int
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    first_offset: int | None = None
    batches: deque[Appended] = attrs.field(factory=lambda: deque(maxlen=_RETAINED))

    @property
    def last_sequence(self) -> int:
        """The newest sequence; -1 where there is none in this epoch."""
        return self.batches[-1].last_sequence if self.batches else -1

    def enter(self, epoch: int) -> None:
        """Go on in an epoch; sequences begin anew in another."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()


@attrs.define(eq=False)
class _Verifying:
    """The coordinator was asked whether a producer may write: with which sequence, in which epoch."""

    lowest_sequence: int
    epoch: int
    bumps: bool


class ProducerStates:
    """The producer ids that have written to one partition, and the transactions that they have open there."""

    def __init__(self) -> None:
        self._producers: dict[int, ProducerState] = {}
        self._verifying: dict[int, _Verifying] = {}
        # Where the open transactions begin, by producer id; in the order of the offsets, since a log only grows.
        self._open: dict[int, int] = {}

    def active(self) -> list[ProducerState]:
        """All that are remembered."""
        return list(self._producers.values())

    def forget(self) -> None:
        """Forget all without an open transaction, as brokers do when ``producer.id.expiration.ms`` have passed."""
        self._producers = {key: one for key, one in self._producers.items() if one.first_offset is not None}
        self._verifying.clear()

    def clear(self) -> None:
        """Know nothing: what is left of a log is read anew."""
        self._producers.clear()
        self._verifying.clear()
        self._open.clear()

    def first_open(self, but: int | None = None) -> int | None:
        """Where the oldest open transaction begins, of any producer ``but`` one; None if none is open."""
        return next((offset for producer_id, offset in self._open.items() if producer_id != but), None)

    # --- data ----------------------------------------------------------------------------------------------------

    def must_verify(self, header: BatchHeader, *, bumps: bool) -> bool:
        """Whether the coordinator must be asked before this transactional batch: no transaction is open here yet.

        ``bumps`` says that the producer has transaction.version 2.

        Raises:
            Refused: INVALID_PRODUCER_EPOCH.
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
        """Whether the batch is the next of its producer (None), or one that was appended before: then that one.

        Raises:
            Refused: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, or INVALID_TXN_STATE, for a batch outside a
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
            raise ApiError(ErrorCode.INVALID_TXN_STATE, reason="a transaction is open, and the batch is not of it")
        return None

    def appended(self, header: BatchHeader) -> None:
        """Remember a batch that was admitted and now has its offsets."""
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

    def _check_sequence(self, known: ProducerState | None, header: BatchHeader) -> None:
        first = header.base_sequence
        asked = self._verifying.get(header.producer_id)
        if asked is not None:
            # With transaction.version 2 a producer that is not known here begins at 0; all others may begin anywhere,
            # since what they wrote before may have been deleted.
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
        """Whether a marker may be written; with transaction.version 2 its epoch is above the transaction's (KIP-1228).

        Raises:
            Refused: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        known = self._producers.get(producer_id)
        if known is None:
            return
        bumping = version >= _BUMPING
        if epoch < known.epoch or (bumping and epoch == known.epoch):
            # The same marker again does no harm, once the transaction has ended.
            again = bumping and epoch == known.epoch and (known.first_offset is None or epoch == _HIGHEST_EPOCH)
            if not again:
                raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)
        if coordinator_epoch < known.coordinator_epoch:
            raise ApiError(ErrorCode.TRANSACTION_COORDINATOR_FENCED)

    def marked(self, header: BatchHeader, coordinator_epoch: int) -> Completed | None:
        """Remember a marker that now has its offset; the transaction that it ends, None if it had no records here."""
        known = self._enter(header)
        asked = self._verifying.get(header.producer_id)
        if asked is not None and not (asked.bumps and asked.epoch == header.producer_epoch):
            del self._verifying[header.producer_id]
        first, known.first_offset = known.first_offset, None
        self._open.pop(header.producer_id, None)
        known.coordinator_epoch = coordinator_epoch
        known.last_timestamp = header.max_timestamp
        return None if first is None else Completed(header.producer_id, first, header.base_offset)

    def _enter(self, header: BatchHeader) -> ProducerState:
        known = self._producers.get(header.producer_id)
        if known is None:
            known = self._producers[header.producer_id] = ProducerState(header.producer_id, header.producer_epoch)
        known.enter(header.producer_epoch)
        return known


def _check_epoch(known: ProducerState, header: BatchHeader) -> None:
    if header.producer_epoch < known.epoch:
        raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)


def _last_sequence(header: BatchHeader) -> int:
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES
