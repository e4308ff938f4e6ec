"""The reads of partitions for one Fetch request: the choice of the replica, the end offset and the size limits."""

from collections.abc import Sequence
from typing import Final, Self

import attrs

from ...errors import ErrorCode
from ...protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    LeaderIdAndEpoch,
    PartitionData,
)
from ...protocol.primitives import ZERO_UUID
from ...types import IsolationLevel
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..serving.call import ServerCall
from .log import PartitionLog
from .message_sets import BATCHES_FETCHED_SINCE, down_converted
from .sessions import Wanted

__all__ = ("FetchParams", "Read", "failed")

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_FOLLOWERS_SINCE: Final = 11  # consumers may read from followers (KIP-392)
_AT_LEAST_ONE_SINCE: Final = 3  # a batch may exceed the requested size (KIP-74)
_HINTS_SINCE: Final = 16  # an error response names the leader (KIP-951)


@attrs.frozen
class FetchParams:
    """The parameters of a Fetch request that apply to all its partitions."""

    call: ServerCall
    replica_id: int
    committed_only: bool
    min_bytes: int
    max_bytes: int
    rack: str

    @classmethod
    def of(cls, call: ServerCall, request: FetchRequest) -> Self:
        """Take the parameters from a request."""
        max_bytes = min(request.max_bytes, call.cluster.settings.fetch_max_bytes)
        return cls(
            call=call,
            replica_id=request.replica_id if call.version < 15 else request.replica_state.replica_id,
            committed_only=request.isolation_level == IsolationLevel.READ_COMMITTED,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            rack=request.rack_id,
        )

    @property
    def from_follower(self) -> bool:
        """Whether a follower sent the request; followers also read records above the high watermark."""
        return self.replica_id >= 0

    @property
    def only_from_leader(self) -> bool:
        """Whether only the leader may answer."""
        return self.from_follower or self.call.version < _FOLLOWERS_SINCE


class Read:
    """One read of all existing partitions of a Fetch request, and the results."""

    def __init__(self, params: FetchParams, wanted: Sequence[Wanted]) -> None:
        self.results: list[tuple[Wanted, PartitionData]] = []
        self.logs: list[PartitionLog] = []
        self._params = params
        self._bytes_left = params.max_bytes
        self._size = 0
        self._hurry = False
        for partition in wanted:
            self.results.append((partition, self._partition(partition)))

    @property
    def is_due(self) -> bool:
        """Whether to answer now: enough was read, there are no partitions, or a result such as an error is urgent."""
        return self._hurry or self._size >= self._params.min_bytes or not self.results

    def _partition(self, wanted: Wanted) -> PartitionData:
        call = self._params.call
        assert wanted.topic is not None
        try:
            call.check_blame(wanted.topic, wanted.asked.partition)
            partition = call.node.hosted(wanted.topic, wanted.asked.partition)
            topic = call.cluster.topics.get(wanted.topic)
            assert topic is not None
            if wanted.topic_id not in (ZERO_UUID, topic.topic_id):
                raise ApiError(ErrorCode.INCONSISTENT_TOPIC_ID)
            self.logs.append(partition.log)
            data = self._data(partition, wanted.asked)
        except ApiError as refused:
            self._hurry = True
            data = failed(wanted, refused.code)
            data.aborted_transactions = None
            if call.version >= _HINTS_SINCE:
                data.current_leader = self._leader(wanted, refused.code)
        return data

    def _leader(self, wanted: Wanted, code: ErrorCode) -> LeaderIdAndEpoch:
        if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return LeaderIdAndEpoch()
        assert wanted.topic is not None
        partition = self._params.call.cluster.topics.partition(wanted.topic, wanted.asked.partition)
        return LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)

    def _data(self, partition: HostedPartition, asked: FetchPartition) -> PartitionData:
        """Read one partition. Raises ApiError with the partition's error."""
        node = self._params.call.node.node_id
        preferred = self._preferred(partition, asked)
        partition.check_epoch(asked.current_leader_epoch)
        data = PartitionData(
            partition_index=asked.partition,
            error_code=ErrorCode.NONE,
            high_watermark=partition.high_watermark(node),
            last_stable_offset=partition.last_stable_offset(node),
            log_start_offset=partition.log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if preferred is not None:
            data.preferred_read_replica = preferred
            self._hurry = True
            return data
        if self._params.only_from_leader:
            partition.check_leader(node)
        if self._params.from_follower and self._params.replica_id not in _followers(partition):
            known = asked.current_leader_epoch >= 0
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if asked.last_fetched_epoch >= 0 and self._diverges(partition, asked, data):
            self._hurry = True
            return data
        self._records(partition, asked, data)
        return data

    def _diverges(self, partition: HostedPartition, asked: FetchPartition, data: PartitionData) -> bool:
        """Return whether the reader's log diverges from the partition's; if it does, set ``data.diverging_epoch``."""
        end = partition.epoch_end(asked.last_fetched_epoch, self._params.call.node.node_id)
        if end.epoch < 0 or asked.fetch_offset < partition.log.log_start_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if end.epoch >= asked.last_fetched_epoch and end.end_offset >= asked.fetch_offset:
            return False
        data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
        return True

    def _records(self, partition: HostedPartition, asked: FetchPartition, data: PartitionData) -> None:
        log, offset = partition.log, asked.fetch_offset
        end = partition.end_offset(self._params.call.node.node_id)
        if offset > end:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        up_to = data.high_watermark
        if self._params.from_follower:
            up_to = end
        elif self._params.committed_only:
            up_to = data.last_stable_offset
        # Only the first batch in the whole response may exceed the requested size (KIP-74).
        version = self._params.call.version
        read = log.read if version < BATCHES_FETCHED_SINCE else log.read_cut
        records = read(
            offset,
            min(asked.partition_max_bytes, self._bytes_left),
            up_to=up_to,
            at_least_one=not self._size and version >= _AT_LEAST_ONE_SINCE,
        )
        if offset >= up_to or self._params.call.cluster.fault_rules.is_paused(log.topic, log.partition):
            records = b""
        if version < BATCHES_FETCHED_SINCE:
            exact = self._params.call.node.release.since("2.0")
            records = down_converted(records, version, offset, exact=exact)
        self._bytes_left = max(0, self._bytes_left - len(records))
        self._size += len(records)
        data.records = records
        if self._params.committed_only and not self._params.from_follower:
            data.aborted_transactions = _aborted(log, offset) if records else []

    def _preferred(self, partition: HostedPartition, asked: FetchPartition) -> int | None:
        """Return a broker in the consumer's rack with an in-sync replica that has the offset; None for this broker."""
        params, cluster = self._params, self._params.call.cluster
        here = params.call.node
        if partition.leader != here.node_id or params.only_from_leader or not params.rack:
            return None
        if cluster.settings.replica_selector_class != RACK_AWARE or here.rack == params.rack:
            return None
        nearby = [
            (partition.end_offset(node.node_id), node.node_id)
            for node in cluster.alive
            if node.rack == params.rack and node.node_id in partition.in_sync_replicas
        ]
        reached = [
            candidate for candidate in nearby if candidate[0] >= asked.fetch_offset >= partition.log.log_start_offset
        ]
        return max(reached)[1] if reached else None


def failed(wanted: Wanted, code: ErrorCode) -> PartitionData:
    """Return the error response for a partition."""
    return PartitionData(partition_index=wanted.asked.partition, error_code=code, high_watermark=-1, records=b"")


def _followers(partition: HostedPartition) -> list[int]:
    return [node for node in partition.replicas if node != partition.leader]


def _aborted(log: PartitionLog, offset: int) -> list[AbortedTransaction]:
    """Return the aborted transactions from ``offset`` to the log's end, even after the batches read, as in Kafka."""
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=first)
        for producer_id, first in log.aborted_in(offset, log.log_end_offset)
    ]
