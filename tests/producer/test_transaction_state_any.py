"""Any sequence of what users, brokers and networks may do, against a coordinator that keeps its own books."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.examples import examples
from support.transaction_answers import Coordinators, name_of

from aiokafkawire.errors import ErrorCode, KafkaError, RequestTimeout, broker_error
from aiokafkawire.producer.transaction_state_machine import (
    OffsetsCommit,
    TransactionPhase,
    TransactionRequest,
    TransactionStateMachine,
)
from aiokafkawire.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from aiokafkawire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

READY, OPEN, COMMITTING = TransactionPhase.READY, TransactionPhase.OPEN, TransactionPhase.COMMITTING
STARTING, ABORTING, FAILED = TransactionPhase.STARTING, TransactionPhase.ABORTING, TransactionPhase.FAILED

partitions = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 1))
groups = st.builds(GroupMetadata, st.sampled_from("gh"), st.sampled_from([-1, 1]))
refusals = st.sampled_from(
    [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.PRODUCER_FENCED,
    ]
)


@attrs.define
class Coordinator(Coordinators):
    """Knows whether a transaction is open, and what is in it; requests of an old epoch do nothing."""

    is_open: bool = False
    taken: set[TopicPartition] = attrs.Factory(set)
    ended: list[bool] = attrs.Factory(list)

    def apply(self, ask: TransactionRequest) -> ErrorCode:
        """Do it; the error to answer."""
        request: Any = ask.request
        if isinstance(request, InitProducerIdRequest):
            self._close()
            return ErrorCode.NONE
        if self._epoch_of(request) != self.epoch:
            return ErrorCode.PRODUCER_FENCED
        if isinstance(request, EndTxnRequest):
            if not self.is_open and (ask.versions.first < 5 or request.committed):
                return ErrorCode.INVALID_TXN_STATE
            self.ended.append(request.committed)
            self._close()
            return ErrorCode.NONE
        self.is_open = True
        if isinstance(request, AddPartitionsToTxnRequest):
            topics = request.v3_and_below_topics
            self.taken |= {TopicPartition(topic.name, index) for topic in topics for index in topic.partitions}
        return ErrorCode.NONE

    def write(self, where: TopicPartition, version: int) -> None:
        """A batch has come to the partition's leader."""
        if version < 2:
            assert where in self.taken
        self.taken.add(where)
        self.is_open = True

    def _close(self) -> None:
        self.is_open = False
        self.taken.clear()

    def _epoch_of(self, request: Any) -> int:
        is_add = isinstance(request, AddPartitionsToTxnRequest)
        epoch: int = request.v3_and_below_producer_epoch if is_add else request.producer_epoch
        return epoch


class AnySequence(RuleBasedStateMachine):
    """What holds whatever happens is asserted where it may break, and after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = TransactionStateMachine("shop", 60_000)
        self.coordinator = Coordinator()
        self.ask: TransactionRequest | None = None
        self.ids = (-1, -1, 0)
        self.commits: list[OffsetsCommit] = []
        self.lost: list[TransactionRequest] = []
        self.ends: list[str | None] = []
        self.erred = False
        self.wrote = False

    @initialize()
    def start(self) -> None:
        self.step(None)
        self.step(None)

    # --- the user --------------------------------------------------------------------------------------

    @precondition(lambda self: self.machine.phase is READY)
    @rule(version=st.integers(0, 2))
    def begin(self, version: int) -> None:
        assert not self.coordinator.is_open
        self.machine.begin(version)
        self.ends, self.erred, self.wrote = [], False, False
        assert self.machine.version in (1, max(1, version))

    @precondition(lambda self: self.can_go_on())
    @rule(where=partitions)
    def add(self, where: TopicPartition) -> None:
        self.machine.add_partition(where)

    @precondition(lambda self: self.can_go_on())
    @rule(group=groups, where=partitions, offset=st.integers(0, 9))
    def add_offsets(self, group: GroupMetadata, where: TopicPartition, offset: int) -> None:
        self.commits.append(self.machine.add_offsets(group, {where: OffsetAndMetadata(offset)}))

    @precondition(lambda self: self.can_go_on())
    @rule()
    def commit(self) -> None:
        self.machine.commit()

    @precondition(lambda self: self.machine.phase is OPEN)
    @rule()
    def abort(self) -> None:
        self.machine.abort()

    def can_go_on(self) -> bool:
        return self.machine.phase is OPEN and self.machine.error is None

    # --- leaders ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.machine.phase is OPEN)
    @rule(where=partitions, fails=st.sampled_from([False, False, False, True]))
    def send(self, where: TopicPartition, fails: bool) -> None:
        if not self.machine.may_send(where):
            return
        self.wrote = True
        self.coordinator.write(where, self.machine.version)
        if fails:
            self.machine.batch_failed(where, RequestTimeout("late"))
            self.erred = True

    # --- the coordinator -------------------------------------------------------------------------------

    @rule()
    def go_on(self) -> None:
        self.step(None)

    @precondition(lambda self: self.ask is not None)
    @rule(code=refusals)
    def refuse(self, code: ErrorCode) -> None:
        self.step(broker_error(code))

    @precondition(lambda self: self.ask is not None)
    @rule(arrives=st.booleans())
    def lose(self, arrives: bool) -> None:
        """The request, or its answer."""
        assert self.ask is not None
        if arrives:
            self.coordinator.apply(self.ask)
        else:
            self.lost.append(self.ask)
        self.step(RequestTimeout("late"))

    @precondition(lambda self: self.lost)
    @rule()
    def arrive(self) -> None:
        """Later than whoever asked has waited."""
        ask = self.lost.pop()
        if not isinstance(ask.request, InitProducerIdRequest | EndTxnRequest):  # the machine has failed without these
            self.coordinator.apply(ask)

    def step(self, error: KafkaError | None) -> None:
        """Ask what is due, or answer what was asked; with ``error`` refuse it."""
        if self.ask is None:
            self.ask = self.machine.next_request()
            if self.ask is not None:
                self.asked(name_of(self.ask))
            return
        assert self.machine.next_request() is None
        ask, self.ask = self.ask, None
        if error is not None:
            self.erred |= not isinstance(ask.request, InitProducerIdRequest)
            self.machine.failed(ask, error)
            return
        code = self.coordinator.apply(ask)
        self.coordinator.tell(self.machine, ask, *([code] if code else []))
        self.erred |= code not in (ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)

    def asked(self, name: str | None) -> None:
        assert self.machine.phase is not FAILED
        if name is not None and name.startswith("EndTxn"):
            assert name not in self.ends
            assert name == "EndTxn(abort)" or not self.ends
            self.ends.append(name)
        elif name is None or not name.startswith("InitProducerId"):
            assert not self.erred
        if name == "EndTxn(commit)":
            assert not self.erred

    # --- what holds ------------------------------------------------------------------------------------

    @invariant()
    def generations_go_with_ids(self) -> None:
        machine = self.machine
        ids = machine.producer_id, machine.producer_epoch
        assert machine.generation == self.ids[2] + (ids != self.ids[:2])
        self.ids = (*ids, machine.generation)

    @invariant()
    def nothing_goes_to_a_partition_that_was_not_taken(self) -> None:
        machine = self.machine
        if machine.version == 1 and machine.phase in (OPEN, COMMITTING):
            for where in (TopicPartition(topic, index) for topic in "ab" for index in range(2)):
                before = machine.may_send(where)
                assert not before or where in self.coordinator.taken

    @invariant()
    def nothing_is_left_open(self) -> None:
        if self.machine.phase is READY:
            assert not self.coordinator.is_open
            assert not self.wrote or self.ends
        if self.machine.phase in (READY, STARTING, FAILED, ABORTING):
            assert all(commit.done for commit in self.commits)

    @invariant()
    def errors_are_there_when_they_count(self) -> None:
        assert self.machine.error is not None or self.machine.phase is not FAILED
        if self.machine.error is not None:
            assert self.machine.phase in (OPEN, ABORTING, FAILED)


AnySequence.TestCase.settings = settings(
    max_examples=examples(150), stateful_step_count=60, deadline=None, derandomize=True
)
test_any_sequence = pytest.mark.timeout(120)(AnySequence.TestCase)
