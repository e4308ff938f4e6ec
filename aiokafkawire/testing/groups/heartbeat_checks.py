"""The checks of a ConsumerGroupHeartbeat, with Kafka's errors and messages (KIP-848)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from ...errors import ErrorCode
from ...protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from ..cluster.api_error import ApiError
from .consumer_member import LEAVES, LEAVES_FOR_NOW, ConsumerMember, TopicIdPartition
from .release_rules import ReleaseRules

__all__ = ("check_epoch", "check_released", "check_request")

_OWN_MEMBER_ID_SINCE: Final = 1  # KIP-1082


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """Check the fields of a request.

    Raises:
        ApiError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR.
    """
    if version >= _OWN_MEMBER_ID_SINCE or request.member_epoch > 0 or request.member_epoch == LEAVES:
        _check_text(request.member_id, "MemberId")
    _check_text(request.group_id, "GroupId")
    _check_text(request.instance_id, "InstanceId")
    _check_text(request.rack_id, "RackId")
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEAVES_FOR_NOW and request.instance_id is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "InstanceId can't be null.")
    elif request.member_epoch < LEAVES_FOR_NOW:
        raise ApiError(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_text(text: str | None, name: str) -> None:
    if text is not None and not text.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    fault = None
    if request.rebalance_timeout_ms == -1:
        fault = "RebalanceTimeoutMs must be provided in first request."
    elif request.topic_partitions is None or request.topic_partitions:
        fault = "TopicPartitions must be empty when (re-)joining."
    elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        fault = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, fault)


def check_epoch(
    member: ConsumerMember, epoch: int, owned: AbstractSet[TopicIdPartition] | None, rules: ReleaseRules
) -> None:
    """Check that a heartbeat has the member's epoch.

    Epoch 0 lets a member join again, if the release has that rule. The previous epoch is accepted if the member owns
    none but assigned partitions, since the response with the new epoch may be lost.

    Raises:
        ApiError: FENCED_MEMBER_EPOCH.
    """
    if epoch == member.epoch or (epoch == 0 and rules.epoch_0_joins_again):
        return
    if (
        epoch < member.epoch
        and epoch == member.previous_epoch
        and owned is not None
        and owned <= member.assigned.keys()
    ):
        return
    order = "greater" if epoch > member.epoch else "smaller"
    message = (
        f"The consumer group member has a {order} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise ApiError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def check_released(member: ConsumerMember, member_id: str) -> None:
    """Check that a static member has left, so that ``member_id`` may join with its instance id.

    Raises:
        ApiError: UNRELEASED_INSTANCE_ID.
    """
    if member.epoch != LEAVES_FOR_NOW:
        message = (
            f"Static member {member_id} with instance id {member.group_instance_id} cannot join the group because the "
            f"instance id is owned by {member.member_id} member."
        )
        raise ApiError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
