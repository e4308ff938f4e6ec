"""Decides how ``Client.transform`` continues after an error, and names its transactional ids."""

from enum import Enum
from typing import Final

from .cluster.retry import retry_action
from .errors import (
    CommitFailed,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RebalanceInProgress,
    TransactionAbortable,
    TransactionAborted,
    UnknownProducerId,
)

__all__ = ("Recovery", "recovery_after", "transactional_id_of")


class Recovery(Enum):
    """The next step after an error in a transaction."""

    RETRY = "write the same records again, unless the group has revoked their partitions"
    REPLACE_PRODUCER = "make another producer with the same transactional id, and read the records again"
    RAISE = "raise the error to the user"


# Errors after which the transaction must be aborted, and the next transaction may succeed. The membership in the group
# may be newer by then.
_RETRIED: Final = (
    CommitFailed,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    RebalanceInProgress,
    TransactionAbortable,
    TransactionAborted,
    UnknownProducerId,
)
# Errors that make a producer unusable, after which another producer with its transactional id may succeed.
_FENCED: Final = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping, InvalidTxnState, UnknownProducerId)


def recovery_after(error: KafkaError, *, begun: bool, is_own_id: bool) -> Recovery:
    """Return the next step after ``error``.

    Args:
        error: the error of a transaction that was not committed, or whose outcome is unknown.
        begun: whether the transaction had begun; if not, the producer has failed with ``error``.
        is_own_id: whether no other process can have the transactional id, so that only the transaction timeout or an
            administrator can have fenced the producer.
    """
    if isinstance(error, ProducerFenced) or (not begun and isinstance(error, _FENCED)):
        return Recovery.REPLACE_PRODUCER if is_own_id else Recovery.RAISE
    if begun and (isinstance(error, _RETRIED) or retry_action(error).retry):
        return Recovery.RETRY
    return Recovery.RAISE


def transactional_id_of(prefix: str, group_instance_id: str | None, random_part: str) -> str:
    """Return the transactional id of one instance.

    A static member of the group has the same id after a restart, so its producer ends the transaction that the
    previous process left open. Other instances have an id of their own.
    """
    return f"{prefix}-{random_part if group_instance_id is None else group_instance_id}"
