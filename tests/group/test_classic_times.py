"""The membership of one member: when it asks, and coordinators that lie."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from support.membership_answers import (
    ME,
    PROTOCOLS,
    answer,
    beating,
    flow,
    heard,
    joined,
    machine_in,
    said,
    stable_machine,
    synced,
)

from aiokafkawire.errors import (
    ErrorCode,
    WireError,
)
from aiokafkawire.group.classic_membership import NEXT
from aiokafkawire.group.classic_requests import THEN
from aiokafkawire.group.membership import Assign, GroupState, PrepareRejoin, RequestKind

OUTSIDE, PREPARING, JOINING = GroupState.OUTSIDE, GroupState.PREPARING, GroupState.JOINING
ASSIGNING, SYNCING, STABLE = GroupState.ASSIGNING, GroupState.SYNCING, GroupState.STABLE
LEAVING, FAILED = GroupState.LEAVING, GroupState.FAILED


# --- when ----------------------------------------------------------------------------------------------------------


def test_heartbeats_go_out_at_intervals_and_one_at_a_time() -> None:
    machine = stable_machine(heartbeat_interval=2.0)
    ask = beating(machine, 10)
    assert (said(ask).generation_id, said(ask).member_id) == (5, ME)
    assert (machine.due(20), machine.wait(20)) == ([], None)
    machine.answered(ask, heard(), 20)
    assert (machine.confirmed_at, machine.wait(20)) == (20, 0)
    assert beating(machine, 20)
    machine = stable_machine(heartbeat_interval=2.0)
    for now in range(2, 12, 2):
        machine.answered(beating(machine, now), heard(), now)
    machine.answered(beating(machine, 20), heard(), 20.5)
    assert (machine.wait(20.5), machine.due(21.9)) == (1.5, [])
    assert beating(machine, 22)


def test_the_first_heartbeats_of_a_generation_come_soon() -> None:
    machine = stable_machine(heartbeat_interval=2.0)
    now, waits = 0.0, []
    for _ in range(6):
        wait = machine.wait(now)
        assert wait is not None
        now += wait
        waits.append(wait)
        machine.answered(beating(machine, now), heard(), now)
    assert waits[1:] == [0.25, 0.5, 1.0, 2.0, 2.0]


@pytest.mark.parametrize("state", list(NEXT))
def test_heartbeats_need_a_generation_and_end_with_the_join(state: GroupState) -> None:
    machine = machine_in(state)
    assert machine.sends_heartbeats is (state in (ASSIGNING, SYNCING, STABLE))
    if state is STABLE:
        machine.request_rejoin("again")
        assert (machine.state, machine.sends_heartbeats) == (PREPARING, True)


# --- coordinators that lie -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        (joined(protocol="roundrobin"), "'roundrobin'"),
        (joined(protocol=None), "None"),
        (joined(member=""), "protocol"),
        (joined(generation=-1), "generation -1"),
    ],
)
def test_a_join_that_makes_no_sense_is_for_the_user(lie: Any, told: str) -> None:
    machine = machine_in(JOINING)
    machine.answered(flow(machine), lie, 0)
    assert (machine.state, type(machine.error), machine.is_member) == (FAILED, WireError, False)
    assert told in str(machine.error)


def test_a_sync_for_another_protocol_is_for_the_user() -> None:
    machine = machine_in(SYNCING)
    machine.answered(flow(machine), synced(protocol="sticky"), 0)
    assert (machine.state, type(machine.error)) == (FAILED, WireError)


@pytest.mark.parametrize("kind", [RequestKind.JOIN, RequestKind.SYNC])
@pytest.mark.parametrize("code", sorted({code for kind, code in THEN if kind is not RequestKind.COMMIT}))
def test_a_coordinator_that_says_the_same_for_ever_is_not_asked_in_a_tight_loop(kind: RequestKind, code: int) -> None:
    if (kind, code) not in THEN:
        return
    machine, now = machine_in(OUTSIDE), 0.0
    times: list[float] = []
    machine.request_rejoin("to begin")
    while len(times) < 20:
        if isinstance(machine.task, PrepareRejoin):
            machine.prepared(machine.task, PROTOCOLS)
        elif isinstance(machine.task, Assign):
            machine.assigned(machine.task, {})
        for ask in machine.due(now):
            if ask.kind is kind:
                times.append(now)
            is_asked = ask.kind is kind
            machine.answered(
                ask, answer(kind, code) if is_asked else joined() if ask.kind is RequestKind.JOIN else heard(), now
            )
        if machine.task is None:
            now += machine.wait(now) or 0.0
    assert times[1] - times[0] == 0  # the first is in the nature of things
    rests = [round(later - earlier, 9) for earlier, later in pairwise(times)]
    assert rests[:4] == [0, 0.1, 0.2, 0.3]
    assert rests[-1] == 1.0


def test_an_id_that_is_required_and_not_given_is_asked_for_again() -> None:
    machine = machine_in(JOINING)
    machine.answered(flow(machine), joined(ErrorCode.MEMBER_ID_REQUIRED, member="", leader="x"), 0)
    assert (machine.state, machine.member_id) == (JOINING, "")
    machine.answered(flow(machine), joined(ErrorCode.MEMBER_ID_REQUIRED, member="given-3"), 0)
    machine.due(1)
    assert (machine.state, machine.member_id, machine.is_member) == (JOINING, "given-3", False)


@pytest.mark.parametrize("state", list(NEXT))
def test_every_state_has_a_way_out(state: GroupState) -> None:
    assert NEXT[state]
    assert set(NEXT) == set(GroupState) - {GroupState.ENTERING}
