"""The responses of consumer groups' coordinators (KIP-848), and a member's state machine in any of its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from aiokafkawire.errors import ErrorCode
from aiokafkawire.group.consumer_group_membership import ConsumerGroupMembership
from aiokafkawire.group.consumer_group_requests import ServerSubscription
from aiokafkawire.group.membership import (
    CoordinatorRequest,
    GroupState,
    MemberSettings,
    PrepareRejoin,
    Reconcile,
    TopicIdPartitions,
)
from aiokafkawire.protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

__all__ = (
    "FULL",
    "INTERVAL",
    "MEMBER",
    "OTHER_TOPIC",
    "TOPIC",
    "again_of",
    "apply_assignment",
    "confirm",
    "confirmed",
    "current_task",
    "failed",
    "given_fields",
    "machine_in",
    "message_of",
    "next_heartbeat",
    "next_request",
    "partitions_in",
    "stable_machine",
)

T = TypeVar("T")

MEMBER = "member"
TOPIC, OTHER_TOPIC = UUID(int=1), UUID(int=2)
INTERVAL = 5.0
"""Seconds between heartbeats, as the coordinator decides."""
FULL = {"rebalance_timeout_ms", "subscribed_topic_names", "topic_partitions"}
"""The fields of a full heartbeat of a dynamic member without rack, pattern and assignor."""
_OPTIONAL = (
    "instance_id",
    "rack_id",
    "subscribed_topic_names",
    "subscribed_topic_regex",
    "server_assignor",
    "topic_partitions",
)


def confirmed(
    epoch: int = 5, assignment: Mapping[UUID, Sequence[int]] | None = None, *, interval: float = INTERVAL
) -> ConsumerGroupHeartbeatResponse:
    """Return a response without an error; it has an assignment only if one is given."""
    topics = [
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=list(indexes))
        for topic_id, indexes in (assignment or {}).items()
    ]
    return ConsumerGroupHeartbeatResponse(
        error_code=0,
        member_id=MEMBER,
        member_epoch=epoch,
        heartbeat_interval_ms=int(interval * 1000),
        assignment=None if assignment is None else ConsumerGroupHeartbeatResponseAssignment(topic_partitions=topics),
    )


def failed(code: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    """Return a response with an error."""
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )


def given_fields(request: ConsumerGroupHeartbeatRequest) -> set[str]:
    """Return the names of the optional fields that a heartbeat has."""
    fields = {name for name in _OPTIONAL if getattr(request, name) is not None}
    return fields | ({"rebalance_timeout_ms"} if request.rebalance_timeout_ms != -1 else set())


def partitions_in(request: ConsumerGroupHeartbeatRequest) -> dict[UUID, list[int]]:
    """Return the partitions that a heartbeat reports."""
    assert request.topic_partitions is not None
    return {topic.topic_id: list(topic.partitions) for topic in request.topic_partitions}


def message_of(request: CoordinatorRequest) -> ConsumerGroupHeartbeatRequest:
    """Return the message that the first attempt sends."""
    message = request.forms[0].request
    assert isinstance(message, ConsumerGroupHeartbeatRequest)
    return message


def again_of(request: CoordinatorRequest) -> ConsumerGroupHeartbeatRequest:
    """Return the message that retries send."""
    assert isinstance(request.again, ConsumerGroupHeartbeatRequest)
    return request.again


def next_request(machine: ConsumerGroupMembership, now: float = 0.0) -> CoordinatorRequest:
    """Return the request that is due, which must exist."""
    (request,) = machine.due(now)
    return request


def next_heartbeat(machine: ConsumerGroupMembership, now: float = 0.0) -> ConsumerGroupHeartbeatRequest:
    """Return the message of the request that is due; it stays in flight."""
    return message_of(next_request(machine, now))


def confirm(
    machine: ConsumerGroupMembership,
    epoch: int = 5,
    assignment: TopicIdPartitions | None = None,
    *,
    now: float = 0.0,
    interval: float = INTERVAL,
) -> ConsumerGroupHeartbeatRequest:
    """Answer the heartbeat that is due, and return its message."""
    request = next_request(machine, now)
    machine.answered(request, confirmed(epoch, assignment, interval=interval), now)
    return message_of(request)


def current_task(machine: ConsumerGroupMembership, kind: type[T]) -> T:
    """Return the task, which must be of this kind."""
    task = machine.task
    assert isinstance(task, kind)
    return task


def apply_assignment(machine: ConsumerGroupMembership) -> None:
    """Execute the task to reconcile."""
    task = current_task(machine, Reconcile)
    machine.reconciled(task, task.assignment)


def machine_in(state: GroupState, **settings: Any) -> ConsumerGroupMembership:
    """Return a machine that has come to this state at the time 0; a member has epoch 5 and no partitions."""
    machine = ConsumerGroupMembership(MemberSettings("g", **settings), MEMBER)
    machine.subscribe(ServerSubscription(("a",)))
    if state is not GroupState.OUTSIDE:
        machine.request_rejoin("to begin")
    if state not in (GroupState.OUTSIDE, GroupState.PREPARING):
        machine.prepared(current_task(machine, PrepareRejoin))
    if state in (GroupState.STABLE, GroupState.LEAVING, GroupState.FAILED):
        confirm(machine)
    if state is GroupState.LEAVING:
        machine.leave("enough")
    elif state is GroupState.FAILED:
        machine.answered(next_request(machine, 100), failed(ErrorCode.GROUP_AUTHORIZATION_FAILED), 100)
    assert machine.state is state
    return machine


def stable_machine(
    assignment: TopicIdPartitions | None = None, epoch: int = 5, **settings: Any
) -> ConsumerGroupMembership:
    """Return a member that has acknowledged this assignment at the time 0."""
    machine = machine_in(GroupState.ENTERING, **settings)
    confirm(machine, epoch, assignment or {TOPIC: [0, 1]})
    apply_assignment(machine)
    confirm(machine, epoch)
    return machine
