"""The check whether an EndTxn request is a retry, for a transaction that has already ended."""

from ...errors import ErrorCode
from ..cluster.api_error import ApiError
from .transaction import HIGHEST_EPOCH, Ids, State, TransactionRecord

__all__ = ("is_over", "is_over_bumping")


def is_over(found: TransactionRecord, ids: Ids, commit: bool) -> bool:
    """Return whether the transaction of a client without transaction.version 2 has already ended with this outcome.

    Raises:
        ApiError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED; CONCURRENT_TRANSACTIONS, the transaction is ending;
            INVALID_TXN_STATE, the transaction ended with the other outcome, or there is no transaction.
    """
    if found.producer_id != ids[0]:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != ids[1]:
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if found.state is State.ONGOING:
        return False
    _check_outcome(found, commit)
    return True


def is_over_bumping(found: TransactionRecord, ids: Ids, commit: bool) -> bool:
    """Return whether the transaction of a client with transaction.version 2 has already ended with this outcome.

    The epoch distinguishes a retry from the end of the next transaction (KIP-890). If no transaction is open, an abort
    is allowed, because the client may not know that; the result is False. Raises ApiError as :func:`is_over`.
    """
    producer_id, epoch = ids
    overflown = producer_id == found.previous_producer_id and epoch == HIGHEST_EPOCH - 1 and found.epoch == 0
    retried = overflown or found.epoch == epoch + 1
    if found.producer_id != producer_id and not overflown:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    complete = found.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    due = epoch + 1 if found.is_deciding else epoch
    if found.epoch != due and not (complete and retried):
        raise ApiError(ErrorCode.PRODUCER_FENCED)
    if found.state is State.ONGOING:
        return False
    if found.is_deciding or retried:
        _check_outcome(found, commit)
        return True
    if commit:
        raise ApiError(ErrorCode.INVALID_TXN_STATE)
    return False


def _check_outcome(found: TransactionRecord, commit: bool) -> None:
    """Check that a transaction has ended with this outcome."""
    done, doing = (
        (State.COMPLETE_COMMIT, State.PREPARE_COMMIT) if commit else (State.COMPLETE_ABORT, State.PREPARE_ABORT)
    )
    if found.state is doing:
        raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if found.state is not done:
        raise ApiError(ErrorCode.INVALID_TXN_STATE)
