"""Any sequence of faults and calls for a member of a consumer group, against the rules of its coordinator (KIP-848)."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.consumer_group_machines import INTERVAL, MEMBER, TOPIC, again_of, failed, given_fields, message_of
from support.examples import examples

from aiokafkawire.errors import ErrorCode, RequestTimeout, broker_error
from aiokafkawire.group.consumer_group_membership import ConsumerGroupMembership
from aiokafkawire.group.consumer_group_requests import ServerSubscription
from aiokafkawire.group.membership import (
    CoordinatorRequest,
    GroupState,
    LosePartitions,
    MemberSettings,
    PrepareRejoin,
    Reconcile,
    Task,
)
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from aiokafkawire.testing.cluster.api_error import ApiError
from aiokafkawire.testing.groups.consumer_member import ConsumerMember, TopicIdPartition
from aiokafkawire.testing.groups.current_assignment import Reconciliation, reconcile
from aiokafkawire.testing.groups.heartbeat_checks import check_epoch, check_request
from aiokafkawire.testing.groups.heartbeat_messages import assignment_of, owned_by
from aiokafkawire.testing.groups.heartbeats import HeartbeatAttempt
from aiokafkawire.testing.groups.release_rules import RULES_OF_4_3

OUTSIDE, STABLE = GroupState.OUTSIDE, GroupState.STABLE
ALL = frozenset(TopicIdPartition(TOPIC, index) for index in range(4))
targets = st.sets(st.sampled_from(sorted(ALL))).map(frozenset)


class Coordinator:
    """The coordinator of one member; other members take the partitions that are not in the member's target."""

    def __init__(self) -> None:
        self.epoch = 1
        self.member: ConsumerMember | None = None
        self.target = ALL
        self.others: set[TopicIdPartition] = set()
        self.codes: list[int] = []

    @property
    def held(self) -> set[TopicIdPartition]:
        return self.member.held if self.member is not None else set()

    def retarget(self, target: frozenset[TopicIdPartition]) -> None:
        self.epoch, self.target = self.epoch + 1, target

    def others_take(self) -> None:
        self.others |= ALL - self.target - self.held

    def others_release(self) -> None:
        self.others -= self.target

    def handle(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        try:
            response = self._handle(request)
        except ApiError as error:
            response = failed(error.code)
        self.codes.append(response.error_code)
        return response

    def _handle(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        check_request(request, 1, ("uniform", "range"))
        attempt, owned = HeartbeatAttempt(request, 1, "", ""), owned_by(request)
        before = self.member
        if before is None:
            if not attempt.joins:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            before, self.epoch = ConsumerMember(MEMBER), self.epoch + 1
        if request.member_epoch < 0:
            self.member = None
            return self._confirm(request.member_epoch)
        check_epoch(before, request.member_epoch, owned, RULES_OF_4_3)
        after = attempt.updated(before)
        self.epoch += after.topic_names != before.topic_names and before.epoch > 0
        if not after.is_reconciled(self.epoch):
            after = reconcile(after, Reconciliation(self.epoch, self.target, {TOPIC}, self.others, owned))
        self.member = after
        response = self._confirm(after.epoch)
        if attempt.joins or attempt.is_full or after.assigned != before.assigned:
            response.assignment = assignment_of(after.assigned)
        return response

    def _confirm(self, epoch: int) -> ConsumerGroupHeartbeatResponse:
        return ConsumerGroupHeartbeatResponse(
            error_code=0, member_id=MEMBER, member_epoch=epoch, heartbeat_interval_ms=int(INTERVAL * 1000)
        )


class AnySequence(RuleBasedStateMachine):
    """A member that reads partitions, its coordinator, and a network that loses messages."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = ConsumerGroupMembership(MemberSettings("g"), MEMBER)
        self.machine.subscribe(ServerSubscription(("a",)))
        self.coordinator = Coordinator()
        self.now = 0.0
        self.request: CoordinatorRequest | None = None
        self.task: Task | None = None
        self.reading: set[TopicIdPartition] = set()
        # Responses in a row that were lost: only the first leaves the member with an epoch that counts.
        self.lost = 0
        # Whether the coordinator has removed the member, which does not know it yet.
        self.removed = False
        self.machine.request_rejoin("to begin")

    # --- the user --------------------------------------------------------------------------------------

    @rule(topics=st.sampled_from([("a",), ("a", "b")]))
    def subscribe(self, topics: tuple[str, ...]) -> None:
        self.machine.subscribe(ServerSubscription(topics))
        self.machine.request_rejoin("other topics")

    @rule()
    def leave(self) -> None:
        self.reading.clear()
        self.machine.leave("enough")

    @rule()
    def poll_too_late(self) -> None:
        self.machine.poll_timeout("no poll")

    @rule()
    def commit(self) -> None:
        member = self.coordinator.member
        if member is None or member.epoch != self.machine.group.generation_id:
            code = ErrorCode.UNKNOWN_MEMBER_ID if member is None else ErrorCode.STALE_MEMBER_EPOCH
            self.machine.commit_refused(self.machine.group, broker_error(code, ""), self.now)

    # --- the tasks -------------------------------------------------------------------------------------

    @precondition(lambda self: self.task is None and self.machine.task is not None)
    @rule()
    def begin(self) -> None:
        self.task = task = self.machine.task
        if isinstance(task, Reconcile):
            self.reading &= _partitions(task)

    @precondition(lambda self: self.task is not None)
    @rule(knows_all=st.booleans())
    def end(self, knows_all: bool) -> None:
        task, self.task = self.task, None
        if isinstance(task, PrepareRejoin):
            if task.lost:
                self.reading.clear()
            self.machine.prepared(task)
        elif isinstance(task, LosePartitions):
            self.reading.clear()
            self.machine.task_done(task)
        elif isinstance(task, Reconcile):
            if task is self.machine.task:
                added = sorted(_partitions(task) - self.reading)
                self.reading |= set(added if knows_all else added[1:])
            owned = {TOPIC: [partition.partition for partition in self.reading]}
            self.machine.reconciled(task, owned)

    @rule()
    def learn_topics(self) -> None:
        self.machine.reconcile_again()

    # --- the network -----------------------------------------------------------------------------------

    @rule(wait=st.sampled_from([0.0, 0.2, INTERVAL]))
    def ask(self, wait: float) -> None:
        self.now += wait
        for request in self.machine.due(self.now):
            assert self.request is None or not self.machine.is_current(self.request)
            self.request = request

    @precondition(lambda self: self.request is not None)
    @rule(retries=st.lists(st.booleans(), max_size=2), last=st.sampled_from(["answered", "answered", "silent", "lost"]))
    def deliver(self, retries: list[bool], last: str) -> None:
        """Lose attempts, the request or only its response, then answer the last one or give up."""
        request, self.request = self.request, None
        assert request is not None
        if not self.machine.is_current(request):
            return  # the driver has cancelled it
        message = message_of(request)
        for is_handled in retries if request.again is not None else ():
            if is_handled:
                self._handle(message)
                self.lost += 1
            message = again_of(request)
        if last == "lost":
            self.machine.refused(request, RequestTimeout("late"), self.now)
            return
        response = self._handle(message)
        if last == "silent":
            self.lost += 1
            self.machine.refused(request, RequestTimeout("late"), self.now)
        else:
            self._answer(request, response)

    @precondition(lambda self: self.machine.sends_heartbeats)
    @rule(is_answered=st.booleans())
    def beat_in_the_thread(self, is_answered: bool) -> None:
        group = self.machine.group
        message = self.machine.thread_heartbeat()
        assert isinstance(message, ConsumerGroupHeartbeatRequest)
        response = self._handle(message)
        if not is_answered:
            self.lost += 1
            return
        epoch = response.member_epoch if response.error_code == 0 else None
        self.machine.on_thread_heartbeat(group, response.error_code, self.now, epoch)
        self._heard()

    @rule(steps=st.integers(1, 12))
    def go_on(self, steps: int) -> None:
        """Take a few steps without faults."""
        for _ in range(steps):
            if self.task is not None:
                self.end(True)
            elif self.machine.task is not None:
                self.begin()
            elif self.request is not None:
                self.deliver([], "answered")
            else:
                self.ask(INTERVAL)

    def _handle(self, message: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        response = self.coordinator.handle(message)
        assert response.error_code in (0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
        assert response.error_code != ErrorCode.FENCED_MEMBER_EPOCH or self.lost >= 2
        return response

    def _answer(self, request: CoordinatorRequest, response: ConsumerGroupHeartbeatResponse) -> None:
        self._heard()
        self.machine.answered(request, response, self.now)

    def _heard(self) -> None:
        self.lost, self.removed = 0, False

    # --- the coordinator -------------------------------------------------------------------------------

    @rule(partitions=targets)
    def retarget(self, partitions: frozenset[TopicIdPartition]) -> None:
        self.coordinator.retarget(partitions)

    @rule(takes=st.booleans())
    def move(self, takes: bool) -> None:
        (self.coordinator.others_take if takes else self.coordinator.others_release)()

    @rule()
    def remove(self) -> None:
        self.removed = self.removed or self.coordinator.member is not None
        self.coordinator.member = None

    # --- what holds ------------------------------------------------------------------------------------

    @invariant()
    def the_member_reads_only_what_no_other_may_get(self) -> None:
        if self.machine.is_member and self.machine.state is STABLE and not self.removed:
            assert self.reading <= self.coordinator.held
            assert not self.reading & self.coordinator.others

    @invariant()
    def a_member_that_wants_to_do_something_can(self) -> None:
        machine = self.machine
        if machine.state is not OUTSIDE and machine.task is None:
            assert machine.wait(self.now) is not None or self.request is not None
        assert machine.state is not GroupState.FAILED

    def teardown(self) -> None:
        """Let the member settle, without faults: it has its target, and sends a minimal heartbeat per interval."""
        machine, coordinator = self.machine, self.coordinator
        if self.request is not None:
            self.deliver([], "answered")
        machine.request_rejoin("after all")
        for _ in range(30):
            self._work()
            for request in machine.due(self.now):
                machine.answered(request, coordinator.handle(message_of(request)), self.now)
            coordinator.others_take()
            coordinator.others_release()
            self.now += machine.wait(self.now) or 0.1
        machine.request_rejoin("after all")
        assert (machine.state, machine.task, machine.is_rebalancing) == (STABLE, None, False)
        assert self.reading == coordinator.target == coordinator.held
        assert coordinator.member is not None
        assert machine.epoch == coordinator.member.epoch
        sent = []
        for _ in range(100):
            self.now += INTERVAL / 10
            for request in machine.due(self.now):
                sent.append(given_fields(message_of(request)))
                machine.answered(request, coordinator.handle(message_of(request)), self.now)
        assert sent[1:] == [set()] * len(sent[1:])
        assert 9 <= len(sent) <= 11

    def _work(self) -> None:
        for _ in range(5):
            if self.task is not None:
                self.end(True)
            elif self.machine.task is not None:
                self.begin()
        self.machine.reconcile_again()


def _partitions(task: Reconcile) -> set[TopicIdPartition]:
    return {TopicIdPartition(topic_id, index) for topic_id, indexes in task.assignment.items() for index in indexes}


@pytest.mark.parametrize("is_full", [False, True])
def test_a_heartbeat_in_flight_gives_away_no_partition_that_is_being_taken(is_full: bool) -> None:
    sequence = AnySequence()
    sequence.begin()
    sequence.end(True)
    sequence.ask(0.0)
    sequence.deliver([], "answered")
    if is_full:
        sequence.ask(INTERVAL)
        sequence.deliver([], "lost")
    sequence.begin()
    sequence.ask(INTERVAL)
    sequence.end(True)
    sequence.retarget(frozenset())
    sequence.deliver([] if is_full else [False], "answered")
    assert sequence.reading == ALL
    sequence.the_member_reads_only_what_no_other_may_get()
    sequence.teardown()


def test_new_metadata_while_it_leaves_begins_nothing() -> None:
    sequence = AnySequence()
    sequence.go_on(4)
    sequence.begin()
    sequence.leave()
    sequence.learn_topics()
    assert sequence.machine.task is None
    sequence.teardown()


AnySequence.TestCase.settings = settings(
    max_examples=examples(1000), stateful_step_count=40, deadline=None, derandomize=True
)
test_any_sequence = pytest.mark.timeout(120)(AnySequence.TestCase)
