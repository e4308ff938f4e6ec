"""The reads of partitions for one ShareFetch request: acquired records, and the batches that contain them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...errors import ErrorCode
from ...protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    ShareFetchRequest,
    ShareFetchResponsePartitionData,
)
from ...records.batch import RecordBatch
from ..cluster.api_error import ApiError
from ..cluster.replicas import HostedPartition
from ..logs.log import PartitionLog
from ..serving.call import ServerCall
from .aborted import aborted_offsets, without
from .acquisition import Acquisition, BatchOffsets
from .assignor import SharedPartition
from .group_configs import ShareGroupConfigs
from .in_flight import Acquired
from .shared_partitions import ShareState

__all__ = ("ShareRead", "hosted_partition", "leader_of")

_RECORD_LIMIT: Final = 1
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors despite which a fetch of other partitions waits for records."""
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Readable(NamedTuple):
    """The batches of one partition that the member may acquire; ``again`` if some were delivered before."""

    key: SharedPartition
    state: ShareState
    batches: list[RecordBatch]
    again: bool


def hosted_partition(call: ServerCall, key: SharedPartition) -> HostedPartition:
    """Return a partition that this broker leads.

    Raises:
        ApiError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,
            TOPIC_AUTHORIZATION_FAILED, or an injected error.
    """
    name = call.cluster.topic_name(key[0])
    if name is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    call.check_readable(name)
    call.check_blame(name, key[1])
    return call.node.led(name, key[1])


def leader_of(call: ServerCall, key: SharedPartition, code: int) -> LeaderIdAndEpoch:
    """Return the leader that an error response names, if the error means that another broker leads."""
    name = call.cluster.topic_name(key[0])
    if code not in _LEADER_ERRORS or name is None:
        return LeaderIdAndEpoch(leader_id=0, leader_epoch=0)  # Apache Kafka leaves the fields out
    partition = call.cluster.topics.partition(name, key[1])
    return LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


class ShareRead:
    """One attempt to acquire records of the partitions of a share session.

    With ``force`` the request's ``min_bytes`` does not matter, as at the end of its wait.
    """

    def __init__(
        self, call: ServerCall, request: ShareFetchRequest, keys: Sequence[SharedPartition], *, force: bool
    ) -> None:
        self.results: dict[SharedPartition, ShareFetchResponsePartitionData] = {}
        self.logs: list[PartitionLog] = []
        self.acquired: int = 0
        """The number of acquired records."""
        self.archived: bool = False
        """Whether acquired records were archived, since their transactions were aborted: there may be others now."""
        self.failed: bool = False
        """Whether the read of an existing partition failed."""
        self._call = call
        self._request = request
        self._configs: ShareGroupConfigs = call.cluster.shared.configs(request.group_id or "")
        # Every partition gets an equal part of the bytes, and at least one batch.
        max_bytes = min(request.max_bytes, call.cluster.settings.fetch_max_bytes)
        self._partition_bytes: int = max_bytes // max(1, len(keys))
        readable = [found for key in keys if (found := self._readable(key)) is not None]
        size = sum(batch.header.size for found in readable for batch in found.batches)
        if force or size >= request.min_bytes or any(found.again for found in readable):
            for found in readable:
                self._acquire(found)

    @property
    def is_due(self) -> bool:
        """Whether to answer now."""
        return self.failed or self.acquired > 0 or self.archived or not self.logs

    def _readable(self, key: SharedPartition) -> _Readable | None:
        self.results[key] = ShareFetchResponsePartitionData(
            partition_index=key[1],
            error_code=ErrorCode.NONE,
            acknowledge_error_code=ErrorCode.NONE,
            current_leader=LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
            records=b"",
            acquired_records=[],
        )
        try:
            hosted = hosted_partition(self._call, key)
            self.logs.append(hosted.log)
            state = self._call.cluster.shared.begin(self._request.group_id or "", key, hosted)
        except ApiError as refused:
            self.failed = self.failed or refused.code not in _UNKNOWN
            self.results[key].error_code, self.results[key].error_message = refused.code, refused.message
            self.results[key].current_leader = leader_of(self._call, key, refused.code)
            return None
        batches = self._batches(hosted.log, state)
        return _Readable(key, state, batches, state.partition.next_offset < state.partition.end_offset)

    def _batches(self, log: PartitionLog, state: ShareState) -> list[RecordBatch]:
        offset = state.partition.next_offset
        end = log.last_stable_offset if self._configs.read_committed else log.high_watermark
        is_paused = self._call.cluster.fault_rules.is_paused(log.topic, log.partition)
        if offset >= end or is_paused or self._request.max_bytes <= 0:
            return []
        return log.read_batches(offset, self._partition_bytes, up_to=end)

    def _acquire(self, found: _Readable) -> None:
        request, state, shared = self._request, found.state, self._call.cluster.shared
        acquisition = Acquisition(
            member_id=request.member_id or "",
            max_records=request.max_records - self.acquired,
            batch_size=request.batch_size,
            deadline=shared.lock_end(state.group_id),
            delivery_limit=self._configs.delivery_limit,
            record_limit=request.share_acquire_mode == _RECORD_LIMIT,
        )
        offsets = [BatchOffsets(batch.header.base_offset, batch.header.next_offset - 1) for batch in found.batches]
        acquired = state.partition.acquire(acquisition, offsets, self._configs.max_record_locks)
        if self._configs.read_committed and acquired:
            acquired = self._committed(found, acquired)
        if acquired:
            shared.locked(state)
            data = self.results[found.key]
            data.records = _covering(found.batches, acquired)
            data.acquired_records = [
                AcquiredRecords(first_offset=part.first, last_offset=part.last, delivery_count=part.delivery_count)
                for part in acquired
            ]
            self.acquired += sum(part.last - part.first + 1 for part in acquired)

    def _committed(self, found: _Readable, acquired: Sequence[Acquired]) -> list[Acquired]:
        """Archive the acquired records of aborted transactions, and return the other acquired ranges."""
        log = found.state.log
        first = found.batches[0].header.base_offset
        offsets = aborted_offsets(found.batches, log.aborted_in(first, log.log_end_offset))
        aborted = {offset for offset in offsets if any(part.first <= offset <= part.last for part in acquired)}
        if aborted:
            found.state.partition.archive(aborted)
            self.archived = True
        return without(acquired, aborted)


def _covering(batches: Sequence[RecordBatch], acquired: Sequence[Acquired]) -> bytes:
    """Return the batches from the first to the last that contain acquired records."""
    first, last = acquired[0].first, acquired[-1].last
    return b"".join(
        batch.view for batch in batches if batch.header.next_offset > first and batch.header.base_offset <= last
    )
