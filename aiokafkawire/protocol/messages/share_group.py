"""Share groups: members, their heartbeats, and the groups' offsets (KIP-932).

All of these go to the group's coordinator, which FindCoordinator names for key type 0. The early-access v0 of the
heartbeat and of the description, in Kafka 4.0, is gone in 4.1 and not to be spoken. The requests for offsets are
there since 4.1.
"""

from ..api import ApiKey
from ..primitives import Array, Bool, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic",
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
    "DescribedGroup",
    "Member",
    "ShareGroupDescribeRequest",
    "ShareGroupDescribeResponse",
    "ShareGroupDescribeResponseAssignment",
    "ShareGroupDescribeResponseTopicPartitions",
    "ShareGroupHeartbeatRequest",
    "ShareGroupHeartbeatResponse",
    "ShareGroupHeartbeatResponseAssignment",
    "ShareGroupHeartbeatResponseTopicPartitions",
)


@nested
class ShareGroupHeartbeatResponseTopicPartitions:
    """Assigned partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ShareGroupHeartbeatResponseAssignment:
    """All partitions that the member should read; others may read them as well."""

    topic_partitions: Array[ShareGroupHeartbeatResponseTopicPartitions] = field("0+")


@message(ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatResponse(Response):
    """The member's epoch and its assignment, null if that has not changed."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")  # until the next heartbeat is due
    assignment: ShareGroupHeartbeatResponseAssignment | None = field("0+", nullable="0+", default=None)


@message(ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse]):
    """A member joins a share group, stays in it, or leaves."""

    group_id: String = field("0+")
    member_id: String = field("0+")  # the member makes it up and keeps it
    member_epoch: Int32 = field("0+")  # 0: join; -1: leave; else as the last answer has it
    rack_id: String | None = field("0+", nullable="0+", default=None)  # null: none, or as before
    subscribed_topic_names: Array[String] | None = field("0+", nullable="0+", default=None)  # null: as before


@nested
class ShareGroupDescribeResponseTopicPartitions:
    """Assigned partitions of one topic."""

    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ShareGroupDescribeResponseAssignment:
    """All partitions that a member should read."""

    topic_partitions: Array[ShareGroupDescribeResponseTopicPartitions] = field("0+")


@nested
class Member:
    """A member, what it subscribes to, and what it should read."""

    member_id: String = field("0+")
    rack_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: Array[String] = field("0+")
    assignment: ShareGroupDescribeResponseAssignment = field("0+")


@nested
class DescribedGroup:
    """A share group and its members, or why it cannot be described."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")  # the group_epoch that the assignment was made for
    assignor_name: String = field("0+")
    members: Array[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-(2**31))  # a bit for each operation; -2**31: not asked for


@message(ApiKey.SHARE_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ShareGroupDescribeResponse(Response):
    """The groups as their coordinator knows them."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.SHARE_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ShareGroupDescribeRequest(Request[ShareGroupDescribeResponse]):
    """Who is in these share groups, and who reads what?"""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")


@nested
class DescribeShareGroupOffsetsResponsePartition:
    """From where on the group has not finished a partition."""

    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")  # -1: the group has none yet
    leader_epoch: Int32 = field("0+")
    lag: Int64 = field("1+", default=-1, ignorable=True)  # KIP-1226: records that are not finished; -1: not known
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class DescribeShareGroupOffsetsResponseTopic:
    """The offsets of one topic."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: Array[DescribeShareGroupOffsetsResponsePartition] = field("0+")


@nested
class DescribeShareGroupOffsetsResponseGroup:
    """The offsets of one group."""

    group_id: String = field("0+")
    topics: Array[DescribeShareGroupOffsetsResponseTopic] = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Response):
    """Where each group stands."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribeShareGroupOffsetsResponseGroup] = field("0+")


@nested
class DescribeShareGroupOffsetsRequestTopic:
    """Partitions of one topic."""

    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class DescribeShareGroupOffsetsRequestGroup:
    """A group and the partitions to describe; null topics are all."""

    group_id: String = field("0+")
    topics: Array[DescribeShareGroupOffsetsRequestTopic] | None = field("0+", nullable="0+")


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Request[DescribeShareGroupOffsetsResponse]):
    """Where do these share groups stand?"""

    groups: Array[DescribeShareGroupOffsetsRequestGroup] = field("0+")


@nested
class AlterShareGroupOffsetsResponsePartition:
    """Whether one partition's offset was set."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class AlterShareGroupOffsetsResponseTopic:
    """Whether the offsets of one topic were set."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: Array[AlterShareGroupOffsetsResponsePartition] = field("0+")


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Response):
    """Which offsets were set."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: Array[AlterShareGroupOffsetsResponseTopic] = field("0+")


@nested
class AlterShareGroupOffsetsRequestPartition:
    """The offset at which the group shall go on."""

    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")


@nested
class AlterShareGroupOffsetsRequestTopic:
    """The offsets for one topic."""

    topic_name: String = field("0+")
    partitions: Array[AlterShareGroupOffsetsRequestPartition] = field("0+")


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Request[AlterShareGroupOffsetsResponse]):
    """Let a share group go on at these offsets; it must have no members."""

    group_id: String = field("0+")
    topics: Array[AlterShareGroupOffsetsRequestTopic] = field("0+")


@nested
class DeleteShareGroupOffsetsResponseTopic:
    """Whether one topic's offsets were deleted."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Response):
    """Which topics' offsets were deleted."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: Array[DeleteShareGroupOffsetsResponseTopic] = field("0+")


@nested
class DeleteShareGroupOffsetsRequestTopic:
    """A topic, with all its partitions."""

    topic_name: String = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Request[DeleteShareGroupOffsetsResponse]):
    """Let a share group forget these topics; it must have no members."""

    group_id: String = field("0+")
    topics: Array[DeleteShareGroupOffsetsRequestTopic] = field("0+")
