"""Idempotent and transactional producers (KIP-98).

InitProducerId comes first. Then, for each transaction: AddPartitionsToTxn before writing to a partition,
AddOffsetsToTxn and TxnOffsetCommit for what was consumed, and EndTxn. With the feature transaction.version at 2
(KIP-890), brokers add partitions and groups by themselves, and each EndTxn brings the epoch for the next transaction.
"""

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
    error_code: Int16 = field("0+")  # v4+: PRODUCER_FENCED (KIP-588); v5+: TRANSACTION_ABORTABLE (KIP-890)
    producer_id: Int64 = field("0+", default=-1)
    producer_epoch: Int16 = field("0+")
    # KIP-939: of the transaction that was kept; -1: there is none
    ongoing_txn_producer_id: Int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = field("6+", default=-1)


@message(ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+", unstable="6")
class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """A producer id and epoch: fresh ones, or for a transactional id its next epoch, which fences older producers."""

    # null: idempotence only, and any broker may be asked; else the coordinator
    transactional_id: String | None = field("0+", nullable="0+")
    transaction_timeout_ms: Int32 = field("0+")
    producer_id: Int64 = field("3+", default=-1)  # KIP-360: go on from this one
    producer_epoch: Int16 = field("3+", default=-1)
    enable2_pc: Bool = field("6+", default=False)  # KIP-939
    keep_prepared_txn: Bool = field("6+", default=False)  # KIP-939: do not abort what is going on


@nested
class AddPartitionsToTxnPartitionResult:
    """Whether the partition is in the transaction."""

    partition_index: Int32 = field("0+")
    # v2+: PRODUCER_FENCED (KIP-588); v5+: TRANSACTION_ABORTABLE (KIP-890)
    partition_error_code: Int16 = field("0+")


@nested
class AddPartitionsToTxnTopicResult:
    """The answers for one topic."""

    name: String = field("0+")
    results_by_partition: Array[AddPartitionsToTxnPartitionResult] = field("0+")


@nested
class AddPartitionsToTxnResult:
    """The answers for one transaction."""

    transactional_id: String = field("4+")
    topic_results: Array[AddPartitionsToTxnTopicResult] = field("4+")


@message(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Response):
    """Which partitions are in their transaction."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("4+", default=0, ignorable=True)  # of the request as a whole
    results_by_transaction: Array[AddPartitionsToTxnResult] = field("4+", default=list)
    results_by_topic_v3_and_below: Array[AddPartitionsToTxnTopicResult] = field("0-3", default=list)


@nested
class AddPartitionsToTxnTopic:
    """The partitions of one topic."""

    name: String = field("0+")
    partitions: Array[Int32] = field("0+")


@nested
class AddPartitionsToTxnTransaction:
    """One producer's transaction and its partitions."""

    transactional_id: String = field("4+")
    producer_id: Int64 = field("4+")
    producer_epoch: Int16 = field("4+")
    verify_only: Bool = field("4+", default=False)  # only tell whether they are in it
    topics: Array[AddPartitionsToTxnTopic] = field("4+")


@message(ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """Partitions that a transaction is about to write to; its coordinator is to be asked.

    Producers speak v3 at most. v4+ is for brokers, which add or verify what producers write (KIP-890).
    """

    transactions: Array[AddPartitionsToTxnTransaction] = field("4+", default=list)
    v3_and_below_transactional_id: String = field("0-3", default="")
    v3_and_below_producer_id: Int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = field("0-3", default=0)
    v3_and_below_topics: Array[AddPartitionsToTxnTopic] = field("0-3", default=list)


@message(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Response):
    """Whether the group's offsets are in the transaction."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")  # v2+: PRODUCER_FENCED (KIP-588); v4+: TRANSACTION_ABORTABLE (KIP-890)


@message(ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """Makes a group's offsets part of the transaction, whose coordinator is to be asked; TxnOffsetCommit follows."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    group_id: String = field("0+")


@nested
class TxnOffsetCommitResponsePartition:
    """Whether the offset was kept."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")  # v4+: also TRANSACTION_ABORTABLE (KIP-890)


@nested
class TxnOffsetCommitResponseTopic:
    """The answers for one topic; v6 names it by id (KIP-1319)."""

    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Array[TxnOffsetCommitResponsePartition] = field("0+")


@message(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Response):
    """How each commit went."""

    throttle_time_ms: Int32 = field("0+", default=0)
    topics: Array[TxnOffsetCommitResponseTopic] = field("0+")


@nested
class TxnOffsetCommitRequestPartition:
    """Where the group will go on in one partition."""

    partition_index: Int32 = field("0+")
    committed_offset: Int64 = field("0+")  # of the next record to read
    # KIP-320: of the last record read; -1: not known
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None = field("0+", nullable="0+")  # any text; offset.metadata.max.bytes limits it


@nested
class TxnOffsetCommitRequestTopic:
    """The offsets for one topic; v6 names it by id (KIP-1319)."""

    name: String = field("0-5", default="", ignorable=True)
    topic_id: Uuid = field("6+", default=ZERO_UUID, ignorable=True)
    partitions: Array[TxnOffsetCommitRequestPartition] = field("0+")


@message(ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Offsets that count once the transaction commits; the coordinator of the group is to be asked.

    v5+ also does what AddOffsetsToTxn does, and in a transaction takes transaction.version 2 (KIP-890).
    """

    transactional_id: String = field("0+")
    group_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    # KIP-447: a member that is out of the group is refused; -1: not checked. v6+: also an epoch (KIP-848, KIP-1319)
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", nullable="3+", default=None)
    topics: Array[TxnOffsetCommitRequestTopic] = field("0+")


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse(Response):
    """Whether the outcome is certain; the markers that make it visible may come later."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")  # v2+: PRODUCER_FENCED (KIP-588); v4+: TRANSACTION_ABORTABLE (KIP-890)
    # KIP-890: to write the next transaction with; the id changes when its epochs are used up
    producer_id: Int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: Int16 = field("5+", default=-1, ignorable=True)


@message(ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest(Request[EndTxnResponse]):
    """Commits or aborts the transaction; its coordinator is to be asked. v5+ takes transaction.version 2 (KIP-890)."""

    transactional_id: String = field("0+")
    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    committed: Bool = field("0+")  # False: abort


@nested
class WritableTxnMarkerPartitionResult:
    """Whether the marker is in the log."""

    partition_index: Int32 = field("0+")
    error_code: Int16 = field("0+")


@nested
class WritableTxnMarkerTopicResult:
    """The answers for one topic."""

    name: String = field("0+")
    partitions: Array[WritableTxnMarkerPartitionResult] = field("0+")


@nested
class WritableTxnMarkerResult:
    """The answers for one producer's marker."""

    producer_id: Int64 = field("0+")
    topics: Array[WritableTxnMarkerTopicResult] = field("0+")


@message(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Response):
    """How each marker went."""

    markers: Array[WritableTxnMarkerResult] = field("0+")


@nested
class WritableTxnMarkerTopic:
    """The partitions of one topic that get the marker."""

    name: String = field("0+")
    partition_indexes: Array[Int32] = field("0+")


@nested
class WritableTxnMarker:
    """The end of one producer's transaction."""

    producer_id: Int64 = field("0+")
    producer_epoch: Int16 = field("0+")
    transaction_result: Bool = field("0+")  # True: commit; False: abort
    topics: Array[WritableTxnMarkerTopic] = field("0+")
    coordinator_epoch: Int32 = field("0+")  # leader epoch of the coordinator's own partition; an older one is refused
    # KIP-1228: with 2 the producer's epoch must be above the one it wrote with
    transaction_version: Int8 = field("2+", default=0, ignorable=True)


@message(ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    """Markers that end transactions, from their coordinator to the partitions' leaders.

    Clients send it only to abort a transaction that no coordinator will end (KIP-664). v0 is gone in 4.0.
    """

    markers: Array[WritableTxnMarker] = field("0+")


@message(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsResponse(Response):
    """The producer ids that the broker may give out."""

    throttle_time_ms: Int32 = field("0+", default=0)
    error_code: Int16 = field("0+")
    producer_id_start: Int64 = field("0+")
    producer_id_len: Int32 = field("0+")  # how many, from the first on


@message(ApiKey.ALLOCATE_PRODUCER_IDS, versions="0", flexible="0+")
class AllocateProducerIdsRequest(Request[AllocateProducerIdsResponse]):
    """Producer ids for a broker to give out (KIP-730); brokers ask the controller."""

    broker_id: Int32 = field("0+")
    broker_epoch: Int64 = field("0+", default=-1)  # of the broker's registration
