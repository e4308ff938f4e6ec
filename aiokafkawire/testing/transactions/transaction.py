"""One transactional id: its producer, its epochs and the state of its transaction (KIP-98, KIP-360, KIP-890)."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Final

import attrs

from ...errors import ErrorCode
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.timers import Timer

__all__ = ("HIGHEST_EPOCH", "Ids", "State", "TransactionRecord")

HIGHEST_EPOCH: Final = 2**15 - 1
"""The highest epoch, which fences producers; no producer ever gets it."""

Ids = tuple[int, int]
"""A producer id and an epoch."""


class State(StrEnum):
    """The state of a transaction; the names are those of DescribeTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


@attrs.define(eq=False)
class TransactionRecord:
    """The state of a transactional id at its coordinator. Every change is one of Kafka's transitions.

    ``partitions`` are the partitions in the transaction. After the decision to commit or abort, a partition stays until
    its marker is replicated; its value is the marker's offset, None before the marker is written. ``bumps`` means that
    the client has transaction.version 2.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    epoch: int = -1
    last_epoch: int = -1
    state: State = State.EMPTY
    partitions: dict[TopicPartition, int | None] = attrs.Factory(dict)
    started_ms: int = -1
    """The start of the transaction, in ms since the epoch."""
    began: float = 0.0
    """The start of the transaction by the event loop's clock, in seconds."""
    bumps: bool = False
    timer: Timer | None = None

    @property
    def is_deciding(self) -> bool:
        """Whether the outcome is decided and not all markers are written."""
        return self.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left."""
        return is_exhausted(self.epoch)

    def check_expected(self, expected: Ids) -> None:
        """Check the producer id and epoch that a producer claims to have had before (KIP-360).

        Raises:
            ApiError: PRODUCER_FENCED.
        """
        producer_id, epoch = expected
        is_late = producer_id == self.previous_producer_id and is_exhausted(epoch)
        if self.epoch != -1 and producer_id != self.producer_id and not is_late:
            raise ApiError(ErrorCode.PRODUCER_FENCED)

    def initialize(self, timeout_ms: int, expected: Ids | None, new_producer_id: Callable[[], int]) -> Ids:
        """Set and return the producer id and a new epoch, which fences all earlier producers.

        Raises:
            ApiError: PRODUCER_FENCED, ``expected`` is neither the current epoch nor the previous one.
        """
        if self.is_exhausted and (expected is None or expected[1] == self.epoch):
            ids, last_epoch = (new_producer_id(), 0), -1 if expected is None else self.epoch
        elif self.is_exhausted:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka does not handle this case, either
        else:
            ids, last_epoch = self._next_epoch(None if expected is None else expected[1])
        self._enter(State.EMPTY, ids, last_epoch)
        self.timeout_ms = timeout_ms
        self.partitions = {}
        self.started_ms = -1
        return ids

    def _next_epoch(self, expected: int | None) -> tuple[Ids, int]:
        bumped = self.producer_id, self.epoch + 1
        if expected is None:
            return bumped, -1
        if self.epoch in (-1, expected):
            return bumped, self.epoch
        if expected == self.last_epoch:  # a retry of the request
            return (self.producer_id, self.epoch), self.last_epoch
        raise ApiError(ErrorCode.PRODUCER_FENCED)

    def add(self, partitions: Iterable[TopicPartition], now_ms: int, *, bumps: bool) -> bool:
        """Add partitions to the transaction; return True if this call begins the transaction."""
        begins = self.state is not State.ONGOING
        if begins:
            self.started_ms = now_ms
        self._enter(State.ONGOING, (self.producer_id, self.epoch), self.last_epoch)
        self.partitions.update(dict.fromkeys(partitions))
        self.bumps = bumps
        return begins

    def decide(self, commit: bool, now_ms: int, new_producer_id: Callable[[], int], *, bumps: bool) -> None:
        """Commit or abort; with ``bumps`` (transaction.version 2) markers and the next transaction get a new epoch."""
        ids, last_epoch = (self.producer_id, self.epoch), self.last_epoch
        next_producer_id = -1
        if bumps:
            next_producer_id = new_producer_id() if self.is_exhausted else -1
            ids, last_epoch = (self.producer_id, min(self.epoch + 1, HIGHEST_EPOCH)), self.epoch
        if self.state is not State.ONGOING:
            self.started_ms = now_ms  # an abort without a transaction
        self._enter(State.PREPARE_COMMIT if commit else State.PREPARE_ABORT, ids, last_epoch)
        self.next_producer_id = next_producer_id
        self.bumps = bumps

    def after_completion(self) -> Ids:
        """Return the producer id and epoch that apply once the transaction is complete."""
        if self.bumps and self.next_producer_id != -1:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch

    def complete(self) -> None:
        """Complete the transaction after all markers are written."""
        state = State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        self._enter(state, self.after_completion(), self.last_epoch)
        self.next_producer_id = -1
        self.partitions = {}

    def _enter(self, state: State, ids: Ids, last_epoch: int) -> None:
        self.previous_producer_id = self.producer_id
        self.producer_id, self.epoch = ids
        self.last_epoch = last_epoch
        self.state = state


def is_exhausted(epoch: int) -> bool:
    """Return whether ``epoch`` is the last epoch that a producer may have."""
    return epoch >= HIGHEST_EPOCH - 1
