"""What coordinators answer to members of classic groups, and a machine that is brought to any of its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from aiokafkawire.group.classic_membership import ClassicMembership
from aiokafkawire.group.membership import CoordinatorRequest, GroupState, MemberSettings, RequestKind
from aiokafkawire.protocol.messages.group import (
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    SyncGroupResponse,
)

__all__ = (
    "ME",
    "PROTOCOLS",
    "answer",
    "beating",
    "doing",
    "flow",
    "heard",
    "joined",
    "left",
    "machine_in",
    "said",
    "stable_machine",
    "synced",
)

T = TypeVar("T")

ME = "me-1"
PROTOCOLS = [("range", b"r"), ("sticky", b"s")]


def joined(
    error: int = 0,
    *,
    leader: str = ME,
    member: str = ME,
    generation: int = 5,
    protocol: str | None = "range",
    skip: bool = False,
    members: Sequence[str] = (ME, "other-2"),
) -> JoinGroupResponse:
    """An answer to JoinGroup; the leader hears of all members."""
    return JoinGroupResponse(
        error_code=error,
        generation_id=generation,
        protocol_name=protocol,
        leader=leader,
        member_id=member,
        skip_assignment=skip,
        members=[JoinGroupResponseMember(member_id=one, metadata=one.encode()) for one in members if leader == member],
    )


def synced(error: int = 0, *, protocol: str | None = "range", assignment: bytes = b"mine") -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, protocol_name=protocol, assignment=assignment)


def heard(error: int = 0) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


def left(error: int = 0) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


def answer(kind: RequestKind, error: int) -> Any:
    """An answer of this kind with an error; it names no member, unless it gives an id."""
    if kind is RequestKind.JOIN:
        return joined(error, member="given-3", leader="", generation=-1, protocol=None)
    if kind is RequestKind.SYNC:
        return synced(error)
    return heard(error) if kind is RequestKind.HEARTBEAT else left(error)


def said(ask: CoordinatorRequest) -> Any:
    """The request, in its newest form."""
    return ask.forms[0][0]


def doing(machine: ClassicMembership, kind: type[T]) -> T:
    """The task, which must be of this kind."""
    task = machine.task
    assert isinstance(task, kind)
    return task


def flow(machine: ClassicMembership, now: float = 0.0) -> CoordinatorRequest:
    """What is due beside heartbeats, which must be there; these are answered."""
    asks = machine.due(now)
    for ask in asks:
        if ask.kind is RequestKind.HEARTBEAT:
            machine.answered(ask, heard(), now)
    (ask,) = [ask for ask in asks if ask.kind is not RequestKind.HEARTBEAT]
    return ask


def beating(machine: ClassicMembership, now: float) -> CoordinatorRequest:
    """The heartbeat that is due."""
    (ask,) = [ask for ask in machine.due(now) if ask.kind is RequestKind.HEARTBEAT]
    return ask


def machine_in(state: GroupState, *, leader: str = ME, **settings: Any) -> ClassicMembership:
    """A machine that came to this state at the time 0, in its first generation, which is 5."""
    machine = ClassicMembership(MemberSettings("g", **settings))
    for reached, step in _STEPS.items():
        if machine.state is state:
            return machine
        if state in (GroupState.LEAVING, GroupState.FAILED) and reached is GroupState.STABLE:
            break
        if reached is GroupState.ASSIGNING and leader != ME:
            continue
        step(machine, leader)
    if state is GroupState.LEAVING:
        machine.leave("enough")
    elif state is GroupState.FAILED:
        machine.answered(flow(machine), synced(error=-1), 0.0)
    assert machine.state is state
    return machine


def stable_machine(**settings: Any) -> ClassicMembership:
    """A machine that has taken its part."""
    machine = machine_in(GroupState.STABLE, **settings)
    assert machine.task is not None
    machine.task_done(machine.task)
    return machine


def _join(machine: ClassicMembership, leader: str) -> None:
    machine.answered(flow(machine), joined(leader=leader), 0.0)


def _prepare(machine: ClassicMembership, leader: str) -> None:
    assert machine.task is not None
    machine.prepared(machine.task, PROTOCOLS)


def _assign(machine: ClassicMembership, leader: str) -> None:
    assert machine.task is not None
    machine.assigned(machine.task, {ME: b"mine", "other-2": b"its"})


def _sync(machine: ClassicMembership, leader: str) -> None:
    machine.answered(flow(machine), synced(), 0.0)


_STEPS = {
    GroupState.OUTSIDE: lambda machine, leader: machine.request_rejoin("to begin"),
    GroupState.PREPARING: _prepare,
    GroupState.JOINING: _join,
    GroupState.ASSIGNING: _assign,
    GroupState.STABLE: _sync,
}
