"""Reading records as a member of a share group, and acknowledging them (KIP-932).

Both requests go to the leader of the partitions, which keeps a share session for each member and counts both in one
row: a fetch with ``share_session_epoch`` 0 opens it, the next request has 1, and so on, -1 closes it. The session
remembers its partitions; a fetch names those that are new to it or have acknowledgements. What is acquired and not
acknowledged in time, or when the session closes, is released.

v0 was an early-access version of Kafka 4.0, gone in 4.1, and not to be spoken; v1 is of 4.1 and v2 of 4.2.
"""

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
    """Who leads the partition now; leader -1 is not known."""

    leader_id: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class AcquiredRecords:
    """Records that this member may process now, both offsets inclusive."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_count: Int16 = field("0+")  # how often they were handed out, this time included


@nested
class ShareFetchResponsePartitionData:
    """What was read of one partition, and how the acknowledgements that came with the request went.

    The records are whole batches: only those within the acquired ranges are this member's.
    """

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
    """What was read of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[ShareFetchResponsePartitionData] = field("0+")


@nested
class NodeEndpoint:
    """Where a new leader listens."""

    node_id: Int32 = field("0+")
    host: String = field("0+")
    port: Int32 = field("0+")
    rack: String | None = field("0+", nullable="0+", default=None)


@message(ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchResponse(Response):
    """Record batches, and which of their records this member has acquired."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("1+", default=0)  # how long acquired records stay this member's
    responses: Array[ShareFetchableTopicResponse] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("0+")


@nested
class AcknowledgementBatch:
    """What became of a range of acquired records, both offsets inclusive."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    # one type for all of them, or one for each offset: 0: gap (no record there); 1: accept; 2: release; 3: reject;
    # 4: renew (v2+, KIP-1222)
    acknowledge_types: Array[Int8] = field("0+")


@nested
class FetchPartition:
    """A partition to read, and what became of records that came before."""

    partition_index: Int32 = field("0+")
    partition_max_bytes: Int32 = field("0", default=0)  # 0: acknowledge only
    acknowledgement_batches: Array[AcknowledgementBatch] = field("0+")


@nested
class FetchTopic:
    """Partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[FetchPartition] = field("0+")


@nested
class ForgottenTopic:
    """Partitions to leave out of the session from now on."""

    topic_id: Uuid = field("0+")
    partitions: Array[Int32] = field("0+")


@message(ApiKey.SHARE_FETCH, versions="0-2", flexible="0+")
class ShareFetchRequest(Request[ShareFetchResponse]):
    """Records for a member of a share group; acknowledgements come along, but for the first request of a session."""

    group_id: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")  # 0: open; -1: close
    max_wait_ms: Int32 = field("0+")
    min_bytes: Int32 = field("0+")
    max_bytes: Int32 = field("0+", default=2**31 - 1)
    max_records: Int32 = field("1+", default=0)  # may be exceeded to the end of a batch, unless share_acquire_mode is 1
    batch_size: Int32 = field("1+", default=0)  # how many records an acquired range should have
    share_acquire_mode: Int8 = field("2+", default=0, ignorable=True)  # KIP-1206: 0: batch_optimized; 1: record_limit
    # KIP-1222: some acknowledgements are renewals; then nothing is read, and the wait and all limits are 0
    is_renew_ack: Bool = field("2+", default=False)
    topics: Array[FetchTopic] = field("0+")
    forgotten_topics_data: Array[ForgottenTopic] = field("0+")


@nested
class ShareAcknowledgeResponsePartitionData:
    """How the acknowledgements of one partition went."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = field("0+")


@nested
class ShareAcknowledgeTopicResponse:
    """How the acknowledgements of one topic went."""

    topic_id: Uuid = field("0+")
    partitions: Array[ShareAcknowledgeResponsePartitionData] = field("0+")


@message(ApiKey.SHARE_ACKNOWLEDGE, versions="0-2", flexible="0+")
class ShareAcknowledgeResponse(Response):
    """How the acknowledgements went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    acquisition_lock_timeout_ms: Int32 = field("2+", default=0, ignorable=True)  # KIP-1222: how long renewed ones stay
    responses: Array[ShareAcknowledgeTopicResponse] = field("0+")
    node_endpoints: Array[NodeEndpoint] = field("0+")


@nested
class AcknowledgePartition:
    """What became of records of one partition."""

    partition_index: Int32 = field("0+")
    acknowledgement_batches: Array[AcknowledgementBatch] = field("0+")


@nested
class AcknowledgeTopic:
    """What became of records of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[AcknowledgePartition] = field("0+")


@message(ApiKey.SHARE_ACKNOWLEDGE, versions="0-2", flexible="0+")
class ShareAcknowledgeRequest(Request[ShareAcknowledgeResponse]):
    """What became of acquired records, without reading more; it cannot open a session."""

    group_id: String | None = field("0+", nullable="0+", default=None)
    member_id: String | None = field("0+", nullable="0+")
    share_session_epoch: Int32 = field("0+")  # -1: close
    is_renew_ack: Bool = field("2+", default=False)  # KIP-1222: some acknowledgements are renewals
    topics: Array[AcknowledgeTopic] = field("0+")
