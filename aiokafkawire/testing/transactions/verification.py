"""Verification of transactional batches and offsets at the transaction's coordinator (KIP-890)."""

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
    """The ways to treat a write to a partition that is not in the transaction; the request version decides."""

    OLD = auto()
    """The write fails with INVALID_TXN_STATE."""
    ABORTABLE = auto()
    """The write fails with TRANSACTION_ABORTABLE, after which the client aborts the transaction."""
    ADDS = auto()
    """The write adds the partition to the transaction: the client has transaction.version 2."""

    @classmethod
    def of_produce(cls, version: int) -> "Verification":
        """Return the treatment for a version of Produce."""
        return cls.ADDS if version > 11 else cls.ABORTABLE if version > 10 else cls.OLD

    @classmethod
    def of_offsets(cls, version: int) -> "Verification":
        """Return the treatment for a version of TxnOffsetCommit."""
        return cls.ADDS if version > 4 else cls.ABORTABLE if version > 3 else cls.OLD


def check_transactional_id(transactional_id: str | None, headers: Iterable[BatchHeader]) -> None:
    """Check that the batches of a Produce request match its transactional id.

    Raises:
        ApiError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, transactional batches without a transactional id;
            INVALID_PRODUCER_ID_MAPPING, batches of several producers.
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
    """Check with the coordinator that a batch's partition is in the transaction; for newer versions, add it instead.
    Raises:
        ApiError: the error of the Produce response, which depends on the request's ``version``.
    """
    if transactional_id is None or not header.is_transactional or header.producer_id < 0:
        return
    how = Verification.of_produce(version)
    if not partition.log.producers.must_verify(header, bumps=how is Verification.ADDS):
        return
    topic_partition = TopicPartition(partition.log.topic, partition.index)
    try:
        _verify(transactions, transactional_id, (header.producer_id, header.producer_epoch), topic_partition, how)
    except ApiError as refused:
        raise _for_producer(refused.code, how) from None


def verify_offsets(
    transactions: Transactions, transactional_id: str, ids: Ids, partition: TopicPartition, version: int
) -> None:
    """Check with the coordinator that a group's offsets are in the transaction; for newer versions, add them instead.
    Raises:
        ApiError: the error of the TxnOffsetCommit response, which depends on the request's ``version``.
    """
    _verify(transactions, transactional_id, ids, partition, Verification.of_offsets(version))


def _verify(
    transactions: Transactions, transactional_id: str, ids: Ids, partition: TopicPartition, how: Verification
) -> None:
    try:
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        transactions.check(transactional_id)
        if how is Verification.ADDS:
            transactions.add(transactional_id, ids, [partition], bumps=True)
        else:
            transactions.verify(transactional_id, ids, partition)
    except ApiError as refused:
        # Producers expect the older error code here, in every version.
        if refused.code is ErrorCode.PRODUCER_FENCED:
            raise ApiError(ErrorCode.INVALID_PRODUCER_EPOCH) from None
        if refused.code is ErrorCode.TRANSACTION_ABORTABLE and how is Verification.OLD:
            raise ApiError(ErrorCode.INVALID_TXN_STATE) from None
        raise


def _for_producer(code: ErrorCode, how: Verification) -> ApiError:
    """Return the error for a producer; coordinator errors become NOT_ENOUGH_REPLICAS, which every producer retries."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return ApiError(code, _NOT_ADDED)
    if code in _FOR_LATER or (code is ErrorCode.CONCURRENT_TRANSACTIONS and how is not Verification.ADDS):
        return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, _UNVERIFIED.format(code.name))
    return ApiError(code)
