"""Consumer groups whose coordinator assigns (KIP-848)."""

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
    """DOC(ConsumerGroupHeartbeatResponse.TopicPartitions)."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ConsumerGroupHeartbeatResponseAssignment:
    """DOC(ConsumerGroupHeartbeatResponse.Assignment)."""

    topic_partitions: Array[ConsumerGroupHeartbeatResponseTopicPartitions] = field("0+")


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    heartbeat_interval_ms: Int32 = field("0+")
    assignment: ConsumerGroupHeartbeatResponseAssignment | None = field("0+", nullable="0+", default=None)


@nested
class ConsumerGroupHeartbeatRequestTopicPartitions:
    """DOC(ConsumerGroupHeartbeatRequest.TopicPartitions)."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    """DOC."""

    group_id: String = field("0+")
    member_id: String = field("0+")
    member_epoch: Int32 = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    rebalance_timeout_ms: Int32 = field("0+", default=-1)
    subscribed_topic_names: Array[String] | None = field("0+", nullable="0+", default=None)
    subscribed_topic_regex: String | None = field("1+", nullable="1+", default=None)
    server_assignor: String | None = field("0+", nullable="0+", default=None)
    topic_partitions: Array[ConsumerGroupHeartbeatRequestTopicPartitions] | None = field(
        "0+", nullable="0+", default=None
    )


@nested
class ConsumerGroupDescribeResponseTopicPartitions:
    """DOC(ConsumerGroupDescribeResponse.TopicPartitions)."""

    topic_id: Uuid = field("0+")
    topic_name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class ConsumerGroupDescribeResponseAssignment:
    """DOC(ConsumerGroupDescribeResponse.Assignment)."""

    topic_partitions: Array[ConsumerGroupDescribeResponseTopicPartitions] = field("0+")


@nested
class Member:
    """DOC(ConsumerGroupDescribeResponse.Members)."""

    member_id: String = field("0+")
    instance_id: String | None = field("0+", nullable="0+", default=None)
    rack_id: String | None = field("0+", nullable="0+", default=None)
    member_epoch: Int32 = field("0+")
    client_id: String = field("0+")
    client_host: String = field("0+")
    subscribed_topic_names: Array[String] = field("0+")
    subscribed_topic_regex: String | None = field("0+", nullable="0+", default=None)
    assignment: ConsumerGroupDescribeResponseAssignment = field("0+")
    target_assignment: ConsumerGroupDescribeResponseAssignment = field("0+")
    member_type: Int8 = field("1+", default=-1, ignorable=True)


@nested
class DescribedGroup:
    """DOC(ConsumerGroupDescribeResponse.Groups)."""

    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    group_id: String = field("0+")
    group_state: String = field("0+")
    group_epoch: Int32 = field("0+")
    assignment_epoch: Int32 = field("0+")
    assignor_name: String = field("0+")
    members: Array[Member] = field("0+")
    authorized_operations: Int32 = field("0+", default=-(2**31))


@message(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    groups: Array[DescribedGroup] = field("0+")


@message(ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Request[ConsumerGroupDescribeResponse]):
    """DOC."""

    group_ids: Array[String] = field("0+")
    include_authorized_operations: Bool = field("0+")
