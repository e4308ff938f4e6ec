"""What every error of every request does to a transaction and its producer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.rows import every_row
from support.transaction_answers import Coordinators, name_of

from aiokafkawire.errors import (
    BrokerError,
    CommitFailed,
    ConnectionLost,
    ErrorCode,
    GroupAuthorizationFailed,
    InvalidMessage,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    RequestTimeout,
    TransactionAborted,
    UnknownBrokerError,
    UnsupportedVersion,
    WireError,
    broker_error,
)
from aiokafkawire.producer.transaction_state_machine import (
    TransactionPhase,
    TransactionRequest,
    TransactionStateMachine,
)
from aiokafkawire.types import GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition

A, B, C = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
GROUP = GroupMetadata("g")
OFFSETS = {A: OffsetAndMetadata(5), B: OffsetAndMetadata(6)}

CODES = [code for code in ErrorCode if code is not ErrorCode.NONE]
# What errors.py says of the codes, once more, for this is what it is for.
FATAL = {
    "CLUSTER_AUTHORIZATION_FAILED",
    "ILLEGAL_SASL_STATE",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TRANSACTION_TIMEOUT",
    "INVALID_TXN_STATE",
    "PRODUCER_FENCED",
    "SASL_AUTHENTICATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "TRANSACTION_COORDINATOR_FENCED",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "UNSUPPORTED_SASL_MECHANISM",
    "UNSUPPORTED_VERSION",
}
ABORTABLE = {
    "FENCED_INSTANCE_ID",
    "GROUP_AUTHORIZATION_FAILED",
    "ILLEGAL_GENERATION",
    "INVALID_RECORD",
    "INVALID_REQUIRED_ACKS",
    "INVALID_TIMESTAMP",
    "INVALID_TOPIC_EXCEPTION",
    "MESSAGE_TOO_LARGE",
    "OPERATION_NOT_ATTEMPTED",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "RECORD_LIST_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
    "TRANSACTION_ABORTABLE",
    "UNKNOWN_MEMBER_ID",
    "UNKNOWN_PRODUCER_ID",
    "UNSUPPORTED_COMPRESSION_TYPE",
}
ALL = {code.name for code in CODES}
UNANSWERED = [RequestTimeout("late"), ConnectionLost("gone"), WireError("what"), InvalidMessage("too long")]


def asked(what: str, version: int, coordinators: Coordinators) -> tuple[TransactionStateMachine, TransactionRequest]:
    """A machine whose request of that name is on its way; a batch was written before, if it can have been."""
    if what == "InitProducerId":
        machine = TransactionStateMachine("shop", 60_000)
        return machine, due(machine)
    machine = coordinators.ready()
    machine.begin(version)
    machine.add_partition(C)
    coordinators.run(machine)
    assert machine.may_send(C)
    if what == "AddPartitionsToTxn":
        machine.add_partition(A)
        machine.add_partition(B)
    elif what in ("AddOffsetsToTxn", "TxnOffsetCommit"):
        machine.add_offsets(GROUP, OFFSETS)
    elif what == "EndTxn(commit)":
        machine.commit()
    else:
        machine.abort()
    while name_of(ask := due(machine)) != what:
        machine.succeeded(ask, coordinators.answer(ask))
    return machine, ask


def due(machine: TransactionStateMachine) -> TransactionRequest:
    ask = machine.next_request()
    assert ask is not None
    return ask


def check_failed(machine: TransactionStateMachine, kind: type[KafkaError]) -> None:
    """Nothing is asked and nothing possible any more, and the error names the producer."""
    assert (machine.phase, machine.next_request()) == (TransactionPhase.FAILED, None)
    assert type(machine.error) is kind
    calls: list[Callable[[], None]] = [
        lambda: machine.begin(1),
        lambda: machine.add_partition(A),
        machine.commit,
        machine.abort,
    ]
    for call in calls:
        with pytest.raises(kind, match="transactional_id 'shop'") as raised:
            call()
        assert raised.value.__cause__ is not None


def check_abortable(
    machine: TransactionStateMachine, error: type[KafkaError], coordinators: Coordinators
) -> list[object]:
    """Nothing is asked but the end, and then a transaction can begin; what was asked."""
    assert (machine.phase, machine.next_request()) == (TransactionPhase.OPEN, None)
    assert type(machine.error) is error
    with pytest.raises(error):
        machine.commit()
    machine.abort()
    told = coordinators.run(machine)
    check_ready(machine)
    machine.begin(2)
    return list(told)


def check_ready(machine: TransactionStateMachine) -> None:
    assert (machine.phase, machine.error) == (TransactionPhase.READY, None)


# --- answers -------------------------------------------------------------------------------------------------------

ROWS: dict[tuple[str, int], set[str]] = {
    ("InitProducerId", 1): ALL,
    ("AddPartitionsToTxn", 1): FATAL,
    ("AddOffsetsToTxn", 1): FATAL,
    ("TxnOffsetCommit", 1): FATAL,
    ("TxnOffsetCommit", 2): FATAL,
    ("EndTxn(commit)", 1): ALL - ABORTABLE,
    ("EndTxn(commit)", 2): ALL - ABORTABLE,
    ("EndTxn(abort)", 1): ALL,
    ("EndTxn(abort)", 2): ALL,
}
"""After which errors the producer can do nothing any more; after all others the transaction can be aborted."""


@every_row("code", CODES)
@pytest.mark.parametrize(("what", "version"), ROWS)
def test_every_error_of_every_request(what: str, version: int, code: ErrorCode) -> None:
    coordinators = Coordinators()
    machine, ask = asked(what, version, coordinators)
    coordinators.tell(machine, ask, code)
    kind = type(broker_error(code))
    if code.name in ROWS[what, version]:
        fenced = code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        check_failed(machine, ProducerFenced if fenced else kind)
        return
    doubtful = kind.retriable or code is ErrorCode.UNKNOWN_PRODUCER_ID
    bump = ["InitProducerId(bump)"] if version == 1 and doubtful else []
    refused_member = code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
    expected = CommitFailed if refused_member and what == "TxnOffsetCommit" else kind
    assert check_abortable(machine, expected, coordinators) == ["EndTxn(abort)", *bump]


@pytest.mark.parametrize("error", UNANSWERED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("what", "version"), ROWS)
def test_no_answer_to_any_request(what: str, version: int, error: KafkaError) -> None:
    coordinators = Coordinators()
    machine, ask = asked(what, version, coordinators)
    machine.failed(ask, error)
    if "Init" in what or "End" in what:
        check_failed(machine, type(error))
        return
    bump = ["InitProducerId(bump)"] if version == 1 else []
    assert check_abortable(machine, type(error), coordinators) == ["EndTxn(abort)", *bump]


@pytest.mark.parametrize(("what", "version"), ROWS)
def test_brokers_that_are_too_old(what: str, version: int) -> None:
    machine, ask = asked(what, version, Coordinators())
    machine.failed(ask, UnsupportedVersion("b:9092 speaks EndTxn 0-2"))
    check_failed(machine, UnsupportedVersion)
    with pytest.raises(UnsupportedVersion, match=r"the brokers are too old for this request: b:9092 speaks"):
        machine.begin(1)


@pytest.mark.parametrize(("what", "version"), ROWS)
def test_codes_that_are_not_known(what: str, version: int) -> None:
    coordinators = Coordinators()
    machine, ask = asked(what, version, coordinators)
    coordinators.tell(machine, ask, 4321)
    if "Init" in what or "End" in what:
        check_failed(machine, UnknownBrokerError)
        assert getattr(machine.error, "code", None) == 4321
    else:
        assert check_abortable(machine, UnknownBrokerError, coordinators) == ["EndTxn(abort)"]


@pytest.mark.parametrize(
    ("codes", "raised"),
    [
        (["NONE", "TOPIC_AUTHORIZATION_FAILED"], "TOPIC_AUTHORIZATION_FAILED"),
        (["OPERATION_NOT_ATTEMPTED", "TOPIC_AUTHORIZATION_FAILED"], "TOPIC_AUTHORIZATION_FAILED"),
        (["TOPIC_AUTHORIZATION_FAILED", "PRODUCER_FENCED"], "PRODUCER_FENCED"),
        (["PRODUCER_FENCED", "NOT_COORDINATOR"], "NOT_COORDINATOR"),
        (["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"], "UNKNOWN_TOPIC_OR_PARTITION"),
        (["NONE", "NONE"], None),
    ],
)
@pytest.mark.parametrize("what", ["AddPartitionsToTxn", "TxnOffsetCommit"])
def test_what_may_be_mended_by_a_retry_is_raised_first(what: str, codes: list[str], raised: str | None) -> None:
    coordinators = Coordinators()
    _, ask = asked(what, 1, coordinators)
    answer = coordinators.answer(ask, *(ErrorCode[code] for code in codes))
    if raised is None:
        ask.check(answer)
        return
    with pytest.raises(BrokerError, match=rf"{what} of a-\d") as told:
        ask.check(answer)
    assert ErrorCode(told.value.code).name == raised


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED"])
@pytest.mark.parametrize("version", [1, 2])
def test_offsets_that_are_not_taken_say_why(version: int, code: str) -> None:
    coordinators = Coordinators()
    machine, ask = asked("TxnOffsetCommit", version, coordinators)
    waiting = machine.add_offsets(GROUP, OFFSETS)
    coordinators.tell(machine, ask, 0, ErrorCode[code])
    assert waiting.done
    assert type(waiting.error) is type(machine.error)
    assert waiting.error is not machine.error
    assert "TxnOffsetCommit of a-1 for group 'g'" in str(waiting.error)


def test_offsets_wait_for_nothing_when_the_producer_has_failed() -> None:
    coordinators = Coordinators()
    machine, ask = asked("TxnOffsetCommit", 2, coordinators)
    waiting = machine.add_offsets(GROUP, OFFSETS)
    machine.batch_failed(A, broker_error(ErrorCode.PRODUCER_FENCED))
    assert isinstance(waiting.error, ProducerFenced)
    machine.succeeded(ask, coordinators.answer(ask))  # too late
    machine.batch_failed(A, broker_error(ErrorCode.MESSAGE_TOO_LARGE))
    check_failed(machine, ProducerFenced)


# --- batches -------------------------------------------------------------------------------------------------------

BATCHES = FATAL - {"INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "UNSUPPORTED_FOR_MESSAGE_FORMAT"}


def wrote(version: int, coordinators: Coordinators) -> TransactionStateMachine:
    machine = coordinators.ready()
    machine.begin(version)
    machine.add_partition(A)
    coordinators.run(machine)
    assert machine.may_send(A)
    return machine


@every_row("code", CODES)
@pytest.mark.parametrize("version", [1, 2])
def test_every_error_of_a_batch(version: int, code: ErrorCode) -> None:
    coordinators = Coordinators()
    machine = wrote(version, coordinators)
    machine.batch_failed(A, broker_error(code))
    kind = type(broker_error(code))
    if code.name in BATCHES:
        check_failed(machine, kind)
        return
    bump = ["InitProducerId(bump)"] if version == 1 else []
    assert check_abortable(machine, kind, coordinators) == ["EndTxn(abort)", *bump]


def test_the_first_error_counts_and_the_last_if_it_is_fatal() -> None:
    machine = wrote(2, Coordinators())
    for code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.TRANSACTION_ABORTABLE):
        machine.batch_failed(A, broker_error(code))
        assert "MESSAGE_TOO_LARGE" in str(machine.error)
    machine.batch_failed(A, UnsupportedVersion("Produce 0-8"))
    check_failed(machine, UnsupportedVersion)


def test_what_was_sent_may_be_sent_again_to_learn_of_it() -> None:
    machine = wrote(1, Coordinators())
    machine.add_partition(B)
    machine.batch_failed(A, broker_error(ErrorCode.MESSAGE_TOO_LARGE))
    assert (machine.may_send(A), machine.may_send(B)) == (True, False)


# --- ends ----------------------------------------------------------------------------------------------------------


def test_a_commit_fails_with_what_comes_before_it() -> None:
    coordinators = Coordinators()
    machine = wrote(1, coordinators)
    commit = machine.add_offsets(GROUP, OFFSETS)
    machine.commit()
    coordinators.tell(machine, due(machine), ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert isinstance(commit.error, GroupAuthorizationFailed)
    assert check_abortable(machine, GroupAuthorizationFailed, coordinators) == ["EndTxn(abort)"]


def test_what_fails_during_an_abort_does_not_stop_it() -> None:
    coordinators = Coordinators()
    machine = wrote(1, coordinators)
    machine.add_partition(B)
    ask = due(machine)
    machine.abort()
    machine.failed(ask, RequestTimeout("late"))
    assert (machine.phase, machine.error) == (TransactionPhase.ABORTING, None)
    assert coordinators.run(machine) == ["EndTxn(abort)", "InitProducerId(bump)"]


@pytest.mark.parametrize("certain", [True, False])
def test_an_abort_of_what_perhaps_began(certain: bool) -> None:
    """The coordinator knows whether it did: an end that it has no transaction for is none, unless there must be one."""
    coordinators = Coordinators()
    machine = wrote(1, coordinators) if certain else coordinators.ready()
    if not certain:
        machine.begin(1)
    machine.add_partition(B)
    machine.failed(due(machine), RequestTimeout("late"))
    machine.abort()
    ask = due(machine)
    assert name_of(ask) == "EndTxn(abort)"
    coordinators.tell(machine, ask, ErrorCode.INVALID_TXN_STATE)
    if certain:
        assert machine.phase is TransactionPhase.FAILED
    else:
        assert coordinators.run(machine) == ["InitProducerId(bump)"]  # it may begin yet
        assert machine.phase is TransactionPhase.READY


@pytest.mark.parametrize("sent", [True, False])
def test_a_commit_of_version_2_for_which_perhaps_nothing_was_sent(sent: bool) -> None:
    coordinators = Coordinators()
    machine = coordinators.ready()
    machine.begin(2)
    machine.add_partition(A)
    assert not sent or machine.may_send(A)
    machine.commit()
    coordinators.tell(machine, due(machine), ErrorCode.INVALID_TXN_STATE)
    assert machine.phase is (TransactionPhase.FAILED if sent else TransactionPhase.READY)


def test_what_a_coordinator_took_it_has_to_end() -> None:
    coordinators = Coordinators()
    machine = coordinators.ready()
    machine.begin(1)
    machine.add_partition(A)
    coordinators.run(machine)
    machine.commit()
    coordinators.tell(machine, due(machine), ErrorCode.INVALID_TXN_STATE)
    check_failed(machine, InvalidTxnState)


def test_an_answer_comes_too_late_for_who_has_failed() -> None:
    coordinators = Coordinators()
    machine = wrote(2, coordinators)
    machine.commit()
    ask = due(machine)
    machine.batch_failed(A, broker_error(ErrorCode.PRODUCER_FENCED))
    machine.succeeded(ask, coordinators.answer(ask))
    check_failed(machine, ProducerFenced)


def test_a_refusal_comes_too_late_for_who_has_failed() -> None:
    coordinators = Coordinators()
    machine = wrote(1, coordinators)
    machine.commit()
    ask = due(machine)
    machine.batch_failed(A, broker_error(ErrorCode.PRODUCER_FENCED))
    machine.failed(ask, RequestTimeout("late"))
    check_failed(machine, ProducerFenced)


def test_a_loss_after_the_end_was_asked_for_does_not_change_it() -> None:
    coordinators = Coordinators()
    machine = wrote(1, coordinators)
    machine.commit()
    ask = due(machine)
    machine.batch_failed(A, RequestTimeout("late"))
    machine.succeeded(ask, coordinators.answer(ask))
    assert coordinators.run(machine) == ["InitProducerId(bump)"]


# --- what is told --------------------------------------------------------------------------------------------------


def refuse(what: str, error: KafkaError) -> TransactionStateMachine:
    machine, ask = asked(what, 1, Coordinators())
    machine.failed(ask, error)
    return machine


def bumping(error: KafkaError) -> TransactionStateMachine:
    coordinators = Coordinators()
    machine = wrote(1, coordinators)
    machine.batch_failed(A, RequestTimeout("late"))
    machine.abort()
    ask = due(machine)
    machine.succeeded(ask, coordinators.answer(ask))
    machine.failed(due(machine), error)
    return machine


def code(name: str) -> BrokerError:
    return broker_error(ErrorCode[name], "b:9092 to it")


@pytest.mark.parametrize(
    ("fail", "told"),
    [
        (
            lambda: refuse("EndTxn(commit)", RequestTimeout("EndTxn did not succeed")),
            (
                "whether the transaction was committed is not known; make another producer with this transactional_id: "
                "it finishes or fences what is left: EndTxn did not succeed"
            ),
        ),
        (
            lambda: refuse("EndTxn(abort)", code("UNKNOWN_SERVER_ERROR")),
            "whether the transaction was aborted is not known; make another producer",
        ),
        (
            lambda: refuse("EndTxn(commit)", code("INVALID_PRODUCER_EPOCH")),
            (
                "a newer producer has its id, or its transaction was open for longer than transaction_timeout_ms; "
                "close this one, or make another producer with this transactional_id: b:9092 to it: INVALID_PRODUCER"
            ),
        ),
        (
            lambda: refuse("AddPartitionsToTxn", code("TRANSACTIONAL_ID_AUTHORIZATION_FAILED")),
            "let this user write to the transactional id, and make another producer",
        ),
        (
            lambda: refuse("InitProducerId", code("CLUSTER_AUTHORIZATION_FAILED")),
            "let this user write idempotently, and make another producer",
        ),
        (
            lambda: refuse("InitProducerId", code("INVALID_TRANSACTION_TIMEOUT")),
            "lower transaction_timeout_ms, or raise the brokers' transaction.max.timeout.ms: b:9092",
        ),
        (lambda: refuse("InitProducerId", code("UNSUPPORTED_VERSION")), "the brokers are too old for this request"),
        (lambda: refuse("InitProducerId", RequestTimeout("late")), "make another producer with this transactional_id"),
        (
            lambda: bumping(UnsupportedVersion("InitProducerId 0-2")),
            (
                "before Kafka 2.5 a producer cannot go on after this; make another producer with this "
                "transactional_id: InitProducerId 0-2"
            ),
        ),
    ],
)
def test_failures_say_what_to_do(fail: Callable[[], TransactionStateMachine], told: str) -> None:
    machine = fail()
    assert machine.phase is TransactionPhase.FAILED
    assert str(machine.error).startswith(f"transactional_id 'shop': {told}")


def test_an_identity_can_be_fenced() -> None:
    coordinators = Coordinators()
    machine = coordinators.ready(ProducerIdentity("shop", 9, 4, 1))
    machine.begin(1)
    machine.add_partition(A)
    coordinators.tell(machine, due(machine), ErrorCode.PRODUCER_FENCED)
    check_failed(machine, ProducerFenced)


def test_an_identity_whose_partition_is_refused_is_of_no_use_after_it() -> None:
    coordinators = Coordinators()
    machine = coordinators.ready(ProducerIdentity("shop", 9, 4, 1))
    machine.begin(1)
    machine.add_partition(A)
    coordinators.tell(machine, due(machine), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    machine.abort()
    check_failed(machine, TransactionAborted)
