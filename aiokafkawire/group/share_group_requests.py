"""The heartbeats of a share group's member (KIP-932)."""

from typing import Final

from ..cluster.request_variants import RequestVariant
from ..errors import KafkaError, UnsupportedVersion, UnsupportedVersionAnswered
from ..protocol.messages.share_group import ShareGroupHeartbeatRequest
from ..protocol.schema import Versions
from .consumer_group_requests import HeartbeatRequests, ServerSubscription
from .membership import CoordinatorRequest, MemberSettings, RequestKind, TopicIdPartitions

__all__ = ("SHARE_GROUP", "SHARE_VERSIONS")

_LEAVE_EPOCH: Final = -1
SHARE_VERSIONS: Final = Versions.parse("1+")
"""The versions of ShareGroupHeartbeat, ShareFetch and ShareAcknowledge; v0 was an early-access version of Kafka 4.0."""


def _heartbeat(
    settings: MemberSettings,
    member_id: str,
    epoch: int,
    subscription: ServerSubscription | None,
    owned: TopicIdPartitions | None,
) -> ShareGroupHeartbeatRequest:
    """Build a heartbeat; the coordinator does not ask which partitions are ``owned``, since members share them."""
    return ShareGroupHeartbeatRequest(
        group_id=settings.group_id,
        member_id=member_id,
        member_epoch=epoch,
        rack_id=settings.rack if subscription is not None else None,
        subscribed_topic_names=sorted(subscription.topics) if subscription is not None else None,
    )


def _leave(settings: MemberSettings, member_id: str, *, stays: bool) -> CoordinatorRequest:
    request = _heartbeat(settings, member_id, _LEAVE_EPOCH, None, None)
    return CoordinatorRequest(RequestKind.LEAVE, (RequestVariant(request, SHARE_VERSIONS),))


def _explained(settings: MemberSettings, error: KafkaError, *, with_pattern: bool) -> KafkaError:
    if not isinstance(error, UnsupportedVersion | UnsupportedVersionAnswered):
        return error
    what = "share groups need brokers of Kafka 4.1 or later with the feature share.version=1 (KIP-932)"
    return UnsupportedVersion(f"cannot join share {settings.named}, {what}: {error}")


SHARE_GROUP: Final = HeartbeatRequests("ShareGroupHeartbeat", False, SHARE_VERSIONS, _heartbeat, _leave, _explained)
"""The heartbeats of share groups."""
