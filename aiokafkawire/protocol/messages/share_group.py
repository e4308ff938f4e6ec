"""Share groups: members, their heartbeats, and the groups' offsets (KIP-932)."""

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
    """DOC(ShareGroupHeartbeatResponse.TopicPartitions)."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ShareGroupHeartbeatResponseAssignment:
    """DOC(ShareGroupHeartbeatResponse.Assignment)."""

    topic_partitions: Array[ShareGroupHeartbeatResponseTopicPartitions] = field("0+")


@message(ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    assignment: ShareGroupHeartbeatResponseAssignment | None = field("0+", nullable="0+", default=None)


@message(ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse]):
    """DOC."""

    group_id: String = field("0+")
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    rack_id: String | None = field("0+", nullable="0+", default=None)
    subscribed_topic_names: Array[String] | None = field("0+", nullable="0+", default=None)


@nested
class ShareGroupDescribeResponseTopicPartitions:
    """DOC(ShareGroupDescribeResponse.TopicPartitions)."""

    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ShareGroupDescribeResponseAssignment:
    """DOC(ShareGroupDescribeResponse.Assignment)."""

    topic_partitions: Array[ShareGroupDescribeResponseTopicPartitions] = field("0+")


@nested
class Member:
    """DOC(ShareGroupDescribeResponse.Members)."""

    member_id: String = field("0+")
    rack_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: Array[String] = field("0+")
    assignment: ShareGroupDescribeResponseAssignment = field("0+")


@nested
class DescribedGroup:
    """DOC(ShareGroupDescribeResponse.Groups)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")
    assignor_name: String = field("0+")
    members: Array[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-(2**31))


@message(ApiKey.SHARE_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ShareGroupDescribeResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.SHARE_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ShareGroupDescribeRequest(Request[ShareGroupDescribeResponse]):
    """DOC."""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")


@nested
class DescribeShareGroupOffsetsResponsePartition:
    """DOC(DescribeShareGroupOffsetsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    leader_epoch: Int32 = field("0+")
    lag: Int64 = field("1+", default=-1, ignorable=True)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class DescribeShareGroupOffsetsResponseTopic:
    """DOC(DescribeShareGroupOffsetsResponse.Topics)."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: Array[DescribeShareGroupOffsetsResponsePartition] = field("0+")


@nested
class DescribeShareGroupOffsetsResponseGroup:
    """DOC(DescribeShareGroupOffsetsResponse.Groups)."""

    group_id: String = field("0+")
    topics: Array[DescribeShareGroupOffsetsResponseTopic] = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribeShareGroupOffsetsResponseGroup] = field("0+")


@nested
class DescribeShareGroupOffsetsRequestTopic:
    """DOC(DescribeShareGroupOffsetsRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class DescribeShareGroupOffsetsRequestGroup:
    """DOC(DescribeShareGroupOffsetsRequest.Groups)."""

    group_id: String = field("0+")
    topics: Array[DescribeShareGroupOffsetsRequestTopic] | None = field("0+", nullable="0+")


@message(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsRequest(Request[DescribeShareGroupOffsetsResponse]):
    """DOC."""

    groups: Array[DescribeShareGroupOffsetsRequestGroup] = field("0+")


@nested
class AlterShareGroupOffsetsResponsePartition:
    """DOC(AlterShareGroupOffsetsResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class AlterShareGroupOffsetsResponseTopic:
    """DOC(AlterShareGroupOffsetsResponse.Responses)."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    partitions: Array[AlterShareGroupOffsetsResponsePartition] = field("0+")


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: Array[AlterShareGroupOffsetsResponseTopic] = field("0+")


@nested
class AlterShareGroupOffsetsRequestPartition:
    """DOC(AlterShareGroupOffsetsRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    start_offset: Int64 = field("0+")


@nested
class AlterShareGroupOffsetsRequestTopic:
    """DOC(AlterShareGroupOffsetsRequest.Topics)."""

    topic_name: String = field("0+")
    partitions: Array[AlterShareGroupOffsetsRequestPartition] = field("0+")


@message(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class AlterShareGroupOffsetsRequest(Request[AlterShareGroupOffsetsResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[AlterShareGroupOffsetsRequestTopic] = field("0+")


@nested
class DeleteShareGroupOffsetsResponseTopic:
    """DOC(DeleteShareGroupOffsetsResponse.Responses)."""

    topic_name: String = field("0+")
    topic_id: Uuid = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    responses: Array[DeleteShareGroupOffsetsResponseTopic] = field("0+")


@nested
class DeleteShareGroupOffsetsRequestTopic:
    """DOC(DeleteShareGroupOffsetsRequest.Topics)."""

    topic_name: String = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+")
class DeleteShareGroupOffsetsRequest(Request[DeleteShareGroupOffsetsResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[DeleteShareGroupOffsetsRequestTopic] = field("0+")
