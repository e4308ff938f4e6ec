"""The membership of one member: what its user wants, and what it does itself."""

from __future__ import annotations

import pytest
from support.membership_answers import (
    ME,
    PROTOCOLS,
    beating,
    flow,
    heard,
    joined,
    left,
    machine_in,
    said,
    stable_machine,
    synced,
)

from aiokafkawire.errors import (
    ErrorCode,
    FencedInstanceId,
    GroupAuthorizationFailed,
    RequestTimeout,
    UnknownMemberId,
    UsageError,
)
from aiokafkawire.group.classic_membership import NEXT
from aiokafkawire.group.membership import ApplyAssignment, GroupState, LosePartitions, PrepareRejoin, RequestKind

OUTSIDE, PREPARING, JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
ASSIGNING, SYNCING, STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
LEAVING, FAILED = GroupState.LEAVING, GroupState.FAILED


# --- the user ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "reached"),
    [(state, PREPARING if state in (OUTSIDE, STABLE, FAILED) else state) for state in NEXT],
)
def test_wanting_joins_at_once_or_later(state: GroupState, reached: GroupState) -> None:
    machine = machine_in(state)
    machine.request_rejoin("for other topics")
    assert machine.state is reached
    if reached is PREPARING and state is not PREPARING:
        assert isinstance(machine.task, PrepareRejoin)
        assert machine.task.lost is (state is not STABLE)


@pytest.mark.parametrize("state", [JOINING, ASSIGNING, SYNCING])
def test_who_wants_while_a_rebalance_goes_on_joins_again_after_it(state: GroupState) -> None:
    machine = machine_in(state)
    machine.request_rejoin("for other topics")
    if state is JOINING:
        machine.answered(flow(machine), joined(leader="other-2"), 0)
    elif state is ASSIGNING:
        assert machine.task is not None
        machine.assigned(machine.task, {})
    machine.answered(flow(machine), synced(), 0)
    assert isinstance(machine.task, ApplyAssignment)
    assert machine.state is STABLE
    machine.task_done(machine.task)
    assert machine.state is PREPARING
    assert isinstance(machine.task, PrepareRejoin)
    machine.prepared(machine.task, PROTOCOLS)
    assert said(flow(machine)).reason == "for other topics"


def test_what_was_wanted_while_it_prepared_is_in_what_it_joins_with() -> None:
    machine = machine_in(PREPARING)
    machine.request_rejoin("for other topics")
    task = machine.task
    assert task is not None
    machine.prepared(task, PROTOCOLS)
    machine.answered(flow(machine), joined(leader="other-2"), 0)
    machine.answered(flow(machine), synced(), 0)
    assert machine.task is not None
    machine.task_done(machine.task)
    assert machine.state is STABLE


def test_what_is_taken_may_call_for_another_rebalance() -> None:
    machine = machine_in(STABLE)
    assert machine.task is not None
    machine.task_done(machine.task, rejoin="partitions were given up")
    assert isinstance(machine.task, PrepareRejoin)
    assert (machine.state, machine.task.lost) == (PREPARING, False)


@pytest.mark.parametrize("state", list(NEXT))
@pytest.mark.parametrize("instance", [None, "i"])
def test_leaving_ends_outside_and_a_static_member_tells_nobody(state: GroupState, instance: str | None) -> None:
    machine = machine_in(LEAVING if state is LEAVING and instance is None else state, group_instance_id=None)
    if instance is not None:
        if state is LEAVING:
            return
        machine = machine_in(state, group_instance_id=instance)
    is_known = machine.member_id != ""
    machine.leave("enough")
    assert machine.task is None
    if instance is None and is_known:
        assert machine.state is LEAVING
        ask = flow(machine, 100)
        assert ask.kind is RequestKind.LEAVE
        machine.answered(ask, left(), 100)
    assert (machine.state, machine.member_id, machine.generation, machine.due(200)) == (OUTSIDE, "", -1, [])
    assert machine.wait(200) is None


@pytest.mark.parametrize("state", [PREPARING, JOINING, ASSIGNING, SYNCING, STABLE])
@pytest.mark.parametrize("instance", [None, "i"])
def test_who_is_expelled_gives_everything_up_and_may_come_back(state: GroupState, instance: str | None) -> None:
    machine = machine_in(state, group_instance_id=instance)
    machine.poll_timeout("nothing was asked for")
    assert isinstance(machine.task, LosePartitions)
    assert machine.task.reason == "nothing was asked for"
    if machine.state is LEAVING:
        machine.answered(flow(machine, 100), left(), 100)
    assert machine.state is OUTSIDE
    machine.request_rejoin("asked for again")
    assert isinstance(machine.task, PrepareRejoin)
    assert (machine.task.lost, machine.member_id) == (True, "")


@pytest.mark.parametrize("first", ["left", "given up"])
def test_who_comes_back_before_it_has_left_joins_after_that(first: str) -> None:
    machine = stable_machine()
    machine.poll_timeout("nothing was asked for")
    ask, task = flow(machine, 100), machine.task
    assert task is not None
    machine.request_rejoin("asked for again")
    assert (machine.state, machine.task) == (LEAVING, task)
    if first == "left":
        machine.answered(ask, left(), 100)
        assert (machine.state, machine.task) == (OUTSIDE, task)
        machine.task_done(task)
    else:
        machine.task_done(task)
        assert (machine.state, machine.task) == (LEAVING, None)
        machine.refused(ask, RequestTimeout("silent"), 100)
    assert machine.state is PREPARING
    # Who closes meanwhile is not brought back.
    machine = stable_machine()
    machine.poll_timeout("nothing was asked for")
    ask = flow(machine, 100)
    machine.request_rejoin("asked for again")
    machine.leave("closed")
    machine.answered(ask, left(), 100)
    assert machine.state is OUTSIDE


def test_a_static_member_says_who_it_is_everywhere() -> None:
    machine = machine_in(JOINING, group_instance_id="i")
    asks = [flow(machine)]
    machine.answered(asks[0], joined(), 0)
    assert machine.task is not None
    machine.assigned(machine.task, {})
    asks += machine.due(0)
    assert {ask.kind for ask in asks} == {RequestKind.JOIN, RequestKind.SYNC, RequestKind.HEARTBEAT}
    assert {said(ask).group_instance_id for ask in asks} == {"i"}
    # Brokers that know no static members are not asked.
    assert [ask.forms[0][1].first for ask in asks] == [5, 3, 3]
    assert machine.group.group_instance_id == "i"


def test_who_is_fenced_stays_so() -> None:
    machine = stable_machine(group_instance_id="i")
    machine.answered(beating(machine, 5), heard(ErrorCode.FENCED_INSTANCE_ID), 5)
    assert isinstance(machine.error, FencedInstanceId)
    machine.request_rejoin("asked for again")
    assert (machine.state, type(machine.error)) == (FAILED, FencedInstanceId)


def test_who_was_refused_may_try_again() -> None:
    machine = stable_machine()
    machine.answered(beating(machine, 5), heard(ErrorCode.GROUP_AUTHORIZATION_FAILED), 5)
    refused: list[object] = [machine.error]
    assert isinstance(refused[0], GroupAuthorizationFailed)
    machine.request_rejoin("asked for again")
    refused.append(machine.error)
    assert (machine.state, refused[1]) == (PREPARING, None)


@pytest.mark.parametrize("state", [PREPARING, ASSIGNING, STABLE])
def test_a_task_that_fails_is_for_the_user_and_the_coordinator_still_knows_the_member(state: GroupState) -> None:
    machine = stable_machine()
    machine.request_rejoin("again")
    if state is not PREPARING:
        machine = machine_in(state)
    assert machine.task is not None
    machine.task_failed(machine.task, UsageError("no"))
    assert (machine.state, str(machine.error), machine.is_member) == (FAILED, "no", False)
    assert isinstance(machine.task, LosePartitions)
    machine.task_done(machine.task)
    assert (machine.state, machine.member_id, machine.due(100)) == (FAILED, ME, [])
    # It leaves as the one that it was, or joins again as that.
    machine.leave("closed")
    assert said(flow(machine, 100)).members[0].member_id == ME


def test_reasons_are_as_long_as_the_wire_allows() -> None:
    machine = machine_in(OUTSIDE)
    machine.request_rejoin("x" * 300)
    assert machine.task is not None
    machine.prepared(machine.task, PROTOCOLS)
    assert said(flow(machine)).reason == "x" * 255
    machine = stable_machine()
    machine.leave("x" * 300)
    assert said(flow(machine, 100)).members[0].reason == "x" * 255


def test_who_lost_its_membership_is_still_told_apart_by_it() -> None:
    machine = machine_in(GroupState.STABLE)
    was = machine.group
    machine.commit_refused(was, UnknownMemberId("gone"), 1)
    assert machine.group.generation_id == -1
    assert machine.last_group == was
