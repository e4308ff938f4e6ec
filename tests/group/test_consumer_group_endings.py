"""The member of a consumer group (KIP-848): leaves, refusals, commits and the heartbeats of the thread."""

from __future__ import annotations

import pytest
from support.consumer_group_machines import (
    FULL,
    INTERVAL,
    MEMBER,
    TOPIC,
    apply_assignment,
    confirm,
    confirmed,
    current_task,
    failed,
    given_fields,
    machine_in,
    message_of,
    next_heartbeat,
    next_request,
    partitions_in,
    stable_machine,
)

from aiokafkawire.errors import (
    ErrorCode,
    FencedInstanceId,
    KafkaError,
    RequestTimeout,
    UnreleasedInstanceId,
    UnsupportedVersion,
    UsageError,
    WireError,
    broker_error,
)
from aiokafkawire.group.consumer_group_requests import THEN, HeartbeatErrorAction, ServerSubscription
from aiokafkawire.group.membership import GroupState, LosePartitions, PrepareRejoin, Reconcile, RequestKind
from aiokafkawire.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from aiokafkawire.types import GroupMetadata

OUTSIDE, PREPARING, ENTERING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.ENTERING
STABLE, LEAVING, FAILED = GroupState.STABLE, GroupState.LEAVING, GroupState.FAILED
STATES = (OUTSIDE, PREPARING, ENTERING, STABLE, LEAVING, FAILED)
ONE = {TOPIC: [0, 1]}
UNKNOWN = 31_000
"""An error code that no release has."""
ENDS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


# --- members that the coordinator removes -----------------------------------------------------------------------------


@pytest.mark.parametrize("code", ENDS)
def test_a_member_that_is_removed_by_its_first_heartbeat_backs_off_before_it_joins_again(code: ErrorCode) -> None:
    """A broker that returned a wrong epoch would let the member join and be removed thousands of times a second."""
    machine = machine_in(ENTERING, retry_backoff=0.5)
    confirm(machine, 2**31 - 1, ONE)
    apply_assignment(machine)
    machine.answered(next_request(machine, 1.0), failed(code), 1.0)
    machine.prepared(current_task(machine, PrepareRejoin))
    assert (machine.state, machine.due(1.4), machine.wait(1.0)) == (ENTERING, [], 0.5)
    assert next_heartbeat(machine, 1.5).member_epoch == 0


@pytest.mark.parametrize("code", ENDS)
def test_a_member_that_was_accepted_joins_again_at_once(code: ErrorCode) -> None:
    machine = stable_machine(retry_backoff=0.5)
    machine.answered(next_request(machine, INTERVAL), failed(code), INTERVAL)
    machine.prepared(current_task(machine, PrepareRejoin))
    assert next_heartbeat(machine, INTERVAL).member_epoch == 0


# --- leaving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "stays", "epoch"),
    [(None, None, -1), (None, False, -1), (None, True, None), ("i", None, -2), ("i", True, -2), ("i", False, -1)],
)
@pytest.mark.parametrize("state", [STABLE, ENTERING])
def test_a_member_leaves_with_the_epoch_that_says_whether_it_stays(
    state: GroupState, instance: str | None, stays: bool | None, epoch: int | None
) -> None:
    machine = machine_in(state, group_instance_id=instance)
    # A coordinator that has the join in flight makes the client a member.
    join = next_request(machine, INTERVAL)
    machine.leave("enough", stays=stays)
    assert not machine.is_current(join)
    if epoch is None:
        assert (machine.state, machine.due(INTERVAL), machine.is_member) == (OUTSIDE, [], False)
        return
    assert (machine.state, machine.reason, machine.sends_heartbeats) == (LEAVING, "enough", False)
    request = next_request(machine, INTERVAL)
    message = message_of(request)
    assert (request.kind, message.member_epoch, message.member_id) == (RequestKind.LEAVE, epoch, MEMBER)
    assert (message.instance_id, given_fields(message) - {"instance_id"}) == (instance, set())
    machine.answered(join, confirmed(5, ONE), INTERVAL)
    assert machine.state is LEAVING
    machine.answered(request, confirmed(epoch), INTERVAL)
    assert (machine.state, machine.task, machine.epoch, machine.owned) == (OUTSIDE, None, 0, {})
    assert (machine.due(100), machine.wait(100)) == ([], None)


@pytest.mark.parametrize("state", STATES)
def test_leaving_in_every_state(state: GroupState) -> None:
    machine = machine_in(state)
    machine.leave("enough")
    assert machine.state is (LEAVING if state in (STABLE, LEAVING) else OUTSIDE)
    assert machine.task is None
    if state is LEAVING:
        machine.leave("enough", stays=True)
    if machine.state is LEAVING:
        assert next_heartbeat(machine, 200).member_epoch == -1


@pytest.mark.parametrize(
    "error", [RequestTimeout("late"), UsageError("no"), broker_error(ErrorCode.UNKNOWN_MEMBER_ID, "")]
)
def test_a_leave_that_is_refused_is_one(error: KafkaError) -> None:
    machine = machine_in(LEAVING)
    machine.refused(next_request(machine), error, 0)
    assert (machine.state, machine.error, machine.epoch) == (OUTSIDE, None, 0)
    machine = machine_in(LEAVING)
    machine.answered(next_request(machine), failed(ErrorCode.UNKNOWN_MEMBER_ID), 0)
    assert (machine.state, machine.error, machine.epoch) == (OUTSIDE, None, 0)


@pytest.mark.parametrize("state", STATES)
def test_who_does_not_poll_loses_all(state: GroupState) -> None:
    machine = machine_in(state)
    machine.poll_timeout("no poll")
    task = current_task(machine, LosePartitions)
    assert (task.reason, machine.state) == ("no poll", LEAVING if state in (STABLE, LEAVING) else OUTSIDE)
    if state is STABLE:
        assert (next_heartbeat(machine).member_epoch, machine.reason) == (-1, "no poll")


@pytest.mark.parametrize("lost_first", [False, True])
def test_who_polls_again_rejoins_after_the_leave_and_the_loss(lost_first: bool) -> None:
    machine = stable_machine()
    machine.poll_timeout("no poll")
    machine.request_rejoin("poll() was called again")
    task, leave = current_task(machine, LosePartitions), next_request(machine)
    if lost_first:
        machine.task_done(task)
        assert (machine.state, machine.task) == (LEAVING, None)
    machine.answered(leave, confirmed(-1), 0)
    if not lost_first:
        assert (machine.state, machine.task) == (OUTSIDE, task)
        machine.task_done(task)
    again = current_task(machine, PrepareRejoin)
    assert (machine.state, machine.reason, again.lost) == (PREPARING, "poll() was called again", False)
    machine.prepared(again)
    message = next_heartbeat(machine)
    assert (message.member_epoch, given_fields(message)) == (0, FULL)


def test_a_rejoin_while_leaving_is_forgotten_with_the_next_leave() -> None:
    machine = machine_in(LEAVING)
    machine.request_rejoin("other topics")
    machine.leave("enough")
    machine.answered(next_request(machine), confirmed(-1), 0)
    assert (machine.state, machine.task) == (OUTSIDE, None)


@pytest.mark.parametrize("state", STATES)
def test_a_rejoin_in_every_state(state: GroupState) -> None:
    machine = machine_in(state)
    before = machine.task
    machine.request_rejoin("other topics")
    assert machine.state is (PREPARING if state in (OUTSIDE, PREPARING, FAILED) else state)
    if state in (OUTSIDE, FAILED):
        # The partitions of a member that was refused are lost first.
        assert (current_task(machine, PrepareRejoin).lost, machine.error) == (state is FAILED, None)
    else:
        assert machine.task is before


def test_a_listener_that_leaves_ends_the_reconciliation() -> None:
    machine = machine_in(ENTERING)
    confirm(machine, 5, ONE)
    task = current_task(machine, Reconcile)
    machine.leave("enough")
    assert machine.task is None
    machine.reconciled(task, ONE)
    machine.answered(next_request(machine), confirmed(-1), 0)
    machine.reconciled(task, ONE)
    assert (machine.owned, machine.state) == ({}, OUTSIDE)


def test_a_static_member_releases_its_own_last_membership_or_is_refused() -> None:
    for answer in (confirmed(-2), failed(ErrorCode.FENCED_INSTANCE_ID, "another has it")):
        machine = machine_in(ENTERING, group_instance_id="i")
        machine.answered(next_request(machine), failed(ErrorCode.UNRELEASED_INSTANCE_ID, "in use"), 0)
        release = next_request(machine)
        assert (release.kind, message_of(release).member_epoch) == (RequestKind.LEAVE, -2)
        machine.answered(release, answer, 0)
        if answer.error_code:
            assert (machine.state, type(machine.error)) == (FAILED, UnreleasedInstanceId)
            assert "group_instance_id 'i' is in use by another member, or the previous process has crashed" in str(
                machine.error
            )
            assert "in use)" in str(machine.error)
        else:
            again = next_request(machine)
            assert message_of(again).member_epoch == 0
            machine.answered(again, confirmed(5, ONE), 0)
            assert machine.state is STABLE


# --- every error of a heartbeat ------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted({*ErrorCode, UNKNOWN} - {ErrorCode.NONE}))
@pytest.mark.parametrize("state", [ENTERING, STABLE])
@pytest.mark.parametrize("as_response", [False, True])
def test_every_error_of_a_heartbeat(state: GroupState, code: int, as_response: bool) -> None:
    machine = machine_in(state)
    request = next_request(machine, 10)
    error = broker_error(code, "")
    if as_response:
        machine.answered(request, failed(code, "why it is so"), 10)
    else:
        machine.refused(request, error, 10)
    if state is STABLE and code in (*ENDS, ErrorCode.GROUP_ID_NOT_FOUND):
        assert (machine.state, current_task(machine, PrepareRejoin).lost) == (PREPARING, True)
    elif code in ENDS:
        assert (machine.state, machine.error, machine.task) == (state, None, None)
    elif state is ENTERING and code == ErrorCode.UNRELEASED_INSTANCE_ID:
        assert (machine.state, message_of(next_request(machine, 1000)).member_epoch) == (ENTERING, -2)
    else:
        assert (machine.state, machine.is_member, machine.due(1000)) == (FAILED, False, [])
        assert current_task(machine, LosePartitions).reason == str(machine.error)
        assert isinstance(machine.error, UnsupportedVersion if code == ErrorCode.UNSUPPORTED_VERSION else type(error))
        assert ("why it is so" in str(machine.error)) is as_response


def test_the_table_of_errors_is_about_heartbeats_and_commits() -> None:
    assert {code for kind, code in THEN if kind is RequestKind.HEARTBEAT} == set(ENDS)
    commits = {code: action for (kind, code), action in THEN.items() if kind is RequestKind.COMMIT}
    assert set(commits.values()) == {HeartbeatErrorAction.REFRESH}
    assert {ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID} <= set(commits)


@pytest.mark.parametrize("error", [UsageError("no"), WireError("no")])
def test_other_errors_end_the_membership(error: KafkaError) -> None:
    machine = stable_machine()
    machine.refused(next_request(machine, 10), error, 10)
    assert (machine.state, machine.error) == (FAILED, error)


@pytest.mark.parametrize("epoch", [0, -1, -2])
def test_an_epoch_that_is_none_ends_the_membership(epoch: int) -> None:
    machine = machine_in(ENTERING)
    confirm(machine, epoch)
    assert (machine.state, type(machine.error)) == (FAILED, WireError)
    assert f"returned member epoch {epoch}, expected a positive one" in str(machine.error)


@pytest.mark.parametrize(
    ("pattern", "error", "advice"),
    [
        (None, UnsupportedVersion("no"), "group.version=1 (KIP-848); use group_protocol='auto' or 'classic'"),
        ("a.*", UnsupportedVersion("no"), "a SubscriptionPattern needs brokers of Kafka 4.0 or later"),
        ("a.*", broker_error(ErrorCode.UNSUPPORTED_VERSION, "no"), "use group_protocol='auto' or 'classic'"),
    ],
)
def test_an_old_broker_is_named_with_advice(pattern: str | None, error: KafkaError, advice: str) -> None:
    machine = machine_in(ENTERING)
    machine.subscribe(ServerSubscription(("a",), pattern))
    machine.refused(next_request(machine), error, 0)
    assert type(machine.error) is UnsupportedVersion
    assert str(machine.error).startswith("cannot join group 'g', ")
    assert advice in str(machine.error)
    assert "no" in str(machine.error).rpartition(":")[2]


def test_a_refused_member_rejoins_when_its_user_asks_for_it_after_a_back_off() -> None:
    machine = machine_in(FAILED, retry_backoff=0.5)
    machine.task_done(current_task(machine, LosePartitions))
    assert (machine.state, machine.task) == (FAILED, None)
    machine.back_off(200)
    machine.request_rejoin("poll() was called again")
    machine.prepared(current_task(machine, PrepareRejoin))
    assert (machine.due(200.4), machine.wait(200.25)) == ([], 0.25)
    machine.back_off(200, 3)
    assert machine.wait(201) == 2
    assert next_heartbeat(machine, 203).member_epoch == 0


def test_a_back_off_delays_heartbeats() -> None:
    machine = machine_in(STABLE, retry_backoff=7)
    machine.back_off(0)
    assert (machine.due(6), machine.wait(6)) == ([], 1)
    assert next_heartbeat(machine, 7)


def test_the_other_member_with_the_instance_id_wins() -> None:
    machine = machine_in(STABLE, group_instance_id="i")
    request = next_request(machine, 10)
    assert message_of(request).instance_id == "i"
    machine.answered(request, failed(ErrorCode.FENCED_INSTANCE_ID), 10)
    machine.request_rejoin("poll() was called again")
    assert (machine.state, type(machine.error)) == (FAILED, FencedInstanceId)


@pytest.mark.parametrize("state", [PREPARING, STABLE])
def test_a_task_that_fails_ends_the_membership(state: GroupState) -> None:
    machine = machine_in(state)
    if state is STABLE:
        confirm(machine, 5, ONE, now=10)
    task, error = machine.task, UsageError("no")
    assert task is not None
    machine.task_failed(Reconcile(5, ONE), error)
    assert machine.state is state
    machine.task_failed(task, error)
    assert (machine.state, machine.error, machine.is_member) == (FAILED, error, False)


# --- commits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [code for kind, code in THEN if kind is RequestKind.COMMIT])
def test_a_refused_commit_causes_a_heartbeat_and_doubts_until_the_response(code: int) -> None:
    machine = stable_machine()
    machine.commit_refused(machine.group, broker_error(code, ""), 1)
    assert (machine.state, machine.is_rebalancing, machine.wait(1)) == (STABLE, True, 0)
    request = next_request(machine, 1)
    assert machine.is_rebalancing
    machine.answered(request, confirmed(7), 1)
    assert (machine.is_rebalancing, machine.epoch, machine.wait(1)) == (False, 7, INTERVAL)


def test_a_commit_that_is_refused_during_a_heartbeat_causes_another_one() -> None:
    machine = stable_machine()
    request = next_request(machine, 10)
    machine.commit_refused(machine.group, broker_error(ErrorCode.STALE_MEMBER_EPOCH, ""), 11)
    machine.answered(request, confirmed(5), 12)
    assert machine.wait(12) == 0


def test_doubts_end_with_the_membership() -> None:
    machine = stable_machine()
    machine.commit_refused(machine.group, broker_error(ErrorCode.UNKNOWN_MEMBER_ID, ""), 1)
    machine.answered(next_request(machine, 1), failed(ErrorCode.UNKNOWN_MEMBER_ID), 1)
    machine.prepared(current_task(machine, PrepareRejoin))
    assert machine.is_rebalancing
    confirm(machine, 8, now=1)
    assert not machine.is_rebalancing
    machine.commit_refused(machine.group, broker_error(ErrorCode.UNKNOWN_MEMBER_ID, ""), 2)
    machine.leave("enough")
    machine.answered(next_request(machine, 2), confirmed(-1), 2)
    assert not machine.is_rebalancing


@pytest.mark.parametrize("state", STATES)
def test_other_refused_commits_change_nothing(state: GroupState) -> None:
    machine = machine_in(state)
    before = (state, machine.is_rebalancing, machine.wait(1))
    stale = broker_error(ErrorCode.STALE_MEMBER_EPOCH, "")
    machine.commit_refused(GroupMetadata("g", 5, "other", None), stale, 1)
    machine.commit_refused(machine.group, broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""), 1)
    if state is not STABLE:
        machine.commit_refused(GroupMetadata("g", 5, MEMBER, None), stale, 1)
    assert (machine.state, machine.is_rebalancing, machine.wait(1)) == before


# --- the heartbeats of the thread ----------------------------------------------------------------------------------


def test_the_thread_sends_all_fields() -> None:
    machine = stable_machine()
    message = machine.thread_heartbeat()
    assert isinstance(message, ConsumerGroupHeartbeatRequest)
    assert (given_fields(message), message.member_epoch, partitions_in(message)) == (FULL, 5, ONE)
    assert machine.wait(0) == INTERVAL


def test_after_a_heartbeat_of_the_thread_the_next_one_has_all_fields_and_the_newer_epoch() -> None:
    machine = stable_machine()
    machine.on_thread_heartbeat(machine.group, 0, 4.0, epoch=7)
    assert (machine.epoch, machine.confirmed_at, machine.wait(5)) == (7, 4.0, 0)
    assert machine.last_group == machine.group
    message = confirm(machine, 7, {TOPIC: [1]}, now=5)
    assert (given_fields(message), message.member_epoch) == (FULL, 7)
    apply_assignment(machine)
    assert given_fields(confirm(machine, 8, now=5)) == {"topic_partitions"}


@pytest.mark.parametrize("epoch", [None, 3, 5])
def test_an_older_epoch_from_the_thread_is_not_taken(epoch: int | None) -> None:
    machine = stable_machine()
    machine.on_thread_heartbeat(machine.group, 0, -1.0, epoch=epoch)
    assert (machine.epoch, machine.confirmed_at) == (5, 0.0)


def test_an_older_response_does_not_take_the_epoch_of_the_thread_back() -> None:
    machine = stable_machine()
    request = next_request(machine, 10)
    machine.on_thread_heartbeat(machine.group, 0, 12, epoch=7)
    machine.answered(request, confirmed(5, {TOPIC: [1]}), 13)
    assert (machine.epoch, machine.task, machine.is_current(request)) == (7, None, False)
    message = next_heartbeat(machine, 13)
    assert (given_fields(message), message.member_epoch) == (FULL, 7)


def test_a_newer_epoch_of_the_thread_stops_the_assignment_of_an_older_response() -> None:
    machine = stable_machine()
    machine.answered(next_request(machine, 10), confirmed(6, {TOPIC: [0, 1, 2]}), 13)
    outdated = current_task(machine, Reconcile)
    machine.on_thread_heartbeat(machine.group, 0, 12, epoch=6)
    assert machine.task is outdated
    machine.on_thread_heartbeat(machine.group, 0, 12, epoch=7)
    assert machine.task is None
    machine.reconciled(outdated, {TOPIC: [0, 1, 2]})  # it was too late to stop
    message = confirm(machine, 7, {TOPIC: [0]}, now=13)
    assert (given_fields(message), message.member_epoch, partitions_in(message)) == (FULL, 7, {TOPIC: [0, 1, 2]})
    assert current_task(machine, Reconcile).assignment == {TOPIC: [0]}


@pytest.mark.parametrize("state", [OUTSIDE, PREPARING, ENTERING, LEAVING, FAILED])
def test_a_heartbeat_of_the_thread_counts_for_a_member_only(state: GroupState) -> None:
    machine = machine_in(state)
    before = (state, machine.epoch, machine.confirmed_at, machine.task)
    machine.on_thread_heartbeat(GroupMetadata("g", 5, MEMBER, None), ErrorCode.UNKNOWN_MEMBER_ID, 99, epoch=9)
    machine.on_thread_heartbeat(GroupMetadata("g", 5, "other", None), 0, 99, epoch=9)
    assert (machine.state, machine.epoch, machine.confirmed_at, machine.task) == before


def test_a_heartbeat_of_the_thread_for_another_member_does_not_count() -> None:
    machine = stable_machine()
    machine.on_thread_heartbeat(GroupMetadata("g", 5, "other", None), ErrorCode.UNKNOWN_MEMBER_ID, 1, epoch=9)
    assert (machine.state, machine.epoch, machine.wait(1)) == (STABLE, 5, INTERVAL - 1)


def test_an_error_of_the_thread_ends_the_membership_as_any() -> None:
    machine = stable_machine()
    machine.on_thread_heartbeat(machine.group, ErrorCode.GROUP_AUTHORIZATION_FAILED, 1)
    assert (machine.state, machine.owned) == (FAILED, {})
