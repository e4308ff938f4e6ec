"""Writing records to partitions."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Int16, Int32, Int64, Records, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "BatchIndexAndErrorMessage",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionProduceData",
    "PartitionProduceResponse",
    "ProduceRequest",
    "ProduceResponse",
    "TopicProduceData",
    "TopicProduceResponse",
)


@nested
class BatchIndexAndErrorMessage:
    """A record of the batch that was refused, by its index (KIP-467)."""

    batch_index: Int32 = field("8+")
    batch_index_error_message: String | None = field("8+", nullable="8+", default=None)


@nested
class LeaderIdAndEpoch:
    """Who leads the partition now, so that the client need not ask (KIP-951)."""

    leader_id: Int32 = field("10+", default=-1)
    leader_epoch: Int32 = field("10+", default=-1)


@nested
class PartitionProduceResponse:
    """Where the batch begins, or why it was refused."""

    index: Int32 = field("0+")
    error_code: Int16 = field("0+")
    base_offset: Int64 = field("0+")
    # -1: the topic keeps the producer's timestamps
    log_append_time_ms: Int64 = field("2+", default=-1, ignorable=True)
    log_start_offset: Int64 = field("5+", default=-1, ignorable=True)
    record_errors: Array[BatchIndexAndErrorMessage] = field("8+", default=list, ignorable=True)
    error_message: String | None = field("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0, default=LeaderIdAndEpoch)


@nested
class TopicProduceResponse:
    """The answers for one topic."""

    name: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_responses: Array[PartitionProduceResponse] = field("0+")


@nested
class NodeEndpoint:
    """Where a new leader listens (KIP-951)."""

    node_id: Int32 = field("10+")
    host: String = field("10+")
    port: Int32 = field("10+")
    rack: String | None = field("10+", nullable="10+", default=None)


@message(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceResponse(Response):
    """For each partition where its batch begins, or why it was refused."""

    responses: Array[TopicProduceResponse] = field("0+")
    throttle_time_ms: Int32 = field("1+", default=0, ignorable=True)
    node_endpoints: Array[NodeEndpoint] = field("10+", tag=0, default=list)


@nested
class PartitionProduceData:
    """One record batch for one partition."""

    index: Int32 = field("0+")
    records: Records | None = field("0+", nullable="0+")


@nested
class TopicProduceData:
    """The batches for one topic; v13 names it by id (KIP-516)."""

    name: String = field("0-12", default="", ignorable=True)
    topic_id: Uuid = field("13+", default=ZERO_UUID, ignorable=True)
    partition_data: Array[PartitionProduceData] = field("0+")


@message(ApiKey.PRODUCE, versions="0-13", flexible="9+")
class ProduceRequest(Request[ProduceResponse]):
    """Record batches for the partitions that this broker leads.

    Brokers of 4.0 and later serve v3 and up, which hold record batches v2.
    """

    transactional_id: String | None = field("3+", nullable="3+", default=None)  # KIP-98
    acks: Int16 = field("0+")  # 0: no answer at all; 1: the leader has it; -1: all in-sync replicas have it
    timeout_ms: Int32 = field("0+")
    topic_data: Array[TopicProduceData] = field("0+")
