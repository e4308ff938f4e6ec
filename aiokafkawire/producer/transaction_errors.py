"""What an error means for a transaction and its producer, by the request that brought it, and what to tell of it."""

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

__all__ = ("Consequence", "after_batch", "after_refusal", "commit_failed", "explained", "leaves_doubt")


class Consequence(Enum):
    """What becomes of the transaction and its producer."""

    ABORT = "the transaction can only be aborted"
    FAIL = "this producer can do nothing any more"
    NO_TRANSACTION = "no transaction is open at the coordinator"


_ABORT, _FAIL = Consequence.ABORT, Consequence.FAIL


@attrs.frozen
class _Row:
    """What errors of one request mean: codes that errors.py calls fatal or abortable, all others, and no answer."""

    fatal: Consequence
    abortable: Consequence
    other: Consequence
    unanswered: Consequence
    but: Mapping[type[KafkaError], Consequence] = attrs.field(factory=dict)


# An abort leaves nothing behind, and says itself if it cannot be: so whatever it may mend, it is given to.
_ROWS: Final[Mapping[type[Request[Any]], _Row]] = {
    InitProducerIdRequest: _Row(_FAIL, _FAIL, _FAIL, _FAIL),
    AddPartitionsToTxnRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
    AddOffsetsToTxnRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
    TxnOffsetCommitRequest: _Row(_FAIL, _ABORT, _ABORT, _ABORT),
}
_END_BUT: Final[Mapping[type[KafkaError], Consequence]] = {InvalidTxnState: Consequence.NO_TRANSACTION}
_ON_COMMIT: Final = _Row(_FAIL, _ABORT, _FAIL, _FAIL, _END_BUT)
_ON_ABORT: Final = _Row(_FAIL, _FAIL, _FAIL, _FAIL, _END_BUT)
# A leader knows less of a transaction than its coordinator, which has the last word: what it calls a wrong epoch or
# state may be mended by an abort (KIP-588).
_ON_BATCH: Final = _Row(
    _FAIL,
    _ABORT,
    _ABORT,
    _ABORT,
    {InvalidProducerEpoch: _ABORT, InvalidTxnState: _ABORT, UnsupportedForMessageFormat: _ABORT},
)


def after_refusal(request: Request[Any], error: KafkaError) -> Consequence:
    """What it means that a coordinator did not do this."""
    if isinstance(request, EndTxnRequest):
        return _consequence(_ON_COMMIT if request.committed else _ON_ABORT, error)
    return _consequence(_ROWS[type(request)], error)


def after_batch(error: KafkaError) -> Consequence:
    """What it means that a batch was not acknowledged."""
    return _consequence(_ON_BATCH, error)


def _consequence(row: _Row, error: KafkaError) -> Consequence:
    if type(error) in row.but:
        return row.but[type(error)]
    if isinstance(error, UnsupportedVersion):
        return _FAIL
    if not isinstance(error, BrokerError) or error.retriable:
        return row.unanswered
    return row.fatal if error.fatal else row.abortable if error.abortable else row.other


def commit_failed(request: Request[Any], error: KafkaError) -> KafkaError:
    """Return CommitFailed where the coordinator refused offsets since the membership is over; else the error itself."""
    if not isinstance(request, TxnOffsetCommitRequest) or not isinstance(error, IllegalGeneration | UnknownMemberId):
        return error
    failed = CommitFailed(
        f"{error}: the group {request.group_id!r} has rebalanced without this consumer, so the partitions may be "
        "another's by now; the transaction can only be aborted, and the records are read again from the last commit"
    )
    failed.__cause__ = error
    return failed


def leaves_doubt(error: KafkaError) -> bool:
    """Whether what was asked may have happened, or happen later; or the brokers have lost track of the producer."""
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
    """The error to raise from now on: of the same class, with what to do. ``request`` brought it, if not a batch."""
    whose = f"transactional_id {transactional_id!r}"
    if isinstance(error, ProducerFenced | InvalidProducerEpoch):
        found: KafkaError = ProducerFenced(f"{whose}: {_FENCED}; close this one, or {_ANOTHER}: {error}")
    else:
        found = _same(error, f"{whose}: {_advice(error, request)}: {error}")
    found.__cause__ = error
    return found


def _advice(error: KafkaError, request: Request[Any] | None) -> str:
    if isinstance(error, UnsupportedVersion | UnsupportedVersionAnswered):
        if isinstance(request, InitProducerIdRequest) and request.producer_id >= 0:
            return f"before Kafka 2.5 a producer cannot go on after this; {_ANOTHER}"
        return "the brokers are too old for what was asked"
    if isinstance(request, EndTxnRequest) and not (isinstance(error, BrokerError) and error.fatal):
        ending = "committed" if request.committed else "aborted"
        return f"whether the transaction was {ending} is not known; {_ANOTHER}: it finishes or fences what is left"
    return _ADVICE.get(type(error), _ANOTHER)


def _same(error: KafkaError, text: str) -> KafkaError:
    if isinstance(error, UnknownBrokerError):
        return UnknownBrokerError(error.code, text)
    return type(error)(text)
