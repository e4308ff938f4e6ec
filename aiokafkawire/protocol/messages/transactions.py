"""Idempotent and transactional producers."""

from ..api import ApiKey
from ..primitives import ZERO_UUID, Array, Bool, Int8, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "AddOffsetsToTxnRequest",
    "AddOffsetsToTxnResponse",
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult",
    "AddPartitionsToTxnTransaction",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "EndTxnRequest",
    "EndTxnResponse",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
    "WritableTxnMarker",
    "WritableTxnMarkerPartitionResult",
    "WritableTxnMarkerResult",
    "WritableTxnMarkerTopic",
    "WritableTxnMarkerTopicResult",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+")
class InitProducerIdResponse(Response):
    """The producer id and epoch to write with."""

    throttle_time_ms: Int32 = field("0+", default=0, ignorable=True)
    error_code: Int16 = field("0+")
    producer_id: Int64 = field("0+", default=-1)
    producer_epoch: Int16 = field("0+")
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", unstable="6")
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """A producer id and epoch: fresh ones, or for a transactional id its next epoch, which fences older producers."""

    transactional_id: String | None = field("0+", nullable="0+")
    transaction_timeout_ms: Int32 = field("0+")
    producer_id: Int64 = field("3+", default=-1)  # KIP-360: go on from this one
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+", default=False)  # KIP-939
    keep_prepared_txn: Bool = field("6+", default=False)


@nested
class AddPartitionsToTxnPartitionResult:
    """DOC(AddPartitionsToTxnResponse.ResultsByPartition)."""

    partition_index: Int32 = field("0+")
    partition_error_code: Int16 = field("0+")


@nested
class AddPartitionsToTxnTopicResult:
    """DOC(AddPartitionsToTxnResponse.TopicResults)."""

    name: String = field("0+")
    results_by_partition: Array[AddPartitionsToTxnPartitionResult] = field("0+")


@nested
class AddPartitionsToTxnResult:
    """DOC(AddPartitionsToTxnResponse.ResultsByTransaction)."""

    transactional_id: String = field("4+")
    topic_results: Array[AddPartitionsToTxnTopicResult] = field("4+")


@message(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("4+", default=0, ignorable=True)
    results_by_transaction: Array[AddPartitionsToTxnResult] = field("4+", default=list)
    results_by_topic_v3_and_below: Array[AddPartitionsToTxnTopicResult] = field("0-3", default=list)


@nested
class AddPartitionsToTxnTopic:
    """DOC(AddPartitionsToTxnRequest.Topics)."""

    name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class AddPartitionsToTxnTransaction:
    """DOC(AddPartitionsToTxnRequest.Transactions)."""

    transactional_id: String = field("4+")
    producer_id: Int64 = field("4+")
    producer_epoch: Int16 = field("4+")
    verify_only: Bool = field("4+", default=False)
    topics: Array[AddPartitionsToTxnTopic] = field("4+")


@message(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """DOC."""

    transactions: Array[AddPartitionsToTxnTransaction] = field("4+", default=list)
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: Array[AddPartitionsToTxnTopic] = field("0-3", default=list)


@message(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")


@message(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """DOC."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    group_id: String = field("0+")


@nested
class TxnOffsetCommitResponsePartition:
    """DOC(TxnOffsetCommitResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class TxnOffsetCommitResponseTopic:
    """DOC(TxnOffsetCommitResponse.Topics)."""

    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Array[TxnOffsetCommitResponsePartition] = field("0+")


@message(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    topics: Array[TxnOffsetCommitResponseTopic] = field("0+")


@nested
class TxnOffsetCommitRequestPartition:
    """DOC(TxnOffsetCommitRequest.Partitions)."""

    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None = field("0+", nullable="0+")


@nested
class TxnOffsetCommitRequestTopic:
    """DOC(TxnOffsetCommitRequest.Topics)."""

    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Array[TxnOffsetCommitRequestPartition] = field("0+")


@message(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """DOC."""

    transactional_id: String = field("0+")
    group_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    topics: Array[TxnOffsetCommitRequestTopic] = field("0+")


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest(Request[EndTxnResponse]):
    """DOC."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    committed: Bool = field("0+")


@nested
class WritableTxnMarkerPartitionResult:
    """DOC(WriteTxnMarkersResponse.Partitions)."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class WritableTxnMarkerTopicResult:
    """DOC(WriteTxnMarkersResponse.Topics)."""

    name: String = field("0+")
    partitions: Array[WritableTxnMarkerPartitionResult] = field("0+")


@nested
class WritableTxnMarkerResult:
    """DOC(WriteTxnMarkersResponse.Markers)."""

    producer_id: Int64 = field("0+")
    topics: Array[WritableTxnMarkerTopicResult] = field("0+")


@message(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Response):
    """DOC."""

    markers: Array[WritableTxnMarkerResult] = field("0+")


@nested
class WritableTxnMarkerTopic:
    """DOC(WriteTxnMarkersRequest.Topics)."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@nested
class WritableTxnMarker:
    """DOC(WriteTxnMarkersRequest.Markers)."""

    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    transaction_result: Bool = field("0+")
    topics: Array[WritableTxnMarkerTopic] = field("0+")
    coordinator_epoch: Int32 = field("0+")
    transaction_version: Int8 = field("2+", default=0, ignorable=True)


@message(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    """DOC."""

    markers: Array[WritableTxnMarker] = field("0+")


@message(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Response):
    """DOC."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    producer_id_start: Int64 = field("0+")
    producer_id_len: Int32 = field("0+")


@message(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsRequest(Request[AllocateProducerIdsResponse]):
    """DOC."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)
