"""Reading records as a member of a share group, and acknowledging them (KIP-932)."""

from ..api import ApiKey
from ..primitives import Array, Bool, Int8, Int16, Int32, Int64, Records, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AcknowledgePartition",
    "AcknowledgeTopic",
    "AcknowledgementBatch",
    "AcquiredRecords",
    "FetchPartition",
    "FetchTopic",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "ShareAcknowledgeRequest",
    "ShareAcknowledgeResponse",
    "ShareAcknowledgeResponsePartitionData",
    "ShareAcknowledgeTopicResponse",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareFetchResponsePartitionData",
    "ShareFetchableTopicResponse",
)


@nested
class LeaderIdAndEpoch:
    """DOC(ShareFetchResponse.CurrentLeader)."""

    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class AcquiredRecords:
    """DOC(ShareFetchResponse.AcquiredRecords)."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_count: Int16 = field("0+")


@nested
class ShareFetchResponsePartitionData:
    """DOC(ShareFetchResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    acknowledge_error_code: Int16 = field("0+")
    acknowledge_error_message: String | None = field("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("0+")
    records: Records | None = field("0+", nullable="0")
    acquired_records: Array[AcquiredRecords] = field("0+")


@nested
class ShareFetchableTopicResponse:
    """DOC(ShareFetchResponse.Responses)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ShareFetchResponsePartitionData] = field("0+")


@nested
class NodeEndpoint:
    """DOC(ShareFetchResponse.NodeEndpoints)."""

    node_id: Int32 = field("0+")
    host: String = field("0+")
    port: Int32 = field("0+")
    rack: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("1+", default=0)
    responses: Array[ShareFetchableTopicResponse] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("0+")


@nested
class AcknowledgementBatch:
    """DOC(ShareFetchRequest.AcknowledgementBatches)."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    acknowledge_types: Array[Int8] = field("0+")


@nested
class FetchPartition:
    """DOC(ShareFetchRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    partition_max_bytes: Int32 = field("0", default=0)
    acknowledgement_batches: Array[AcknowledgementBatch] = field("0+")


@nested
class FetchTopic:
    """DOC(ShareFetchRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[FetchPartition] = field("0+")


@nested
class ForgottenTopic:
    """DOC(ShareFetchRequest.ForgottenTopicsData)."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchRequest(Request[ShareFetchResponse]):
    """DOC."""

    group_id: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("0+", default=2**31 - 1)
    max_records: Int32 = field("1+", default=0)
    batch_size: Int32 = field("1+", default=0)
    share_acquire_mode: Int8 = field("2+", default=0, ignorable=True)
    is_renew_ack: Bool = field("2+", default=False)
    topics: Array[FetchTopic] = field("0+")
    forgotten_topics_data: Array[ForgottenTopic] = field("0+")


@nested
class ShareAcknowledgeResponsePartitionData:
    """DOC(ShareAcknowledgeResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("0+")


@nested
class ShareAcknowledgeTopicResponse:
    """DOC(ShareAcknowledgeResponse.Responses)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ShareAcknowledgeResponsePartitionData] = field("0+")


@message(ApiKey.SHARE_ACKNOWLEDGE, versions="0-2", flexible="0+")
class ShareAcknowledgeResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("2+", default=0, ignorable=True)
    responses: Array[ShareAcknowledgeTopicResponse] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("0+")


@nested
class AcknowledgePartition:
    """DOC(ShareAcknowledgeRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    acknowledgement_batches: Array[AcknowledgementBatch] = field("0+")


@nested
class AcknowledgeTopic:
    """DOC(ShareAcknowledgeRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[AcknowledgePartition] = field("0+")


@message(ApiKey.SHARE_ACKNOWLEDGE, versions="0-2", flexible="0+")
class ShareAcknowledgeRequest(Request[ShareAcknowledgeResponse]):
    """DOC."""

    group_id: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")
    is_renew_ack: Bool = field("2+", default=False)
    topics: Array[AcknowledgeTopic] = field("0+")
