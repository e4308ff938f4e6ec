"""The member of a consumer group (KIP-848): joins, heartbeats, assignments and the ends of memberships."""

from __future__ import annotations

import pytest
from support.consumer_group_machines import (
    FULL,
    INTERVAL,
    MEMBER,
    OTHER_TOPIC,
    TOPIC,
    again_of,
    apply_assignment,
    confirm,
    confirmed,
    current_task,
    given_fields,
    machine_in,
    message_of,
    next_heartbeat,
    next_request,
    partitions_in,
    stable_machine,
)

from aiokafkawire.errors import ErrorCode, RequestTimeout, broker_error
from aiokafkawire.group.consumer_group_requests import ServerSubscription
from aiokafkawire.group.membership import GroupState, PrepareRejoin, Reconcile, RequestKind
from aiokafkawire.protocol.schema import Versions
from aiokafkawire.types import GroupMetadata

OUTSIDE, PREPARING, ENTERING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.ENTERING
STABLE = GroupState.STABLE
ONE, TWO = {TOPIC: [0, 1]}, {TOPIC: [1, 2], OTHER_TOPIC: [0]}


# --- joining -------------------------------------------------------------------------------------------------------


def test_a_member_joins_with_all_fields_and_acknowledges_its_assignment() -> None:
    machine = machine_in(OUTSIDE, rack="r", remote_assignor="range", rebalance_timeout_ms=60_000)
    machine.subscribe(ServerSubscription(("b", "a"), "c.*"))
    assert (machine.due(0), machine.wait(0), machine.is_member, machine.is_rebalancing) == ([], None, False, False)
    machine.request_rejoin("to begin")
    task = current_task(machine, PrepareRejoin)
    assert (task.lost, machine.due(0), machine.wait(0), machine.is_rebalancing) == (False, [], None, True)
    machine.prepared(task)
    assert (machine.state, machine.task, machine.wait(0)) == (ENTERING, None, 0)
    request = next_request(machine)
    message = message_of(request)
    assert given_fields(message) == FULL | {"rack_id", "subscribed_topic_regex", "server_assignor"}
    assert (message.group_id, message.member_id, message.member_epoch) == ("g", MEMBER, 0)
    assert (message.subscribed_topic_names, message.subscribed_topic_regex) == (["a", "b"], "c.*")
    assert (message.rack_id, message.server_assignor, message.rebalance_timeout_ms) == ("r", "range", 60_000)
    assert message.topic_partitions == []
    assert (request.again, request.kind, request.name) == (message, RequestKind.HEARTBEAT, "ConsumerGroupHeartbeat")
    assert (machine.due(9), machine.wait(9)) == ([], None)
    machine.answered(request, confirmed(5, TWO), 1.0)
    reconcile = current_task(machine, Reconcile)
    assert (reconcile.epoch, reconcile.assignment, machine.rebalances) == (5, TWO, 1)
    assert (machine.state, machine.confirmed_at, machine.protocol) == (STABLE, 1.0, "range")
    assert machine.group == machine.last_group == GroupMetadata("g", 5, MEMBER, None)
    machine.reconciled(reconcile, TWO)
    assert (machine.task, machine.wait(1.0), machine.is_rebalancing) == (None, 0, False)
    message = confirm(machine, 5, now=1.0)
    assert (given_fields(message), partitions_in(message)) == ({"topic_partitions"}, TWO)
    assert machine.wait(1.0) == INTERVAL


@pytest.mark.parametrize(("pattern", "versions"), [(None, "0+"), ("a.*", "1+")])
def test_only_a_pattern_needs_a_newer_version(pattern: str | None, versions: str) -> None:
    machine = machine_in(ENTERING)
    machine.subscribe(ServerSubscription(("a",), pattern))
    ((_, wanted),) = next_request(machine).forms
    assert wanted == Versions.parse(versions)


def test_an_unanswered_join_is_sent_again_at_once() -> None:
    machine = machine_in(ENTERING)
    machine.refused(next_request(machine), RequestTimeout("late"), 3.0)
    assert (machine.state, machine.wait(3.0)) == (ENTERING, 0)
    assert given_fields(next_heartbeat(machine, 3.0)) == FULL


def test_a_refused_member_id_that_joins_waits_for_the_back_off() -> None:
    machine = machine_in(ENTERING, retry_backoff=0.5)
    machine.refused(next_request(machine), broker_error(ErrorCode.UNKNOWN_MEMBER_ID, ""), 3.0)
    assert (machine.state, machine.task, machine.due(3.4)) == (ENTERING, None, [])
    assert machine.wait(3.25) == 0.25
    assert given_fields(next_heartbeat(machine, 3.5)) == FULL


@pytest.mark.parametrize(
    ("interval", "seconds"), [(0.1, 3.0), (1.0, 3.0), (2.0, 4.0), (5.0, 10.0), (15.0, 15.0), (20.0, 20.0)]
)
def test_the_coordinators_interval_decides_how_long_it_may_be_silent(interval: float, seconds: float) -> None:
    machine = machine_in(ENTERING, session_timeout_ms=600_000, heartbeat_interval=100.0)
    assert (machine.heartbeat_interval, machine.request_timeout) == (5.0, 10.0)
    machine.answered(next_request(machine), confirmed(5, ONE, interval=interval), 1.0)
    assert machine.request_timeout == seconds


# --- heartbeats ----------------------------------------------------------------------------------------------------


def test_heartbeats_are_minimal_and_one_at_a_time() -> None:
    machine = stable_machine()
    assert (machine.due(INTERVAL - 0.1), machine.sends_heartbeats) == ([], True)
    request = next_request(machine, INTERVAL)
    message = message_of(request)
    assert (given_fields(message), message.member_epoch, message.member_id) == (set(), 5, MEMBER)
    assert (machine.due(100), machine.wait(100)) == ([], None)
    machine.answered(request, confirmed(5), INTERVAL + 1)
    # The interval counts from the request.
    assert (machine.wait(INTERVAL + 1), machine.confirmed_at) == (INTERVAL - 1, INTERVAL + 1)


def test_the_coordinator_decides_on_the_interval() -> None:
    machine = stable_machine(heartbeat_interval=3.0)
    confirm(machine, now=10, interval=1.5)
    assert machine.wait(10) == 1.5
    confirm(machine, now=11.5, interval=8)
    assert machine.wait(11.5) == 1.5  # the last interval had begun
    confirm(machine, now=13, interval=0)
    assert machine.wait(13) == 8


def test_a_retry_has_all_fields() -> None:
    machine = stable_machine()
    request = next_request(machine, 10)
    assert given_fields(message_of(request)) == set()
    again = again_of(request)
    assert (given_fields(again), partitions_in(again)) == (FULL, ONE)


def test_the_heartbeat_after_a_timeout_has_all_fields_and_later_ones_not() -> None:
    machine = stable_machine()
    machine.refused(next_request(machine, 10), RequestTimeout("late"), 14)
    assert (machine.state, machine.owned, machine.wait(14)) == (STABLE, ONE, 0)
    message = confirm(machine, 6, ONE, now=14)
    assert (given_fields(message), message.member_epoch, partitions_in(message)) == (FULL, 5, ONE)
    assert (machine.task, machine.rebalances) == (None, 1)
    assert given_fields(next_heartbeat(machine, 14 + INTERVAL)) == set()


def test_a_changed_subscription_is_sent_at_once_and_without_partitions() -> None:
    machine = stable_machine(remote_assignor="uniform", rack="r")
    machine.subscribe(ServerSubscription(("b",)))
    assert machine.wait(0) == INTERVAL
    machine.request_rejoin("other topics")
    assert (machine.wait(0), machine.reason) == (0, "other topics")
    message = confirm(machine, 6)
    fields = FULL - {"topic_partitions"} | {"rack_id", "server_assignor"}
    assert (given_fields(message), message.subscribed_topic_names) == (fields, ["b"])
    assert given_fields(next_heartbeat(machine, INTERVAL)) == set()


def test_a_subscription_that_changes_while_a_heartbeat_is_in_flight_is_sent_after_it() -> None:
    machine = stable_machine()
    request = next_request(machine, 10)
    machine.subscribe(ServerSubscription(("b",)))
    machine.request_rejoin("other topics")
    machine.answered(request, confirmed(5), 11)
    assert machine.wait(11) == 0
    assert next_heartbeat(machine, 11).subscribed_topic_names == ["b"]


def test_a_subscription_that_changes_while_the_member_joins_is_sent_at_once() -> None:
    machine = machine_in(ENTERING)
    join = next_request(machine)
    machine.subscribe(ServerSubscription(("a", "b")))
    machine.request_rejoin("other topics")
    machine.answered(join, confirmed(5), 0)
    assert next_heartbeat(machine).subscribed_topic_names == ["a", "b"]


def test_a_pattern_that_is_gone_is_sent_as_an_empty_one() -> None:
    machine = machine_in(ENTERING)
    machine.subscribe(ServerSubscription((), "a.*"))
    assert confirm(machine).subscribed_topic_regex == "a.*"
    for topics in (("a",), ("b",)):
        machine.subscribe(ServerSubscription(topics))
        machine.request_rejoin("other topics")
        message = confirm(machine)
        assert (message.subscribed_topic_names, message.subscribed_topic_regex) == (list(topics), "")


# --- assignments ---------------------------------------------------------------------------------------------------


def test_a_response_without_assignment_changes_nothing() -> None:
    machine = stable_machine()
    confirm(machine, 6, now=10)
    assert (machine.task, machine.owned, machine.epoch, machine.rebalances) == (None, ONE, 6, 1)
    assert machine.group.generation_id == 6


def test_no_partitions_are_an_assignment_too() -> None:
    machine = stable_machine()
    confirm(machine, 6, {}, now=10)
    assert current_task(machine, Reconcile).assignment == {}
    apply_assignment(machine)
    assert (partitions_in(confirm(machine, 6, now=10)), machine.owned) == ({}, {})


def test_the_member_revokes_before_it_is_given_more() -> None:
    machine = stable_machine()
    confirm(machine, 5, {TOPIC: [1]}, now=10)
    apply_assignment(machine)
    assert partitions_in(confirm(machine, 6, {TOPIC: [1, 2]}, now=10)) == {TOPIC: [1]}
    apply_assignment(machine)
    assert partitions_in(confirm(machine, 6, now=10)) == {TOPIC: [1, 2]}
    assert (machine.rebalances, machine.epoch, machine.wait(10)) == (3, 6, INTERVAL)


def test_partitions_are_compared_without_order_and_empty_topics() -> None:
    machine = stable_machine()
    confirm(machine, 5, {OTHER_TOPIC: [], TOPIC: [1, 0]}, now=10)
    assert (machine.task, machine.rebalances) == (None, 1)


def test_heartbeats_go_on_during_a_reconciliation_and_do_not_repeat_it() -> None:
    machine = stable_machine()
    confirm(machine, 5, TWO, now=10)
    task = current_task(machine, Reconcile)
    # The member may take the new partitions while the heartbeat is in flight.
    message = confirm(machine, 5, now=20)
    assert (given_fields(message), machine.task) == ({"topic_partitions"}, task)
    assert partitions_in(message) == {TOPIC: [0, 1, 2], OTHER_TOPIC: [0]}
    assert given_fields(confirm(machine, 5, now=30)) == set()
    machine.reconciled(task, TWO)
    assert machine.wait(30) == 0
    assert partitions_in(next_heartbeat(machine, 30)) == TWO


def test_a_newer_assignment_replaces_the_one_that_is_applied() -> None:
    machine = stable_machine()
    confirm(machine, 5, TWO, now=10)
    old = current_task(machine, Reconcile)
    confirm(machine, 6, ONE, now=20)
    new = current_task(machine, Reconcile)
    # ONE is what the member had, but the obsolete task may have revoked partitions of it already.
    assert (new is not old, new.assignment, new.epoch) == (True, ONE, 6)
    machine.reconciled(old, {TOPIC: [1]})
    assert (machine.task, machine.owned) == (new, {TOPIC: [1]})
    # It reports what it may take while the heartbeat is in flight, too.
    assert partitions_in(confirm(machine, 6, now=20)) == ONE
    machine.reconciled(new, ONE)
    assert (machine.task, machine.owned, machine.wait(20)) == (None, ONE, INTERVAL)


def test_partitions_that_are_being_taken_are_reported_until_they_are_revoked() -> None:
    machine = stable_machine()
    confirm(machine, 6, {TOPIC: [0, 1, 2]}, now=10)
    taking = current_task(machine, Reconcile)
    machine.taking(taking, {TOPIC: [0, 1, 2]})
    confirm(machine, 6, ONE, now=15)
    machine.taking(taking, TWO)  # it is obsolete, and takes nothing more
    confirm(machine, 6, now=20)
    assert machine.owned == {TOPIC: [0, 1, 2]}
    machine.reconciled(taking, {TOPIC: [0, 1, 2]})
    assert given_fields(confirm(machine, 6, now=25)) == set()
    apply_assignment(machine)
    assert partitions_in(next_heartbeat(machine, 25)) == ONE


def test_a_topic_without_metadata_is_taken_later() -> None:
    machine = stable_machine()
    confirm(machine, 6, TWO, now=10)
    machine.reconciled(current_task(machine, Reconcile), {TOPIC: [2, 1]})
    assert machine.owned == {TOPIC: [1, 2]}
    assert partitions_in(confirm(machine, 6, now=10)) == TWO
    assert (machine.task, machine.wait(10)) == (None, INTERVAL)
    machine.reconcile_again()
    task = current_task(machine, Reconcile)
    assert (task.assignment, task.epoch) == (TWO, 6)
    machine.reconcile_again()
    assert machine.task is task
    machine.reconciled(task, TWO)
    machine.reconcile_again()
    assert machine.due(10) == []
    assert (machine.rebalances, machine.owned, machine.wait(10)) == (2, TWO, INTERVAL)


def test_partitions_that_were_reported_while_they_were_taken_are_not_reported_again() -> None:
    machine = stable_machine()
    confirm(machine, 6, {TOPIC: [0, 1, 2]}, now=10)
    assert partitions_in(confirm(machine, 6, now=15)) == {TOPIC: [0, 1, 2]}
    apply_assignment(machine)
    assert (machine.task, machine.wait(15)) == (None, INTERVAL)


@pytest.mark.parametrize("state", [OUTSIDE, PREPARING, ENTERING])
def test_nobody_reconciles_outside_the_group(state: GroupState) -> None:
    machine = machine_in(state)
    before = machine.task
    machine.reconciled(Reconcile(5, ONE), ONE)
    machine.reconcile_again()
    assert (machine.owned, machine.task) == ({}, before)


# --- the ends of memberships ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND]
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_member_that_is_removed_loses_all_and_rejoins(code: ErrorCode, beside: bool) -> None:
    machine = stable_machine()
    group = machine.group
    if beside:
        machine.on_thread_heartbeat(machine.group, code, 10)
    else:
        machine.refused(next_request(machine, 10), broker_error(code, ""), 10)
    task = current_task(machine, PrepareRejoin)
    assert (task.lost, type(broker_error(code, "")).__name__ in task.reason) == (True, True)
    assert (machine.state, machine.is_member, machine.owned, machine.epoch) == (PREPARING, False, {}, 0)
    assert (machine.group, machine.last_group) == (GroupMetadata("g", -1, "", None), group)
    machine.prepared(task)
    message = confirm(machine, 7, ONE, now=10)
    assert (message.member_epoch, message.member_id, given_fields(message)) == (0, MEMBER, FULL)
    assert message.topic_partitions == []
    assert (current_task(machine, Reconcile).assignment, machine.rebalances) == (ONE, 2)


def test_an_unreachable_coordinator_takes_nothing_away() -> None:
    machine = stable_machine()
    for now in range(10, 1000, 10):
        machine.refused(next_request(machine, now), RequestTimeout("late"), now)
    assert (machine.state, machine.owned, machine.task) == (STABLE, ONE, None)
