"""One transactional id: its producer, its epochs and how far its transaction is (KIP-98, KIP-360, KIP-890)."""

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
"""Never given to a producer, so that it can be fenced with it."""

Ids = tuple[int, int]
"""A producer id and an epoch."""


class State(StrEnum):
    """How far a transaction is; the names are those of DescribeTransactions."""

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
    """A transactional id, as its coordinator remembers it. Every change is one of Kafka's transitions.

    ``partitions`` are those of the transaction; once it is decided, those without a marker, or, with the offset of it,
    with one that is not replicated yet. ``bumps`` says that its client has transaction.version 2.
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
    """When the transaction began, in ms since the epoch."""
    began: float = 0.0
    """The same on the loop's clock."""
    bumps: bool = False
    timer: Timer | None = None

    @property
    def is_deciding(self) -> bool:
        """Whether it is decided, and its markers are not all written."""
        return self.state in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for a producer."""
        return is_exhausted(self.epoch)

    def check_expected(self, expected: Ids) -> None:
        """Whether a producer that names the id and epoch it had may go on (KIP-360).

        Raises:
            Refused: PRODUCER_FENCED.
        """
        producer_id, epoch = expected
        is_late = producer_id == self.previous_producer_id and is_exhausted(epoch)
        if self.epoch != -1 and producer_id != self.producer_id and not is_late:
            raise ApiError(ErrorCode.PRODUCER_FENCED)

    def initialize(self, timeout_ms: int, expected: Ids | None, new_producer_id: Callable[[], int]) -> Ids:
        """Give a producer its id and epoch, which fences all before it.

        Raises:
            Refused: PRODUCER_FENCED, ``expected`` is neither the current epoch nor the one before.
        """
        if self.is_exhausted and (expected is None or expected[1] == self.epoch):
            ids, last_epoch = (new_producer_id(), 0), -1 if expected is None else self.epoch
        elif self.is_exhausted:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka did not plan for it, either
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
        if expected == self.last_epoch:  # the same request again
            return (self.producer_id, self.epoch), self.last_epoch
        raise ApiError(ErrorCode.PRODUCER_FENCED)

    def add(self, partitions: Iterable[TopicPartition], now_ms: int, *, bumps: bool) -> bool:
        """Take partitions into the transaction; whether it begins with them."""
        begins = self.state is not State.ONGOING
        if begins:
            self.started_ms = now_ms
        self._enter(State.ONGOING, (self.producer_id, self.epoch), self.last_epoch)
        self.partitions.update(dict.fromkeys(partitions))
        self.bumps = bumps
        return begins

    def decide(self, commit: bool, now_ms: int, new_producer_id: Callable[[], int], *, bumps: bool) -> None:
        """Commit or abort for certain. With transaction.version 2 the markers and what follows have a new epoch."""
        ids, last_epoch = (self.producer_id, self.epoch), self.last_epoch
        next_producer_id = -1
        if bumps:
            next_producer_id = new_producer_id() if self.is_exhausted else -1
            ids, last_epoch = (self.producer_id, min(self.epoch + 1, HIGHEST_EPOCH)), self.epoch
        if self.state is not State.ONGOING:
            self.started_ms = now_ms  # an abort of what never began
        self._enter(State.PREPARE_COMMIT if commit else State.PREPARE_ABORT, ids, last_epoch)
        self.next_producer_id = next_producer_id
        self.bumps = bumps

    def after_completion(self) -> Ids:
        """What the producer goes on with once the transaction is complete."""
        if self.bumps and self.next_producer_id != -1:
            return self.next_producer_id, 0
        return self.producer_id, self.epoch

    def complete(self) -> None:
        """All markers are written."""
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
    """Whether no producer may have the epoch after this one."""
    return epoch >= HIGHEST_EPOCH - 1
