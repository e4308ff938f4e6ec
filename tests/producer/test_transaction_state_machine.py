from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.rows import every_row
from support.transaction_answers import Coordinators, name_of

from aiokafkawire.errors import (
    ErrorCode,
    KafkaError,
    ProducerFenced,
    RequestTimeout,
    TransactionAborted,
    UsageError,
    broker_error,
)
from aiokafkawire.producer.transaction_state_machine import (
    PRODUCE_V1,
    PRODUCE_V2,
    OffsetsCommit,
    TransactionPhase,
    TransactionRequest,
    TransactionStateMachine,
)
from aiokafkawire.protocol.messages.transactions import EndTxnResponse, InitProducerIdResponse, TxnOffsetCommitRequest
from aiokafkawire.types import CoordinatorType, GroupMetadata, OffsetAndMetadata, ProducerIdentity, TopicPartition

A, B, OTHER = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
GROUP = GroupMetadata("g")
OFFSETS = {A: OffsetAndMetadata(5)}
TOO_LARGE = broker_error(ErrorCode.MESSAGE_TOO_LARGE)
FENCED = broker_error(ErrorCode.PRODUCER_FENCED)
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


@pytest.fixture
def machine(coordinators: Coordinators) -> TransactionStateMachine:
    return coordinators.ready()


def wrote(machine: TransactionStateMachine, coordinators: Coordinators, version: int) -> None:
    """A transaction is open and has a batch in A."""
    machine.begin(version)
    machine.add_partition(A)
    coordinators.run(machine)
    assert machine.may_send(A)


def due(machine: TransactionStateMachine) -> TransactionRequest:
    ask = machine.next_request()
    assert ask is not None
    return ask


# --- every state and every event -----------------------------------------------------------------------------------

EVENTS: dict[str, Callable[[TransactionStateMachine, int], Any]] = {
    "begin": lambda machine, version: machine.begin(version),
    "add": lambda machine, version: machine.add_partition(A),
    "add another": lambda machine, version: machine.add_partition(B),
    "may_send": lambda machine, version: machine.may_send(A),
    "add_offsets": lambda machine, version: machine.add_offsets(GROUP, OFFSETS),
    "commit": lambda machine, version: machine.commit(),
    "abort": lambda machine, version: machine.abort(),
    "batch too large": lambda machine, version: machine.batch_failed(A, TOO_LARGE),
    "batch fenced": lambda machine, version: machine.batch_failed(A, FENCED),
    "due": lambda machine, version: name_of(machine.next_request()),
}

# Which error it raises, what it returns, or which state it leads to; "-" for nothing of that.
STATES = {
    "starting": "usage usage usage no   usage  usage      usage    -    -      InitProducerId",
    "ready":    "OPEN  usage usage no   usage  usage      usage    -    -      -",
    "open":     "usage -     -     yes  commit COMMITTING ABORTING OPEN! FAILED! -",
    "in error": "error error error yes  error  error      ABORTING -    FAILED! -",
    "committing": "usage usage usage yes usage usage      usage    OPEN! FAILED! EndTxn(commit)",
    "asked to commit": "usage usage usage yes usage usage usage    -    FAILED! -",
    "aborting": "usage usage usage no   usage  usage      usage    -    FAILED! EndTxn(abort)",
    "asked to abort": "usage usage usage no usage usage   usage    -    FAILED! -",
    "failed":   "error error error no   error  error      error    -    -      -",
}  # fmt: skip


def in_state(name: str, version: int) -> TransactionStateMachine:
    coordinators = Coordinators()
    if name == "starting":
        return TransactionStateMachine("shop", 60_000)
    machine = coordinators.ready()
    if name == "ready":
        return machine
    wrote(machine, coordinators, version)
    if name == "in error":
        machine.batch_failed(A, TOO_LARGE)
    elif name == "failed":
        machine.batch_failed(A, FENCED)
    elif "commit" in name:
        machine.commit()
    elif "abort" in name:
        machine.abort()
    if "asked" in name:
        assert machine.next_request() is not None
    return machine


@VERSIONS
@every_row(("event", "number"), [(event, number) for number, event in enumerate(EVENTS)])
@pytest.mark.parametrize("state", STATES)
def test_every_event_in_every_state(state: str, event: str, number: int, version: int) -> None:
    machine = in_state(state, version)
    before, error = machine.phase, machine.error
    expected = STATES[state].split()[number]
    outcome = outcome_of(lambda: EVENTS[event](machine, version))
    assert told_by(outcome, machine, before, error) == expected


def outcome_of(call: Callable[[], object]) -> object:
    try:
        return call()
    except KafkaError as raised:
        return raised


def told_by(
    outcome: object, machine: TransactionStateMachine, before: TransactionPhase, error: KafkaError | None
) -> str:
    if isinstance(outcome, UsageError):
        assert "'shop' is" in str(outcome)
        return "usage"
    if isinstance(outcome, KafkaError):
        assert error is not None
        assert outcome is not error  # each raises its own
        assert (type(outcome), outcome.args, outcome.__cause__) == (type(error), error.args, error.__cause__)
        return "error"
    if isinstance(outcome, bool):
        return "yes" if outcome else "no"
    if isinstance(outcome, OffsetsCommit):
        assert not outcome.done
        return "commit"
    if isinstance(outcome, str):
        return outcome
    news = "" if machine.error is error else "!"
    return "-" if machine.phase is before and not news else machine.phase.name + news


# --- what is asked, and in what versions ---------------------------------------------------------------------------


def test_the_producer_id_is_asked_for_first() -> None:
    machine = TransactionStateMachine("shop", 1234)
    assert (machine.phase, machine.generation, machine.version) == (TransactionPhase.STARTING, 0, 0)
    ask = due(machine)
    request: Any = ask.request
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.TRANSACTION, "shop", "0-5")
    assert (request.transactional_id, request.transaction_timeout_ms) == ("shop", 1234)
    assert (request.producer_id, request.producer_epoch) == (-1, -1)
    machine.succeeded(ask, InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=3))
    assert (machine.producer_id, machine.producer_epoch, machine.generation) == (7, 3, 1)
    assert machine.phase is TransactionPhase.READY


def test_a_transaction_of_version_1(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    machine.begin(1)
    assert (machine.version, machine.produce_versions, str(PRODUCE_V1)) == (1, PRODUCE_V1, "3-11")
    assert machine.next_request() is None
    for where in (A, OTHER, B, A):
        machine.add_partition(where)
    assert not machine.may_send(A)
    ask = due(machine)
    request: Any = ask.request
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.TRANSACTION, "shop", "0-3")
    asked = {topic.name: topic.partitions for topic in request.v3_and_below_topics}
    assert asked == {"a": [0, 1], "b": [0]}
    ids = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
    assert (request.v3_and_below_transactional_id, *ids) == ("shop", 7, 0)
    assert not machine.may_send(A)
    machine.succeeded(ask, coordinators.answer(ask))
    assert machine.may_send(A)
    assert machine.may_send(OTHER)
    assert machine.next_request() is None
    machine.commit()
    ask = due(machine)
    request = ask.request
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.TRANSACTION, "shop", "0-4")
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == ("shop", 7, 0)
    assert request.committed
    machine.succeeded(ask, EndTxnResponse(error_code=0))
    assert (machine.phase, machine.producer_epoch, machine.generation) == (TransactionPhase.READY, 0, 1)
    machine.begin(0)  # as before the feature was there
    machine.add_partition(A)
    assert not machine.may_send(A)


def test_a_transaction_of_version_2(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    machine.begin(2)
    assert (machine.version, machine.produce_versions, str(PRODUCE_V2)) == (2, PRODUCE_V2, "12+")
    assert not machine.may_send(A)
    machine.add_partition(A)
    assert machine.may_send(A)
    assert machine.next_request() is None
    assert machine.identity == ProducerIdentity("shop", 7, 0, 2)
    machine.commit()
    ask = due(machine)
    assert str(ask.versions) == "5+"
    machine.succeeded(ask, EndTxnResponse(error_code=0, producer_id=7, producer_epoch=1))
    assert (machine.phase, machine.producer_epoch, machine.generation) == (TransactionPhase.READY, 1, 2)
    machine.begin(3)  # whatever comes later has what 2 has
    machine.add_partition(A)
    assert machine.may_send(A)


def test_a_new_producer_id_when_the_epochs_are_used_up(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    wrote(machine, coordinators, 2)
    machine.abort()
    machine.succeeded(due(machine), EndTxnResponse(error_code=0, producer_id=8, producer_epoch=0))
    assert (machine.producer_id, machine.producer_epoch, machine.generation) == (8, 0, 2)


def test_the_same_epoch_is_no_new_generation(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    wrote(machine, coordinators, 2)
    machine.commit()
    machine.succeeded(due(machine), EndTxnResponse(error_code=0, producer_id=7, producer_epoch=0))
    assert machine.generation == 1


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_what_never_began_has_no_end(machine: TransactionStateMachine, version: int, commit: bool) -> None:
    machine.begin(version)
    if version == 1:
        machine.add_partition(A)  # whose record was not taken after all
    (machine.commit if commit else machine.abort)()
    assert (machine.phase, machine.next_request()) == (TransactionPhase.READY, None)


def test_a_commit_asks_for_no_partition_that_has_no_batch(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    wrote(machine, coordinators, 1)
    machine.add_partition(B)
    machine.commit()
    assert coordinators.run(machine) == ["EndTxn(commit)"]


def test_partitions_come_while_others_are_asked_for(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    machine.begin(1)
    machine.add_partition(A)
    ask = due(machine)
    machine.add_partition(B)
    assert machine.next_request() is None
    machine.succeeded(ask, coordinators.answer(ask))
    assert (machine.may_send(A), machine.may_send(B)) == (True, False)
    assert coordinators.run(machine) == ["AddPartitionsToTxn"]
    assert machine.may_send(B)


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_waits_for_what_is_on_its_way(
    machine: TransactionStateMachine, coordinators: Coordinators, commit: bool
) -> None:
    machine.begin(1)
    machine.add_partition(A)
    ask = due(machine)
    (machine.commit if commit else machine.abort)()
    assert machine.next_request() is None
    machine.succeeded(ask, coordinators.answer(ask))
    assert coordinators.run(machine) == ["EndTxn(commit)" if commit else "EndTxn(abort)"]
    assert machine.phase is TransactionPhase.READY


def test_only_what_was_asked_has_an_end(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    wrote(machine, coordinators, 1)
    machine.commit()
    ask = due(machine)
    other = TransactionRequest(ask.request, ask.coordinator_type, ask.key, ask.versions, ask.check)
    with pytest.raises(UsageError, match="not in flight"):
        machine.failed(other, FENCED)
    machine.succeeded(ask, coordinators.answer(ask))
    with pytest.raises(UsageError, match="not in flight"):
        machine.succeeded(ask, coordinators.answer(ask))


# --- epochs --------------------------------------------------------------------------------------------------------


def test_a_clean_abort_of_version_1_keeps_the_epoch(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    wrote(machine, coordinators, 1)
    machine.abort()
    assert coordinators.run(machine) == ["EndTxn(abort)"]
    assert (machine.producer_epoch, machine.generation) == (0, 1)


@pytest.mark.parametrize("late", [True, False])
def test_an_abort_that_leaves_batches_in_doubt_bumps_the_epoch(
    machine: TransactionStateMachine, coordinators: Coordinators, late: bool
) -> None:
    wrote(machine, coordinators, 1)
    if late:
        machine.abort()
        machine.batch_failed(A, TransactionAborted("dropped"))
    else:
        machine.batch_failed(A, RequestTimeout("no answer"))
        machine.abort()
    ask = due(machine)
    machine.succeeded(ask, coordinators.answer(ask))
    assert (machine.phase, machine.error) == (TransactionPhase.STARTING, None)
    ask = due(machine)
    request: Any = ask.request
    assert (str(ask.versions), request.producer_id, request.producer_epoch) == ("3-5", 7, 0)
    machine.succeeded(ask, coordinators.answer(ask))
    assert (machine.phase, machine.producer_epoch, machine.generation) == (TransactionPhase.READY, 1, 2)


def test_batches_that_were_never_sent_leave_no_doubt(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    wrote(machine, coordinators, 1)
    machine.batch_failed(A, RequestTimeout("no leader"), sent=False)
    with pytest.raises(RequestTimeout):
        machine.commit()
    machine.abort()
    machine.batch_failed(B, TransactionAborted("dropped"), sent=False)
    assert coordinators.run(machine) == ["EndTxn(abort)"]


def test_the_end_of_version_2_bumps_the_epoch_by_itself(
    machine: TransactionStateMachine, coordinators: Coordinators
) -> None:
    wrote(machine, coordinators, 2)
    machine.batch_failed(A, RequestTimeout("no answer"))
    machine.abort()
    assert coordinators.run(machine) == ["EndTxn(abort)"]
    assert (machine.phase, machine.generation) == (TransactionPhase.READY, 2)


def test_version_2_begins_in_an_epoch_of_its_own(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    wrote(machine, coordinators, 1)
    machine.commit()
    coordinators.run(machine)
    wrote(machine, coordinators, 2)  # the brokers have been upgraded
    assert machine.version == 1
    machine.commit()
    ask = due(machine)
    assert str(ask.versions) == "0-4"
    machine.succeeded(ask, coordinators.answer(ask))
    assert machine.phase is TransactionPhase.STARTING
    assert coordinators.run(machine) == ["InitProducerId(bump)"]
    wrote(machine, coordinators, 2)
    assert machine.version == 2
    machine.commit()
    coordinators.run(machine)
    wrote(machine, coordinators, 1)  # and back: the epoch is new already
    assert machine.version == 1


# --- offsets -------------------------------------------------------------------------------------------------------


def test_offsets_with_version_1(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    machine.begin(1)
    commit = machine.add_offsets(GROUP, OFFSETS)
    ask = due(machine)
    request: Any = ask.request
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.TRANSACTION, "shop", "0-4")
    assert (request.transactional_id, request.producer_id, request.producer_epoch) == ("shop", 7, 0)
    assert request.group_id == "g"
    machine.succeeded(ask, coordinators.answer(ask))
    assert not commit.done
    ask = due(machine)
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.GROUP, "g", "0-4")
    machine.succeeded(ask, coordinators.answer(ask))
    assert (commit.done, commit.error) == (True, None)
    machine.add_offsets(GROUP, OFFSETS)
    assert coordinators.run(machine) == ["TxnOffsetCommit"]
    machine.commit()
    assert coordinators.run(machine) == ["EndTxn(commit)"]
    machine.begin(1)
    machine.add_offsets(GROUP, OFFSETS)
    assert coordinators.run(machine) == ["AddOffsetsToTxn", "TxnOffsetCommit"]


def test_offsets_with_version_2(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    machine.begin(2)
    member = GroupMetadata("g", 4, "member", "instance")
    noted = {A: OffsetAndMetadata(5, "note", 3), OTHER: OffsetAndMetadata(6)}
    commit = machine.add_offsets(member, noted)
    ask = due(machine)
    assert (ask.coordinator_type, ask.key, str(ask.versions)) == (CoordinatorType.GROUP, "g", "5")
    request = ask.request
    assert isinstance(request, TxnOffsetCommitRequest)
    assert (request.transactional_id, request.group_id) == ("shop", "g")
    assert (request.producer_id, request.producer_epoch) == (7, 0)
    said = request.generation_id_or_member_epoch, request.member_id, request.group_instance_id
    assert said == (4, "member", "instance")
    sent = {
        (topic.name, one.partition_index): (one.committed_offset, one.committed_metadata, one.committed_leader_epoch)
        for topic in request.topics
        for one in topic.partitions
    }
    assert sent == {("a", 0): (5, "note", 3), ("b", 0): (6, "", -1)}
    machine.succeeded(ask, coordinators.answer(ask))
    assert commit.done
    machine.commit()
    assert coordinators.run(machine) == ["EndTxn(commit)"]


@pytest.mark.parametrize(
    "member", [GroupMetadata("g", 1), GroupMetadata("g", -1, "m"), GroupMetadata("g", -1, "", "instance")]
)
def test_members_need_a_version_that_can_name_them(
    machine: TransactionStateMachine, coordinators: Coordinators, member: GroupMetadata
) -> None:
    machine.begin(1)
    machine.add_offsets(member, OFFSETS)
    ask = due(machine)
    machine.succeeded(ask, coordinators.answer(ask))
    assert str(due(machine).versions) == "3-4"


@VERSIONS
def test_offsets_that_wait_for_one_group_go_together(
    machine: TransactionStateMachine, coordinators: Coordinators, version: int
) -> None:
    wrote(machine, coordinators, version)
    other = machine.add_offsets(GroupMetadata("other"), OFFSETS)
    ask = due(machine)
    first = machine.add_offsets(GROUP, {A: OffsetAndMetadata(1), B: OffsetAndMetadata(2)})
    second = machine.add_offsets(GROUP, {A: OffsetAndMetadata(3)})
    member = machine.add_offsets(GroupMetadata("g", 4, "member"), OFFSETS)
    machine.succeeded(ask, coordinators.answer(ask))
    sent = []
    while (next_one := machine.next_request()) is not None:
        ask, request = next_one, next_one.request
        if isinstance(request, TxnOffsetCommitRequest):
            offsets = [one.committed_offset for topic in request.topics for one in topic.partitions]
            sent.append((request.group_id, request.member_id, offsets))
            if request.member_id:
                assert (first.done, second.done, member.done) == (True, True, False)
        machine.succeeded(ask, coordinators.answer(ask))
    assert sent[-2:] == [("g", "", [3, 2]), ("g", "member", [5])]
    assert (other.done, member.done) == (True, True)


def test_a_commit_waits_for_offsets(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    machine.begin(1)
    commit = machine.add_offsets(GROUP, OFFSETS)
    machine.commit()
    assert coordinators.run(machine) == ["AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn(commit)"]
    assert (commit.done, commit.error) == (True, None)


@VERSIONS
def test_an_abort_drops_offsets(machine: TransactionStateMachine, coordinators: Coordinators, version: int) -> None:
    machine.begin(version)
    going = machine.add_offsets(GROUP, OFFSETS)
    ask = due(machine)
    waiting = machine.add_offsets(GROUP, OFFSETS)
    machine.abort()
    assert isinstance(going.error, TransactionAborted)
    assert isinstance(waiting.error, TransactionAborted)
    assert going.error is not waiting.error
    machine.succeeded(ask, coordinators.answer(ask))
    assert isinstance(going.error, TransactionAborted)
    assert coordinators.run(machine) == ["EndTxn(abort)"]


def test_no_offsets_are_done_at_once(machine: TransactionStateMachine) -> None:
    machine.begin(2)
    assert machine.add_offsets(GROUP, {}).done
    machine.commit()
    assert machine.phase is TransactionPhase.READY


# --- with another producer's identity ------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_an_identity_writes_into_what_is_open_elsewhere(coordinators: Coordinators, version: int, commit: bool) -> None:
    machine = coordinators.ready(ProducerIdentity("shop", 9, 4, version))
    assert (machine.producer_id, machine.producer_epoch, machine.generation) == (9, 4, 1)
    for number in range(2):
        machine.begin(3 - version)  # the identity knows better
        assert machine.version == version
        machine.add_partition(A)
        asked = ["AddPartitionsToTxn"] if version == 1 else []
        assert coordinators.run(machine) == asked, number
        assert machine.may_send(A)
        machine.add_offsets(GROUP, OFFSETS)
        coordinators.run(machine)
        (machine.commit if commit else machine.abort)()
        assert (machine.phase, machine.next_request()) == (TransactionPhase.READY, None)
    assert machine.generation == 1


def test_an_identity_waits_for_what_is_on_its_way(coordinators: Coordinators) -> None:
    machine = coordinators.ready(ProducerIdentity("shop", 9, 4, 1))
    machine.begin(1)
    machine.add_partition(A)
    ask = due(machine)
    machine.commit()
    assert machine.phase is TransactionPhase.COMMITTING
    machine.succeeded(ask, coordinators.answer(ask))
    assert (machine.phase, machine.next_request()) == (TransactionPhase.READY, None)


@VERSIONS
@pytest.mark.parametrize("late", [True, False])
def test_an_identity_is_of_no_use_after_a_loss(coordinators: Coordinators, version: int, late: bool) -> None:
    machine = coordinators.ready(ProducerIdentity("shop", 9, 4, version))
    wrote(machine, coordinators, version)
    if version == 1:
        machine.add_offsets(GROUP, OFFSETS)
        ask = due(machine)
    if not late:
        machine.batch_failed(A, TOO_LARGE)
        assert machine.error is TOO_LARGE
    machine.abort()
    if version == 1:
        machine.batch_failed(A, TransactionAborted("dropped"))
        machine.succeeded(ask, coordinators.answer(ask))
    elif late:
        assert machine.phase is TransactionPhase.READY
        return
    assert (machine.phase, machine.next_request()) == (TransactionPhase.FAILED, None)
    with pytest.raises(TransactionAborted, match="the producer that began the transaction has to abort it"):
        machine.begin(version)


def test_fencing_says_what_to_do(machine: TransactionStateMachine, coordinators: Coordinators) -> None:
    wrote(machine, coordinators, 2)
    machine.batch_failed(A, FENCED)
    with pytest.raises(ProducerFenced, match=r"'shop'.*newer producer.*transaction_timeout_ms.*another producer"):
        machine.commit()
