"""The state of share groups, as brokers ask share coordinators to keep it (KIP-932).

Only between brokers. The group's coordinator initializes and deletes the state of partitions and reads summaries; the
leader of a partition reads and writes its state. FindCoordinator names the share coordinator of a partition for key
type 2 and the key ``group:topic id:partition``. A request whose ``state_epoch`` or ``leader_epoch`` is lower than the
one that is kept is out of date, and refused.
"""

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
    """Whether one partition's state was initialized."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class InitializeStateResult:
    """Whether the states of one topic's partitions were initialized."""

    topic_id: Uuid = field("0+")
    partitions: Array[InitializeShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateResponse(Response):
    """Which states were initialized."""

    results: Array[InitializeStateResult] = field("0+")


@nested
class InitializeShareGroupStateRequestPartitionData:
    """The epoch of a partition's new state, and where the group begins."""

    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")  # -1: left to the leader


@nested
class InitializeStateData:
    """The new states of one topic's partitions."""

    topic_id: Uuid = field("0+")
    partitions: Array[InitializeShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class InitializeShareGroupStateRequest(Request[InitializeShareGroupStateResponse]):
    """The group's coordinator begins to share partitions, or begins anew at another offset."""

    group_id: String = field("0+")
    topics: Array[InitializeStateData] = field("0+")


@nested
class StateBatch:
    """A range of records in one state, both offsets inclusive."""

    first_offset: Int64 = field("0+")
    last_offset: Int64 = field("0+")
    delivery_state: Int8 = field("0+")  # 0: available; 2: acknowledged; 4: archived
    delivery_count: Int16 = field("0+")  # how often they were handed out


@nested
class ReadShareGroupStateResponsePartitionResult:
    """The state of one partition."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")  # -1: not initialized
    state_batches: Array[StateBatch] = field("0+")


@nested
class ReadStateResult:
    """The states of one topic's partitions."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateResponse(Response):
    """The states that were asked for."""

    results: Array[ReadStateResult] = field("0+")


@nested
class ReadShareGroupStateRequestPartitionData:
    """A partition, and the epoch in which the sender leads it."""

    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class ReadStateData:
    """Partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE, versions="0", flexible="0+")
class ReadShareGroupStateRequest(Request[ReadShareGroupStateResponse]):
    """A partition's leader asks how far the group has come."""

    group_id: String = field("0+")
    topics: Array[ReadStateData] = field("0+")


@nested
class WriteShareGroupStateResponsePartitionResult:
    """Whether one partition's state was written."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class WriteStateResult:
    """Whether the states of one topic's partitions were written."""

    topic_id: Uuid = field("0+")
    partitions: Array[WriteShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse(Response):
    """Which states were written."""

    results: Array[WriteStateResult] = field("0+")


@nested
class WriteShareGroupStateRequestPartitionData:
    """What has changed in one partition's state."""

    partition: Int32 = field("0+")
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")  # -1: as before
    # KIP-1226: how many records from start_offset on are done with; -1: not known
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    state_batches: Array[StateBatch] = field("0+")


@nested
class WriteStateData:
    """What has changed in one topic's partitions."""

    topic_id: Uuid = field("0+")
    partitions: Array[WriteShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.WRITE_SHARE_GROUP_STATE, versions="0-1", flexible="0+")
class WriteShareGroupStateRequest(Request[WriteShareGroupStateResponse]):
    """A partition's leader stores what was handed out and acknowledged."""

    group_id: String = field("0+")
    topics: Array[WriteStateData] = field("0+")


@nested
class DeleteShareGroupStateResponsePartitionResult:
    """Whether one partition's state was deleted."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)


@nested
class DeleteStateResult:
    """Whether the states of one topic's partitions were deleted."""

    topic_id: Uuid = field("0+")
    partitions: Array[DeleteShareGroupStateResponsePartitionResult] = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateResponse(Response):
    """Which states were deleted."""

    results: Array[DeleteStateResult] = field("0+")


@nested
class DeleteShareGroupStateRequestPartitionData:
    """A partition whose state goes."""

    partition: Int32 = field("0+")


@nested
class DeleteStateData:
    """Partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[DeleteShareGroupStateRequestPartitionData] = field("0+")


@message(ApiKey.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+")
class DeleteShareGroupStateRequest(Request[DeleteShareGroupStateResponse]):
    """The group's coordinator has the states of partitions deleted."""

    group_id: String = field("0+")
    topics: Array[DeleteStateData] = field("0+")


@nested
class ReadShareGroupStateSummaryResponsePartitionResult:
    """The state of one partition without its batches."""

    partition: Int32 = field("0+")
    error_code: Int16 = field("0+")
    error_message: String | None = field("0+", nullable="0+", default=None)
    state_epoch: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")
    start_offset: Int64 = field("0+")  # -1: not initialized
    # KIP-1226: how many records from start_offset on are done with; -1: not known
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)


@nested
class ReadStateSummaryResult:
    """The summaries of one topic's partitions."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateSummaryResponsePartitionResult] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse(Response):
    """The summaries that were asked for."""

    results: Array[ReadStateSummaryResult] = field("0+")


@nested
class ReadShareGroupStateSummaryRequestPartitionData:
    """A partition to summarize."""

    partition: Int32 = field("0+")
    leader_epoch: Int32 = field("0+")


@nested
class ReadStateSummaryData:
    """Partitions of one topic."""

    topic_id: Uuid = field("0+")
    partitions: Array[ReadShareGroupStateSummaryRequestPartitionData] = field("0+")


@message(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryRequest(Request[ReadShareGroupStateSummaryResponse]):
    """The group's coordinator asks where the group stands."""

    group_id: String = field("0+")
    topics: Array[ReadStateSummaryData] = field("0+")
