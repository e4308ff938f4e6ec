"""Transactional batches and offsets are taken only where the transaction's coordinator knows of them (KIP-890)."""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from ...errors import ErrorCode
from ...records.batch import BatchHeader
from ...types import TopicPartition
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from .transaction import Ids
from .transactions import Transactions

__all__ = ("Verification", "check_transactional_id", "verify_batch", "verify_offsets")

_UNVERIFIED: Final = "Unable to verify the partition has been added to the transaction. Underlying error: {}"
_NOT_ADDED: Final = "Partition was not added to the transaction"
_FOR_LATER: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Verification(Enum):
    """What the version of a request makes of a partition that is not in the transaction."""

    OLD = auto()
    """INVALID_TXN_STATE."""
    ABORTABLE = auto()
    """TRANSACTION_ABORTABLE."""
    ADDS = auto()
    """It is added: the client has transaction.version 2."""

    @classmethod
    def of_produce(cls, version: int) -> "Verification":
        """By the version of Produce."""
        return cls.ADDS if version > 11 else cls.ABORTABLE if version > 10 else cls.OLD

    @classmethod
    def of_offsets(cls, version: int) -> "Verification":
        """By the version of TxnOffsetCommit."""
        return cls.ADDS if version > 4 else cls.ABORTABLE if version > 3 else cls.OLD


def check_transactional_id(transactional_id: str | None, headers: Iterable[BatchHeader]) -> None:
    """Whether the batches of one Produce request go with its transactional id.

    Raises:
        Refused: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, there is none for transactional batches;
            INVALID_PRODUCER_ID_MAPPING, they are of several producers.
    """
    transactional = [header for header in headers if header.is_transactional]
    if transactional and transactional_id is None:
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers = {(header.producer_id, header.producer_epoch) for header in transactional if header.producer_id >= 0}
    if len(producers) > 1:
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )


def verify_batch(
    transactions: Transactions,
    transactional_id: str | None,
    partition: HostedPartition,
    header: BatchHeader,
    version: int,
) -> None:
    """Whether a batch may be appended as far as its transaction is concerned; ``version`` is that of Produce.

    Raises:
        Refused: the error that Produce answers.
    """
    if transactional_id is None or not header.is_transactional or header.producer_id < 0:
        return
    how = Verification.of_produce(version)
    if not partition.log.producers.must_verify(header, bumps=how is Verification.ADDS):
        return
    where = TopicPartition(partition.log.topic, partition.index)
    try:
        _verify(transactions, transactional_id, (header.producer_id, header.producer_epoch), where, how)
    except ApiError as refused:
        raise _for_producer(refused.code, how) from None


def verify_offsets(
    transactions: Transactions, transactional_id: str, ids: Ids, where: TopicPartition, version: int
) -> None:
    """Whether a group's offsets may be committed in a transaction; ``version`` is that of TxnOffsetCommit.

    Raises:
        Refused: the error that TxnOffsetCommit answers.
    """
    _verify(transactions, transactional_id, ids, where, Verification.of_offsets(version))


def _verify(
    transactions: Transactions, transactional_id: str, ids: Ids, where: TopicPartition, how: Verification
) -> None:
    try:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        transactions.check(transactional_id)
        if how is Verification.ADDS:
            transactions.add(transactional_id, ids, [where], bumps=True)
        else:
            transactions.verify(transactional_id, ids, where)
    except ApiError as refused:
        # The old word for it is what producers expect here, in every version.
        if refused.code is ErrorCode.PRODUCER_FENCED:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH) from None
        if refused.code is ErrorCode.TRANSACTION_ABORTABLE and how is Verification.OLD:
            raise ApiError(ErrorCode.INVALID_TXN_STATE) from None
        raise


def _for_producer(code: ErrorCode, how: Verification) -> ApiError:
    """What older producers would not try again is called something that they do."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, _NOT_ADDED)
    if code in _FOR_LATER or (code is ErrorCode.CONCURRENT_TRANSACTIONS and how is not Verification.ADDS):
        return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, _UNVERIFIED.format(code.name))
    return ApiError(code)
