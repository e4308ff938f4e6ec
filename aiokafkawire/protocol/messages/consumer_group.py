"""Consumer groups whose coordinator assigns (KIP-848).

In heartbeats, a member tells the group's coordinator what it subscribes to and what it holds, and the answers tell what
it may hold. A partition goes to another member only after the heartbeats of the last one say that it was given up.
"""

from ..api import ApiKey
from ..primitives import Array, Bool, Int8, Int16, Int32, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "ConsumerGroupDescribeResponseAssignment",
    "ConsumerGroupDescribeResponseTopicPartitions",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatRequestTopicPartitions",
    "ConsumerGroupHeartbeatResponse",
    "ConsumerGroupHeartbeatResponseAssignment",
    "ConsumerGroupHeartbeatResponseTopicPartitions",
    "DescribedGroup",
    "Member",
)


@nested
class ConsumerGroupHeartbeatResponseTopicPartitions:
    """Partitions of one topic that the member may read."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ConsumerGroupHeartbeatResponseAssignment:
    """All partitions that the member may read; it gives up what is missing here."""

    topic_partitions: Array[ConsumerGroupHeartbeatResponseTopicPartitions] = field("0+")


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Response):
    """The member's epoch, and its assignment where that changed."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+", default=None)  # v0: only for a member that joins
    member_epoch: Int32 = field("0+")  # for the next heartbeat
    heartbeat_interval_ms: Int32 = field("0+")
    # null: as before
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = field("0+", nullable="0+", default=None)


@nested
class ConsumerGroupHeartbeatRequestTopicPartitions:
    """Partitions of one topic that the member holds."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    """A member joins its group, stays in it, or leaves; for the group's coordinator.

    Null, and -1 for rebalance_timeout_ms, means the same as in the heartbeat before. Whoever joins tells everything.
    With v1+ the member makes up its own id (KIP-1082); v0 is of the previews before 4.0, where the coordinator did.
    """

    group_id: String = field("0+")
    member_id: String = field("0+")  # the same for as long as the member lives; v0: empty to join
    member_epoch: Int32 = field("0+")  # 0: join; -1: leave; -2: leave, as a static member that will be back
    instance_id: String | None = field("0+", nullable="0+", default=None)  # also null: no static member (KIP-345)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    rebalance_timeout_ms: Int32 = field("0+", default=-1)  # how long the member may take to give partitions up
    subscribed_topic_names: Array[String] | None = field("0+", nullable="0+", default=None)
    # in RE2 syntax; empty: none any more
    subscribed_topic_regex: String | None = field("1+", nullable="1+", default=None)
    server_assignor: String | None = field("0+", nullable="0+", default=None)  # also null: the coordinator's choice
    # what the member holds at the moment
    topic_partitions: Array[ConsumerGroupHeartbeatRequestTopicPartitions] | None = field(
        "0+", nullable="0+", default=None
    )


@nested
class ConsumerGroupDescribeResponseTopicPartitions:
    """Partitions of one topic."""

    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ConsumerGroupDescribeResponseAssignment:
    """A member's partitions."""

    topic_partitions: Array[ConsumerGroupDescribeResponseTopicPartitions] = field("0+")


@nested
class Member:
    """A member, the partitions it holds, and those it is meant to hold (target_assignment)."""

    member_id: String = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)  # null: no static member (KIP-345)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")  # the assignment epoch that the member has got to
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: Array[String] = field("0+")
    subscribed_topic_regex: String | None = field("0+", nullable="0+", default=None)  # null or empty: none
    assignment: ConsumerGroupDescribeResponseAssignment = field("0+")
    target_assignment: ConsumerGroupDescribeResponseAssignment = field("0+")
    # KIP-1099; -1: unknown; 0: classic protocol; 1: consumer protocol
    member_type: Int8 = field("1+", default=-1, ignorable=True)


@nested
class DescribedGroup:
    """A group and its members, or why they are not told."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")  # Empty, Assigning, Reconciling, Stable or Dead
    group_epoch: Int32 = field("0+")  # rises as members, subscriptions or topics change
    assignment_epoch: Int32 = field("0+")  # the group epoch that the target assignments were made for
    assignor_name: String = field("0+")
    members: Array[Member] = field("0+")
    # KIP-430: a bit for each operation code of acls.py; -2**31: not asked for
    authorized_operations: Int32 = field("0+", default=-(2**31))


@message(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Response):
    """Each group that was asked for."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    """Who is in these groups? For their coordinator; a classic group is GROUP_ID_NOT_FOUND here."""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")
