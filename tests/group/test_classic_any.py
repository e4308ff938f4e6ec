"""Any sequence of what users, coordinators and networks may do to a member; and a coordinator that behaves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.examples import examples
from support.membership_answers import ME, PROTOCOLS, answer, heard, joined, left, said, synced

from aiokafkawire.errors import ErrorCode, FencedInstanceId, KafkaError, RequestTimeout, UsageError, broker_error
from aiokafkawire.group.classic_membership import ClassicMembership
from aiokafkawire.group.membership import (
    ApplyAssignment,
    Assign,
    CoordinatorRequest,
    GroupState,
    LosePartitions,
    MemberSettings,
    PrepareRejoin,
    RequestKind,
    Task,
)

OUTSIDE, LEAVING, FAILED, STABLE = GroupState.OUTSIDE, GroupState.LEAVING, GroupState.FAILED, GroupState.STABLE

BEATING = (GroupState.PREPARING, GroupState.ASSIGNING, GroupState.SYNCING, STABLE)

codes = st.sampled_from(
    [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        31_000,
    ]
)
losses = st.sampled_from(
    [RequestTimeout("late"), UsageError("no"), broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "")]
)
joins = st.builds(
    joined,
    leader=st.sampled_from([ME, "other-2"]),
    member=st.sampled_from([ME, ME, ME, "other-2", ""]),
    generation=st.sampled_from([1, 2, 3, 7, -1]),
    protocol=st.sampled_from(["range", "range", "sticky", "nobody's", None]),
    skip=st.booleans(),
)
syncs = st.builds(synced, protocol=st.sampled_from(["range", None, "", "sticky"]))


class AnySequence(RuleBasedStateMachine):
    """What holds whatever happens is asserted where it may break, and after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = ClassicMembership(MemberSettings("g"))
        self.now = 0.0
        self.under_way: list[CoordinatorRequest] = []
        self.late: list[CoordinatorRequest] = []
        # What the driver does now, and those tasks that it was too slow for.
        self.doing: Task | None = None
        self.owns = False

    @initialize(instance=st.sampled_from([None, "i"]), wants=st.booleans())
    def start(self, instance: str | None, wants: bool) -> None:
        self.machine = ClassicMembership(MemberSettings("g", group_instance_id=instance))
        if wants:
            self.machine.request_rejoin("to begin")

    # --- the user --------------------------------------------------------------------------------------

    @rule()
    def want(self) -> None:
        self.machine.request_rejoin("more")

    @precondition(lambda self: self.machine.state is not OUTSIDE)
    @rule(expelled=st.booleans())
    def leave(self, expelled: bool) -> None:
        if expelled and self.machine.state in (LEAVING, FAILED):
            return  # nobody does
        if not expelled:
            self.owns = False  # who leaves by itself has given up all before
        (self.machine.poll_timeout if expelled else self.machine.leave)("enough")
        assert self.machine.state in (LEAVING, OUTSIDE)

    @rule(code=codes, is_current=st.booleans())
    def commit(self, code: int, is_current: bool) -> None:
        group = self.machine.group if is_current else ClassicMembership(MemberSettings("g")).group
        self.machine.commit_refused(group, broker_error(code, "OffsetCommit"), self.now)

    @rule(code=st.one_of(st.just(0), codes))
    def beside(self, code: int) -> None:
        self.machine.on_thread_heartbeat(self.machine.group, code, self.now)

    # --- the driver ------------------------------------------------------------------------------------

    @rule(wait=st.sampled_from([0.0, 0.1, 5.0]))
    def ask(self, wait: float) -> None:
        self.now += wait
        for ask in self.machine.due(self.now):
            assert ask.kind is not RequestKind.HEARTBEAT or said(ask).generation_id >= 0
            self.under_way.append(ask)
        for ask in [ask for ask in self.under_way if not self.machine.is_current(ask)]:
            self.under_way.remove(ask)
            self.late.append(ask)

    @precondition(lambda self: self.doing is None and self.machine.task is not None)
    @rule()
    def begin(self) -> None:
        self.doing = self.machine.task

    @precondition(lambda self: self.doing is not None)
    @rule(fails=st.sampled_from([False, False, False, True]), rejoin=st.sampled_from([None, None, "for more"]))
    def end(self, fails: bool, rejoin: str | None) -> None:
        task, self.doing = self.doing, None
        assert task is not None
        machine, is_wanted = self.machine, task is self.machine.task
        if fails and not isinstance(task, LosePartitions):
            machine.task_failed(task, UsageError("no"))
        elif isinstance(task, PrepareRejoin):
            # Eager: everything is given up, lost or not.
            self.owns = self.owns and not (is_wanted or task.lost)
            machine.prepared(task, PROTOCOLS)
        elif isinstance(task, Assign):
            machine.assigned(task, {})
        elif isinstance(task, ApplyAssignment):
            self.owns = self.owns or is_wanted
            machine.task_done(task, rejoin=rejoin)
        else:
            self.owns = False
            machine.task_done(task)

    @rule(steps=st.integers(1, 12))
    def go_on(self, steps: int) -> None:
        """As it mostly is: everybody does what is asked."""
        for _ in range(steps):
            if self.doing is not None:
                self.end(False, None)
            elif self.machine.task is not None:
                self.begin()
            elif self.under_way:
                ask = self.under_way.pop()
                self.machine.answered(ask, _granted(ask, 7, self.machine.protocol), self.now)
            else:
                self.ask(0.1)

    # --- the coordinator -------------------------------------------------------------------------------

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 1), join=joins, sync=syncs)
    def grant(self, which: int, join: Any, sync: Any) -> None:
        ask = self.under_way.pop(which % len(self.under_way))
        granted = {
            RequestKind.JOIN: join,
            RequestKind.SYNC: sync,
            RequestKind.HEARTBEAT: heard(),
            RequestKind.LEAVE: left(),
        }
        self.machine.answered(ask, granted[ask.kind], self.now)

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 1), code=codes)
    def refuse(self, which: int, code: int) -> None:
        ask = self.under_way.pop(which % len(self.under_way))
        self.machine.answered(ask, answer(ask.kind, code), self.now)

    @precondition(lambda self: self.under_way)
    @rule(which=st.integers(0, 1), error=losses)
    def lose(self, which: int, error: KafkaError) -> None:
        self.machine.refused(self.under_way.pop(which % len(self.under_way)), error, self.now)

    @precondition(lambda self: self.late)
    @rule(code=codes, join=joins)
    def answer_late(self, code: int, join: Any) -> None:
        ask = self.late.pop()
        before = self.machine.state, self.machine.group, self.machine.task
        self.machine.answered(ask, join if ask.kind is RequestKind.JOIN else answer(ask.kind, code), self.now)
        assert (self.machine.state, self.machine.group, self.machine.task) == before

    # --- what holds ------------------------------------------------------------------------------------

    @invariant()
    def one_flow_and_one_heartbeat_are_under_way(self) -> None:
        current = [ask.kind for ask in self.under_way if self.machine.is_current(ask)]
        assert current.count(RequestKind.HEARTBEAT) <= 1
        assert RequestKind.HEARTBEAT not in current or self.machine.state in BEATING
        assert len(current) - current.count(RequestKind.HEARTBEAT) <= 1

    @invariant()
    def there_is_always_something_that_goes_on(self) -> None:
        machine = self.machine
        if machine.state in (GroupState.PREPARING, GroupState.ASSIGNING):
            assert machine.task is not None
        elif machine.state in (GroupState.JOINING, GroupState.SYNCING, LEAVING):
            asked = any(machine.is_current(ask) and ask.kind is not RequestKind.HEARTBEAT for ask in self.under_way)
            assert asked or machine.wait(self.now) is not None
        elif machine.state is STABLE:
            assert machine.is_member
            assert machine.sends_heartbeats
        elif machine.state is FAILED:
            assert machine.error is not None

    @invariant()
    def who_is_no_member_gives_up_all(self) -> None:
        machine = self.machine
        if self.owns and not machine.is_member:
            ends = machine.task if self.doing is None or self.doing is machine.task else machine.task or self.doing
            assert isinstance(ends, LosePartitions) or (isinstance(ends, PrepareRejoin) and ends.lost)

    @invariant()
    def the_error_is_there_when_it_counts(self) -> None:
        assert (self.machine.state is FAILED) <= (self.machine.error is not None)
        assert self.machine.is_member <= (self.machine.member_id != "")

    def teardown(self) -> None:
        """With a coordinator that behaves it becomes a member, and leaves."""
        if not isinstance(self.machine.error, FencedInstanceId):
            self.machine.request_rejoin("after all")
            behave(self.machine, self.now)
            assert self.machine.state is STABLE
        self.machine.leave("closed")
        behave(self.machine, self.now + 1_000)
        assert self.machine.state is OUTSIDE
        assert (self.machine.member_id, self.machine.generation, self.machine.task) == ("", -1, None)


def behave(machine: ClassicMembership, now: float) -> None:
    """A coordinator, and a member, that do what they are asked until nothing is left to do but heartbeats."""
    generation = 10
    for ask in (machine._request, machine._heartbeat):
        if ask is not None:
            machine.refused(ask, RequestTimeout("late"), now)
    for _ in range(40):
        task = machine.task
        if isinstance(task, PrepareRejoin):
            machine.prepared(task, PROTOCOLS)
        elif isinstance(task, Assign):
            machine.assigned(task, {})
        elif task is not None:
            machine.task_done(task)
        for ask in machine.due(now):
            generation += 1
            machine.answered(ask, _granted(ask, generation, machine.protocol), now)
        now += 2.0


def _granted(ask: CoordinatorRequest, generation: int, protocol: str) -> Any:
    if ask.kind is RequestKind.JOIN and not said(ask).member_id and said(ask).group_instance_id is None:
        return joined(ErrorCode.MEMBER_ID_REQUIRED)
    if ask.kind is RequestKind.JOIN:
        return joined(generation=generation)
    return synced(protocol=protocol) if ask.kind is RequestKind.SYNC else answer(ask.kind, 0)


AnySequence.TestCase.settings = settings(
    max_examples=examples(100), stateful_step_count=40, deadline=None, derandomize=True
)
test_any_sequence = pytest.mark.timeout(120)(AnySequence.TestCase)
