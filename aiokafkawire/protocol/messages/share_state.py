"""The state of share groups, as their coordinators ask brokers to keep it (KIP-932)."""

from ..api import ApiKey
from ..primitives import Array, Int8, Int16, Int32, Int64, String, Uuid
from ..schema import Request, Response, field, message, nested

__all__ = (
    "DeleteShareGroupStateRequest",
    "DeleteShareGroupStateRequestPartitionData",
    "DeleteShareGroupStateResponse",
    "DeleteShareGroupStateResponsePartitionResult",
    "DeleteStateData",
    "DeleteStateResult",
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateRequestPartitionData",
    "InitializeShareGroupStateResponse",
    "InitializeShareGroupStateResponsePartitionResult",
    "InitializeStateData",
    "InitializeStateResult",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateRequestPartitionData",
    "ReadShareGroupStateResponse",
    "ReadShareGroupStateResponsePartitionResult",
    "ReadShareGroupStateSummaryRequest",
    "ReadShareGroupStateSummaryRequestPartitionData",
    "ReadShareGroupStateSummaryResponse",
    "ReadShareGroupStateSummaryResponsePartitionResult",
    "ReadStateData",
    "ReadStateResult",
    "ReadStateSummaryData",
    "ReadStateSummaryResult",
    "StateBatch",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateRequestPartitionData",
    "WriteShareGroupStateResponse",
    "WriteShareGroupStateResponsePartitionResult",
    "WriteStateData",
    "WriteStateResult",
)


@nested
class InitializeShareGroupStateResponsePartitionResult:
    """DOC(InitializeShareGroupStateResponse.Partitions)."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class InitializeStateResult:
    """DOC(InitializeShareGroupStateResponse.Results)."""

    topic_id: Uuid = field("0+")
    partitions: Array[InitializeShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Response):
    """DOC."""

    results: Array[InitializeStateResult] = field("0+")


@nested
class InitializeShareGroupStateRequestPartitionData:
    """DOC(InitializeShareGroupStateRequest.Partitions)."""

    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")


@nested
class InitializeStateData:
    """DOC(InitializeShareGroupStateRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[InitializeShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Request[InitializeShareGroupStateResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[InitializeStateData] = field("0+")


@nested
class StateBatch:
    """DOC(ReadShareGroupStateResponse.StateBatches)."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_state: Int8 = field("0+")
    delivery_count: Int16 = field("0+")


@nested
class ReadShareGroupStateResponsePartitionResult:
    """DOC(ReadShareGroupStateResponse.Partitions)."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    state_batches: Array[StateBatch] = field("0+")


@nested
class ReadStateResult:
    """DOC(ReadShareGroupStateResponse.Results)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Response):
    """DOC."""

    results: Array[ReadStateResult] = field("0+")


@nested
class ReadShareGroupStateRequestPartitionData:
    """DOC(ReadShareGroupStateRequest.Partitions)."""

    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class ReadStateData:
    """DOC(ReadShareGroupStateRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Request[ReadShareGroupStateResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[ReadStateData] = field("0+")


@nested
class WriteShareGroupStateResponsePartitionResult:
    """DOC(WriteShareGroupStateResponse.Partitions)."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class WriteStateResult:
    """DOC(WriteShareGroupStateResponse.Results)."""

    topic_id: Uuid = field("0+")
    partitions: Array[WriteShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Response):
    """DOC."""

    results: Array[WriteStateResult] = field("0+")


@nested
class WriteShareGroupStateRequestPartitionData:
    """DOC(WriteShareGroupStateRequest.Partitions)."""

    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    state_batches: Array[StateBatch] = field("0+")


@nested
class WriteStateData:
    """DOC(WriteShareGroupStateRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[WriteShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Request[WriteShareGroupStateResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[WriteStateData] = field("0+")


@nested
class DeleteShareGroupStateResponsePartitionResult:
    """DOC(DeleteShareGroupStateResponse.Partitions)."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class DeleteStateResult:
    """DOC(DeleteShareGroupStateResponse.Results)."""

    topic_id: Uuid = field("0+")
    partitions: Array[DeleteShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Response):
    """DOC."""

    results: Array[DeleteStateResult] = field("0+")


@nested
class DeleteShareGroupStateRequestPartitionData:
    """DOC(DeleteShareGroupStateRequest.Partitions)."""

    partition: Int32 = field("0+")


@nested
class DeleteStateData:
    """DOC(DeleteShareGroupStateRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[DeleteShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Request[DeleteShareGroupStateResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[DeleteStateData] = field("0+")


@nested
class ReadShareGroupStateSummaryResponsePartitionResult:
    """DOC(ReadShareGroupStateSummaryResponse.Partitions)."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)


@nested
class ReadStateSummaryResult:
    """DOC(ReadShareGroupStateSummaryResponse.Results)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateSummaryResponsePartitionResult] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Response):
    """DOC."""

    results: Array[ReadStateSummaryResult] = field("0+")


@nested
class ReadShareGroupStateSummaryRequestPartitionData:
    """DOC(ReadShareGroupStateSummaryRequest.Partitions)."""

    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class ReadStateSummaryData:
    """DOC(ReadShareGroupStateSummaryRequest.Topics)."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateSummaryRequestPartitionData] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Request[ReadShareGroupStateSummaryResponse]):
    """DOC."""

    group_id: String = field("0+")
    topics: Array[ReadStateSummaryData] = field("0+")
