"""The heartbeats of a consumer group's member (KIP-848), and the actions that the errors of responses lead to."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from ..cluster.request_variants import RequestVariant
from ..errors import ErrorCode, KafkaError, UnreleasedInstanceId, UnsupportedVersion, UnsupportedVersionAnswered
from ..protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from ..protocol.schema import Request, Versions
from .membership import CoordinatorRequest, MemberSettings, RequestKind, TopicIdPartitions

__all__ = (
    "CONSUMER_GROUP",
    "DEFAULT_HEARTBEAT_INTERVAL",
    "JOIN_EPOCH",
    "THEN",
    "HeartbeatErrorAction",
    "HeartbeatRequests",
    "ServerSubscription",
    "as_request",
    "explained",
    "heartbeat",
    "leave",
    "request_timeout",
)

JOIN_EPOCH: Final = 0
_LEAVE_EPOCH: Final = -1
_STATIC_LEAVE_EPOCH: Final = -2
"""The epoch of a static member that will be back within the session timeout."""

DEFAULT_HEARTBEAT_INTERVAL: Final = 5.0
_MIN_TIMEOUT: Final = 3.0
"""The seconds that a coordinator may take at least, even if the heartbeat interval is far below Kafka's default."""
_MAX_TIMEOUT: Final = 15.0
"""A third of the shortest session timeout that brokers allow by default, in seconds."""

_ANY: Final = Versions.parse("0+")
_WITH_PATTERN: Final = Versions.parse("1+")


@attrs.frozen
class ServerSubscription:
    """The subscription of a member: topic names, and a regular expression in RE2 syntax."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    """None if the member has never had a pattern; empty if it has none any more."""


@attrs.frozen
class HeartbeatRequests:
    """The heartbeats of a kind of group: the functions that build them, with the arguments of those in this module.

    ``reports_partitions`` says whether the coordinator waits until members have given up partitions; ``versions`` are
    those to be used.
    """

    name: str
    reports_partitions: bool
    versions: Versions
    heartbeat: Callable[
        [MemberSettings, str, int, ServerSubscription | None, TopicIdPartitions | None],
        Request[Any],
    ]
    leave: Callable[..., CoordinatorRequest]
    explained: Callable[..., KafkaError]


class HeartbeatErrorAction(Enum):
    """The action that an error in a response leads to."""

    LOSE = "lose all partitions and rejoin"
    REFRESH = "send a heartbeat to get the current epoch"
    FAIL = "raise the error to the user"


THEN: Final[Mapping[tuple[RequestKind, int], HeartbeatErrorAction]] = {
    (RequestKind.HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID): HeartbeatErrorAction.LOSE,
    (RequestKind.HEARTBEAT, ErrorCode.FENCED_MEMBER_EPOCH): HeartbeatErrorAction.LOSE,
    (RequestKind.COMMIT, ErrorCode.UNKNOWN_MEMBER_ID): HeartbeatErrorAction.REFRESH,
    (RequestKind.COMMIT, ErrorCode.FENCED_MEMBER_EPOCH): HeartbeatErrorAction.REFRESH,
    (RequestKind.COMMIT, ErrorCode.STALE_MEMBER_EPOCH): HeartbeatErrorAction.REFRESH,
    (RequestKind.COMMIT, ErrorCode.ILLEGAL_GENERATION): HeartbeatErrorAction.REFRESH,
}
"""The action for each request and error code. Other errors of heartbeats are raised to the user, retriable ones after
retries. After the error of a commit, the next heartbeat shows whether the membership has ended."""


def heartbeat(
    settings: MemberSettings,
    member_id: str,
    epoch: int,
    subscription: ServerSubscription | None,
    owned: TopicIdPartitions | None,
) -> ConsumerGroupHeartbeatRequest:
    """Build a heartbeat; one with epoch 0 joins the group.

    Args:
        settings: the member's settings.
        member_id: the member's id, which the client makes (KIP-1082).
        epoch: the member's epoch.
        subscription: the subscription; None if it has not changed since the last heartbeat.
        owned: the partitions that the member has; None if they have not changed since the last heartbeat. The
            coordinator accepts the epoch before the current one only with these, and returns the whole assignment only
            if both fields are given.
    """
    return ConsumerGroupHeartbeatRequest(
        group_id=settings.group_id,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=settings.group_instance_id,
        rack_id=settings.rack if subscription is not None else None,
        rebalance_timeout_ms=settings.rebalance_timeout_ms if subscription is not None else -1,
        subscribed_topic_names=sorted(subscription.topics) if subscription is not None else None,
        subscribed_topic_regex=subscription.pattern if subscription is not None else None,
        server_assignor=settings.remote_assignor if subscription is not None else None,
        topic_partitions=None if owned is None else _topic_partitions(owned),
    )


def leave(settings: MemberSettings, member_id: str, *, stays: bool) -> CoordinatorRequest:
    """Build the last heartbeat; if the static member ``stays``, it keeps its partitions for the session timeout."""
    epoch = _STATIC_LEAVE_EPOCH if stays else _LEAVE_EPOCH
    request = heartbeat(settings, member_id, epoch, None, None)
    return CoordinatorRequest(RequestKind.LEAVE, (RequestVariant(request, _ANY),))


def as_request(
    first: Request[Any], again: Request[Any], versions: Versions, *, with_pattern: bool
) -> CoordinatorRequest:
    """Return a heartbeat to send, with the one for retries."""
    wanted = _WITH_PATTERN if with_pattern else versions
    return CoordinatorRequest(RequestKind.HEARTBEAT, (RequestVariant(first, wanted),), again)


def request_timeout(heartbeat_interval: float) -> float:
    """Return the seconds that the coordinator may take to respond, so that the session outlasts a silent coordinator.

    The client does not know the session timeout, which is the coordinator's. By default it is at least 45 s, nine
    heartbeat intervals; if it was made shorter, so was the interval, which it must exceed.
    """
    return max(heartbeat_interval, _MIN_TIMEOUT, min(2 * heartbeat_interval, _MAX_TIMEOUT))


def explained(settings: MemberSettings, error: KafkaError, *, with_pattern: bool) -> KafkaError:
    """Return the error, with advice if a broker is too old, has the protocol disabled, or has another static member."""
    if isinstance(error, UnreleasedInstanceId):
        return UnreleasedInstanceId(
            f"cannot join {settings.named}: group_instance_id {settings.group_instance_id!r} is in use by another "
            "member, or the previous process has crashed; then the id is free once the session timeout of the group's "
            "coordinator (group.consumer.session.timeout.ms, by default 45 s) has passed since the last heartbeat of "
            f"that process. Each poll() tries again: {error}"
        )
    if not isinstance(error, UnsupportedVersion | UnsupportedVersionAnswered):
        return error
    if with_pattern and isinstance(error, UnsupportedVersion):
        what = "a SubscriptionPattern needs brokers of Kafka 4.0 or later"
    else:
        what = (
            "group_protocol='consumer' needs brokers of Kafka 4.0 or later with the feature group.version=1 (KIP-848); "
            "use group_protocol='auto' or 'classic'"
        )
    return UnsupportedVersion(f"cannot join {settings.named}, {what}: {error}")


def _topic_partitions(owned: TopicIdPartitions) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(owned.items())
        if partitions
    ]


CONSUMER_GROUP: Final = HeartbeatRequests("ConsumerGroupHeartbeat", True, _ANY, heartbeat, leave, explained)
"""The heartbeats of consumer groups."""
