"""Chooses the action after an error in a transaction, and the error to raise; both depend on the failed request."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import attrs

from ..errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    CommitFailed,
    IllegalGeneration,
    InvalidProducerEpoch,
    InvalidTransactionTimeout,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    StaleMemberEpoch,
    TransactionalIdAuthorizationFailed,
    UnknownBrokerError,
    UnknownMemberId,
    UnknownProducerId,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
    UnsupportedVersionAnswered,
)
from ..protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from ..protocol.schema import Request

__all__ = (
    "TransactionErrorAction",
    "action_after_batch",
    "action_after_request",
    "commit_failed",
    "explained",
    "leaves_doubt",
)


class TransactionErrorAction(Enum):
    """The action for the transaction and its producer after an error."""

    ABORT = "the transaction can only be aborted"
    FAIL = "this producer is unusable"
    NO_TRANSACTION = "no transaction is open at the coordinator"


_ABORT, _FAIL = TransactionErrorAction.ABORT, TransactionErrorAction.FAIL


@attrs.frozen
class _Row:
    """The actions for one kind of request, by the class of its error.

    ``exceptions`` has precedence. ``fatal`` and ``abortable`` are for a broker's errors that errors.py marks so;
    ``unanswered`` is for retriable errors and for requests without an answer; ``other`` is for all other errors.
    """

    fatal: TransactionErrorAction
    abortable: TransactionErrorAction
    other: TransactionErrorAction
    unanswered: TransactionErrorAction
    exceptions: Mapping[type[KafkaError], TransactionErrorAction] = attrs.field(factory=dict)


# An abort is safe after any error, since EndTxn fails if an abort is impossible. So it is tried wherever it may help.
_ROWS: Final[Mapping[type[Request[Any]], _Row]] = {
    InitProducerIdRequest: _Row(_FAIL, _FAIL, _FAIL, _FAIL),
    AddPartitionsToTxnRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
    AddOffsetsToTxnRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
    TxnOffsetCommitRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
}
_END_EXCEPTIONS: Final[Mapping[type[KafkaError], TransactionErrorAction]] = {
    InvalidTxnState: TransactionErrorAction.NO_TRANSACTION
}
_ON_COMMIT: Final = _Row(_FAIL, _ABORT, _FAIL, _FAIL, _END_EXCEPTIONS)
_ON_ABORT: Final = _Row(_FAIL, _FAIL, _FAIL, _FAIL, _END_EXCEPTIONS)
# A leader knows less of a transaction than its coordinator: when the leader refuses the epoch or the state, the
# coordinator may still accept an abort (KIP-588).
_ON_BATCH: Final = _Row(
    _FAIL,
    _ABORT,
    _ABORT,
    _ABORT,
    {InvalidProducerEpoch: _ABORT, InvalidTxnState: _ABORT, UnsupportedForMessageFormat: _ABORT},
)


def action_after_request(request: Request[Any], error: KafkaError) -> TransactionErrorAction:
    """Return the action after a coordinator refused the request with this error, or did not answer."""
    if isinstance(request, EndTxnRequest):
        return _action(_ON_COMMIT if request.committed else _ON_ABORT, error)
    return _action(_ROWS[type(request)], error)


def action_after_batch(error: KafkaError) -> TransactionErrorAction:
    """Return the action after a batch failed with this error."""
    return _action(_ON_BATCH, error)


def _action(row: _Row, error: KafkaError) -> TransactionErrorAction:
    if type(error) in row.exceptions:
        return row.exceptions[type(error)]
    if isinstance(error, UnsupportedVersion):
        return _FAIL
    if not isinstance(error, BrokerError) or error.retriable:
        return row.unanswered
    return row.fatal if error.fatal else row.abortable if error.abortable else row.other


_NO_MEMBER: Final = (IllegalGeneration, StaleMemberEpoch, UnknownMemberId)


def commit_failed(request: Request[Any], error: KafkaError) -> KafkaError:
    """Return CommitFailed if the coordinator refused offsets of a former group member; else ``error`` itself."""
    if not isinstance(request, TxnOffsetCommitRequest) or not isinstance(error, _NO_MEMBER):
        return error
    failed = CommitFailed(
        f"{error}: the group {request.group_id!r} has rebalanced without this consumer, so the partitions may be "
        "another's by now; the transaction can only be aborted, and the records are read again from the last commit"
    )
    failed.__cause__ = error
    return failed


def leaves_doubt(error: KafkaError) -> bool:
    """Return whether the failed request may still take effect, or the brokers may have lost the producer id."""
    return not isinstance(error, BrokerError) or error.retriable or isinstance(error, UnknownProducerId)


_FENCED: Final = "a newer producer has its id, or its transaction was open for longer than transaction_timeout_ms"
_ANOTHER: Final = "make another producer with this transactional_id"
_ADVICE: Final[Mapping[type[KafkaError], str]] = {
    TransactionalIdAuthorizationFailed: f"let this user write to the transactional id, and {_ANOTHER}",
    ClusterAuthorizationFailed: f"let this user write idempotently, and {_ANOTHER}",
    InvalidTxnState: f"it was open for longer than transaction_timeout_ms, and the brokers aborted it; {_ANOTHER}",
    InvalidTransactionTimeout: "lower transaction_timeout_ms, or raise the brokers' transaction.max.timeout.ms",
}


def explained(transactional_id: str, error: KafkaError, request: Request[Any] | None = None) -> KafkaError:
    """Return the error to raise from now on, with advice in its text.

    Its class is that of ``error``, or ProducerFenced if ``error`` is about the producer's epoch. ``request`` is the
    failed request; None if a batch failed.
    """
    prefix = f"transactional_id {transactional_id!r}"
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        found: KafkaError = ProducerFenced(f"{prefix}: {_FENCED}; close this one, or {_ANOTHER}: {error}")
    else:
        found = _same(error, f"{prefix}: {_advice(error, request)}: {error}")
    found.__cause__ = error
    return found


def _advice(error: KafkaError, request: Request[Any] | None) -> str:
    if isinstance(error, UnsupportedVersion | UnsupportedVersionAnswered):
        if isinstance(request, InitProducerIdRequest) and request.producer_id >= 0:
            return f"before Kafka 2.5 a producer cannot go on after this; {_ANOTHER}"
        return "the brokers are too old for this request"
    if isinstance(request, EndTxnRequest) and not (isinstance(error, BrokerError) and error.fatal):
        ending = "committed" if request.committed else "aborted"
        return f"whether the transaction was {ending} is not known; {_ANOTHER}: it finishes or fences what is left"
    return _ADVICE.get(type(error), _ANOTHER)


def _same(error: KafkaError, text: str) -> KafkaError:
    if isinstance(error, UnknownBrokerError):
        return UnknownBrokerError(error.code, text)
    return type(error)(text)
