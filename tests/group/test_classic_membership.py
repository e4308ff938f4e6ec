"""The membership of one member: every state and every answer, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from support.membership_answers import (
    ME,
    PROTOCOLS,
    answer,
    beating,
    doing,
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
    KafkaError,
    RequestTimeout,
    UsageError,
    WireError,
    broker_error,
)
from aiokafkawire.group.classic_membership import NEXT, ClassicMembership
from aiokafkawire.group.classic_requests import THEN, ErrorAction
from aiokafkawire.group.membership import (
    ApplyAssignment,
    Assign,
    GroupState,
    JoinedMember,
    LosePartitions,
    PrepareRejoin,
    RequestKind,
)
from aiokafkawire.types import GroupMetadata

OUTSIDE, PREPARING, JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
ASSIGNING, SYNCING, STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
LEAVING, FAILED = GroupState.LEAVING, GroupState.FAILED
UNKNOWN = 31_000
"""An error code that nobody has heard of."""


def asked_in(state: GroupState, kind: RequestKind) -> tuple[ClassicMembership, Any]:
    """A machine in this state that waits for an answer of this kind."""
    machine = machine_in(state)
    return machine, beating(machine, 100) if kind is RequestKind.HEARTBEAT else flow(machine, 100)


# --- from state to state -------------------------------------------------------------------------------------------


def test_a_leader_comes_all_the_way() -> None:
    machine = machine_in(OUTSIDE)
    assert (machine.due(0), machine.wait(0), machine.is_member) == ([], None, False)
    machine.request_rejoin("why not")
    assert doing(machine, PrepareRejoin).lost
    assert (machine.due(0), machine.is_rebalancing) == ([], True)
    machine.prepared(doing(machine, PrepareRejoin), PROTOCOLS)
    assert machine.task is None
    assert machine.wait(0) == 0
    ask = flow(machine)
    request = said(ask)
    assert [(one.name, one.metadata) for one in request.protocols] == PROTOCOLS
    assert (request.member_id, request.reason, request.rebalance_timeout_ms) == ("", "why not", 300_000)
    assert (machine.due(0), machine.wait(0)) == ([], None)
    machine.answered(ask, joined(protocol="sticky"), 1.0)
    assert isinstance(machine.task, Assign)
    assert list(machine.task.members) == [
        JoinedMember(ME, None, ME.encode()),
        JoinedMember("other-2", None, b"other-2"),
    ]
    assert (machine.task.protocol, machine.protocol, machine.confirmed_at) == ("sticky", "sticky", 1.0)
    machine.assigned(machine.task, {ME: b"mine"})
    ask = flow(machine, 1.0)
    request = said(ask)
    assert (request.generation_id, request.member_id, request.protocol_name) == (5, ME, "sticky")
    assert [(one.member_id, one.assignment) for one in request.assignments] == [(ME, b"mine")]
    machine.answered(ask, synced(protocol="sticky"), 2.0)
    assert isinstance(machine.task, ApplyAssignment)
    assert (machine.task.assignment, machine.task.generation, machine.task.leader) == (b"mine", 5, True)
    assert (machine.state, machine.rebalances, machine.group) == (STABLE, 1, GroupMetadata("g", 5, ME, None))
    machine.task_done(doing(machine, ApplyAssignment))
    assert not machine.is_rebalancing


def test_a_follower_decides_nothing() -> None:
    machine = machine_in(SYNCING, leader="other-2")
    ask = flow(machine)
    assert said(ask).assignments == []
    # Before v5 nobody says which protocol it is.
    machine.answered(ask, synced(protocol=None), 0)
    assert isinstance(machine.task, ApplyAssignment)
    assert machine.task.leader is False


def test_a_leader_that_was_away_looks_and_decides_nothing() -> None:
    machine = machine_in(JOINING, group_instance_id="i")
    machine.answered(flow(machine), joined(skip=True), 0)
    assert isinstance(machine.task, Assign)
    assert (machine.task.decided, [one.member_id for one in machine.task.members]) == (True, [ME, "other-2"])
    machine.assigned(machine.task, {})
    machine.answered(flow(machine), synced(), 0)
    assert isinstance(machine.task, ApplyAssignment)
    assert machine.task.leader


# --- every answer --------------------------------------------------------------------------------------------------

_WHERE = {
    RequestKind.JOIN: [JOINING],
    RequestKind.SYNC: [SYNCING],
    RequestKind.HEARTBEAT: [ASSIGNING, SYNCING, STABLE],
}


def after(state: GroupState, kind: RequestKind, then: ErrorAction) -> tuple[GroupState, str, int]:
    """Where an error leads to: the state, and the member's id and generation there."""
    before = ("", -1) if state is JOINING else (ME, 5)
    match then:
        case ErrorAction.AGAIN:
            return state, *before
        case ErrorAction.JOIN_WITH_ID:
            return state, "given-3", -1
        case ErrorAction.REJOIN:
            return (PREPARING if state is STABLE or kind is RequestKind.SYNC else state), *before
        case ErrorAction.LOSE_GENERATION:
            return PREPARING, before[0], -1
        case ErrorAction.LOSE:
            return PREPARING, "", -1
    return FAILED, "", -1


@pytest.mark.parametrize(
    ("state", "kind", "code"),
    [
        (state, kind, code)
        for kind, states in _WHERE.items()
        for state in states
        for code in sorted({code for _, code in THEN} | {ErrorCode.FENCED_INSTANCE_ID, UNKNOWN})
    ],
)
def test_every_error_leads_where_the_table_says(state: GroupState, kind: RequestKind, code: int) -> None:
    machine, ask = asked_in(state, kind)
    then = THEN.get((kind, code), ErrorAction.FAIL)
    machine.answered(ask, answer(kind, code), 100)
    assert (machine.state, machine.member_id, machine.generation) == after(state, kind, then)
    assert machine.state is state or machine.state in NEXT[state]
    if machine.state is PREPARING:
        assert isinstance(machine.task, PrepareRejoin)
        assert machine.task.lost is (then is not ErrorAction.REJOIN)
    elif then is ErrorAction.FAIL:
        assert isinstance(machine.task, LosePartitions)
        assert type(machine.error) is type(broker_error(code, ""))
        assert f"{kind.value} of group 'g'" in str(machine.error)
    elif kind is RequestKind.HEARTBEAT:
        assert machine.is_member
    else:
        assert machine.due(100) != []


@pytest.mark.parametrize("state", [PREPARING, STABLE])
@pytest.mark.parametrize("code", [code for kind, code in THEN if kind is RequestKind.COMMIT])
def test_a_commit_that_is_refused_tells_of_the_end_as_well(state: GroupState, code: int) -> None:
    machine = stable_machine()
    if state is PREPARING:
        machine.request_rejoin("again")
    task = machine.task
    machine.commit_refused(machine.group, broker_error(code, "OffsetCommit"), 1.0)
    then = THEN[RequestKind.COMMIT, code]
    assert (machine.state, machine.member_id, machine.generation) == (
        PREPARING,
        "" if then is ErrorAction.LOSE else ME,
        5 if then is ErrorAction.REJOIN else -1,
    )
    assert isinstance(machine.task, PrepareRejoin)
    assert machine.task.lost is (then is not ErrorAction.REJOIN)
    # A member that prepares already for the next generation goes on with that.
    assert (machine.task is task) is (state is PREPARING and then is ErrorAction.REJOIN)


@pytest.mark.parametrize("state", [JOINING, ASSIGNING, SYNCING, LEAVING, FAILED, OUTSIDE])
def test_a_commit_that_is_refused_elsewhere_says_nothing_new(state: GroupState) -> None:
    machine = machine_in(state)
    machine.commit_refused(machine.group, broker_error(ErrorCode.UNKNOWN_MEMBER_ID, ""), 1.0)
    assert machine.state is state


def test_a_commit_of_another_generation_or_with_another_error_says_nothing() -> None:
    machine = stable_machine()
    lost = broker_error(ErrorCode.UNKNOWN_MEMBER_ID, "")
    machine.commit_refused(GroupMetadata("g", 4, ME), lost, 1.0)
    machine.commit_refused(machine.group, broker_error(ErrorCode.OFFSET_METADATA_TOO_LARGE, ""), 1.0)
    assert machine.state is STABLE


@pytest.mark.parametrize(
    ("code", "reached"),
    [
        (0, STABLE),
        (ErrorCode.REBALANCE_IN_PROGRESS, PREPARING),
        (ErrorCode.UNKNOWN_MEMBER_ID, PREPARING),
        (ErrorCode.FENCED_INSTANCE_ID, FAILED),
    ],
)
def test_a_heartbeat_of_another_counts_as_its_own(code: int, reached: GroupState) -> None:
    machine = stable_machine()
    machine.on_thread_heartbeat(GroupMetadata("g", 4, ME), code, 7.0)
    assert (machine.state, machine.confirmed_at) == (STABLE, 0.0)
    machine.on_thread_heartbeat(machine.group, code, 7.0)
    assert machine.state is reached
    if code == 0:
        assert (machine.confirmed_at, machine.wait(7.0)) == (7.0, 3.0)


def test_a_heartbeat_of_another_says_nothing_to_who_sends_none() -> None:
    machine = machine_in(LEAVING)
    machine.on_thread_heartbeat(machine.group, ErrorCode.UNKNOWN_MEMBER_ID, 7.0)
    assert machine.state is LEAVING


# --- no answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "kind", "reached"),
    [
        (JOINING, RequestKind.JOIN, JOINING),
        (SYNCING, RequestKind.SYNC, PREPARING),
        (STABLE, RequestKind.HEARTBEAT, STABLE),
        (LEAVING, RequestKind.LEAVE, OUTSIDE),
    ],
)
def test_a_coordinator_that_is_silent_takes_nothing_away(
    state: GroupState, kind: RequestKind, reached: GroupState
) -> None:
    machine, ask = asked_in(state, kind)
    machine.refused(ask, RequestTimeout("silent"), 101)
    assert machine.state is reached
    if reached is not OUTSIDE:
        assert machine.is_member is (state is not JOINING)
        # A heartbeat that was not answered goes out again at once.
        assert [ask.kind for ask in machine.due(101)] == ([] if reached is PREPARING else [kind])
    if reached is PREPARING:
        assert isinstance(machine.task, PrepareRejoin)
        assert machine.task.lost is False


@pytest.mark.parametrize(
    "error",
    [broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "FindCoordinator"), WireError("nonsense"), UsageError("old")],
)
@pytest.mark.parametrize(
    ("state", "kind"), [(JOINING, RequestKind.JOIN), (SYNCING, RequestKind.SYNC), (STABLE, RequestKind.HEARTBEAT)]
)
def test_what_no_retry_mends_is_for_the_user(state: GroupState, kind: RequestKind, error: KafkaError) -> None:
    machine, ask = asked_in(state, kind)
    machine.refused(ask, error, 101)
    assert (machine.state, machine.error, machine.is_member) == (FAILED, error, False)
    assert isinstance(machine.task, LosePartitions)


@pytest.mark.parametrize("outcome", [left(), left(ErrorCode.UNKNOWN_MEMBER_ID), left(UNKNOWN), WireError("nonsense")])
def test_whoever_leaves_has_left_whatever_comes_of_it(outcome: Any) -> None:
    machine, ask = asked_in(LEAVING, RequestKind.LEAVE)
    (newer, _), (older, _) = ask.forms
    assert [(one.member_id, one.reason) for one in newer.members] == [(ME, "enough")]
    assert older.member_id == ME
    if isinstance(outcome, KafkaError):
        machine.refused(ask, outcome, 1)
    else:
        machine.answered(ask, outcome, 1)
    assert (machine.state, machine.member_id, machine.generation, machine.due(1)) == (OUTSIDE, "", -1, [])


# --- late answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [JOINING, SYNCING])
def test_an_answer_that_comes_too_late_counts_no_more(state: GroupState) -> None:
    machine, ask = asked_in(state, RequestKind.JOIN)
    machine.leave("enough")
    reached = machine.state
    machine.answered(ask, joined() if state is JOINING else synced(), 101)
    machine.refused(ask, WireError("late"), 101)
    assert (machine.state, machine.task, machine.error) == (reached, None, None)


def test_a_heartbeat_that_is_answered_after_the_join_was_sent_counts_no_more() -> None:
    machine = stable_machine()
    ask = beating(machine, 5)
    machine.request_rejoin("again")
    assert machine.is_current(ask)
    assert isinstance(machine.task, PrepareRejoin)
    machine.prepared(machine.task, PROTOCOLS)
    assert not machine.is_current(ask)
    machine.answered(ask, heard(ErrorCode.UNKNOWN_MEMBER_ID), 1)
    assert (machine.state, machine.member_id) == (JOINING, ME)


@pytest.mark.parametrize("state", [PREPARING, ASSIGNING, STABLE])
def test_a_task_that_is_done_too_late_changes_nothing(state: GroupState) -> None:
    machine = machine_in(state)
    task = machine.task
    assert task is not None
    machine.leave("enough")
    reached = machine.state
    machine.prepared(task, PROTOCOLS)
    machine.assigned(task, {})
    machine.task_done(task, rejoin="for more")
    machine.task_failed(task, UsageError("no"))
    assert (machine.state, machine.task) == (reached, None)


def test_the_generation_that_assigned_the_partitions_lasts_until_the_next_or_the_end() -> None:
    machine = machine_in(SYNCING)
    assert (machine.generation, machine.assigned_generation) == (5, -1)
    machine.answered(flow(machine), synced(), 0)
    assert machine.assigned_generation == 5
    machine.task_done(doing(machine, ApplyAssignment))
    machine.request_rejoin("more")
    machine.prepared(doing(machine, PrepareRejoin), PROTOCOLS)
    machine.answered(flow(machine), joined(generation=6, leader="other-2"), 0)
    machine.answered(flow(machine), synced(ErrorCode.REBALANCE_IN_PROGRESS), 0)
    assert (machine.generation, machine.assigned_generation) == (6, 5)
    machine.answered(beating(machine, 10), heard(ErrorCode.UNKNOWN_MEMBER_ID), 10)
    assert (machine.generation, machine.assigned_generation) == (-1, -1)
