"""Handles brokers' answers to a share consumer: records, results of acknowledgements, leaders and errors."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from ..cluster.cluster import Cluster
from ..cluster.metadata import Node
from ..config import ShareConsumerConfig
from ..errors import CorruptBatch, ErrorCode, KafkaError, Refresh, WireError, broker_error
from ..protocol.messages.share_fetch import (
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    ShareFetchResponsePartitionData,
)
from ..types import Address, TopicPartition
from ._implementation import share_records
from .acknowledgement_queue import AcknowledgementQueue, SentAcknowledgements
from .acknowledgements import Acknowledge
from .acquired_partition import AcquiredPartition, AcquiredRange, RecordForm, batches_of, delivered_records
from .deserialized_records import deserialize
from .record_locks import RecordLocks
from .share_buffer import ShareBuffer
from .share_fetch_session import PartitionKey, ShareBroker
from .share_record import RecordOwner

__all__ = ("FetchedPartition", "ShareResponses")

_LARGE: Final = 64 * 1024
"""The size in bytes above which compressed batches are decompressed on a thread."""


FetchedPartition: TypeAlias = tuple[AcquiredPartition, ShareFetchResponsePartitionData]
"""The records of one partition that a fetch has acquired, and their bytes."""


class ShareResponses:
    """The handling of the responses to one share consumer's fetches and acknowledgements.

    Args:
        cluster: gets the leaders that responses name.
        config: the consumer's settings.
        form: how records are read.
        owner: the consumer, to which records belong.
        queue: gets the results of acknowledgements.
        locks: gets the locks of acquired records.
        buffer: gets the records.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: ShareConsumerConfig,
        form: RecordForm,
        owner: RecordOwner,
        queue: AcknowledgementQueue,
        locks: RecordLocks,
        buffer: ShareBuffer,
    ) -> None:
        self._cluster, self._config, self._form = cluster, config, form
        self._queue, self._locks, self._buffer = queue, locks, buffer
        self._clock = cluster.runtime.now
        self.owner: RecordOwner = owner
        """The consumer to which new records belong."""
        self.assigned: dict[PartitionKey, TopicPartition] = {}
        """The partitions that are read."""
        self.is_closing: bool = False
        """Whether the consumer closes, so that nothing is sent again."""
        self.errors: list[KafkaError] = []
        """The errors to raise to the user."""

    def report_once(self, error: KafkaError) -> None:
        """Raise an error to the user, but only once if it comes again before the user polls."""
        if all(type(error) is not type(known) or str(error) != str(known) for known in self.errors):
            self.errors.append(error)

    def _check(self, response: ShareFetchResponse | ShareAcknowledgeResponse, named: str) -> None:
        if response.error_code != ErrorCode.NONE:
            detail = f" ({response.error_message})" if response.error_message else ""
            raise broker_error(response.error_code, f"{named} of share group {self._config.group_id!r}{detail}")
        self._locks.use_timeout(response.acquisition_lock_timeout_ms)

    # --- acknowledgements --------------------------------------------------------------------------------

    def acknowledged(
        self, broker: ShareBroker, response: ShareAcknowledgeResponse, sent: SentAcknowledgements, began: float
    ) -> None:
        """Handle the results of acknowledgements that were sent without a fetch, at the time ``began``.

        Raises:
            BrokerError: the broker refused the whole request.
        """
        self._check(response, "ShareAcknowledge")
        broker.session.answered()
        codes = {
            (topic.topic_id, data.partition_index): data.error_code
            for topic in response.responses
            for data in topic.partitions
        }
        for key, ranges in sent.ranges.items():
            code = codes.get(key)
            self._locks.settle_renewals(key, ranges, began + self._locks.seconds if code == ErrorCode.NONE else None)
            self._settle(broker, sent, key, code)

    def _settle(self, broker: ShareBroker, sent: SentAcknowledgements, key: PartitionKey, code: int | None) -> None:
        """Settle the acknowledgements of one partition with this code; None if the response lacks the partition."""
        partition = self._queue.partition(key)
        error: KafkaError | None = None
        if code is None:
            error = WireError(
                f"{broker.node.address} answered without the result of the acknowledgements of {partition}"
            )
        elif code != ErrorCode.NONE:
            error = broker_error(code, f"{partition} of a share group")
        if error is not None:
            lost = {part.first for part in sent.ranges[key] if part.kind == Acknowledge.RENEW}
            self._locks.drop(lambda record: record.acquisition.key == key and record.offset in lost)
        if self.is_closing:
            self._queue.settle(sent, key, error)
        elif self._queue.settle_or_retry(sent, key, error, self._clock()):
            broker.back_off(self._clock())

    # --- records -----------------------------------------------------------------------------------------

    def fetched(
        self,
        broker: ShareBroker,
        wanted: Mapping[PartitionKey, TopicPartition],
        response: ShareFetchResponse,
        sent: SentAcknowledgements,
        began: float,
    ) -> list[FetchedPartition]:
        """Handle the response to a fetch that was sent at the time ``began``; return what it has brought, to be read.

        Raises:
            BrokerError: the broker refused the whole request.
        """
        self._check(response, "ShareFetch")
        broker.session.answered(wanted)
        answered = {
            (topic.topic_id, data.partition_index): data for topic in response.responses for data in topic.partitions
        }
        for key in sent.ranges:
            self._settle(broker, sent, key, answered[key].acknowledge_error_code if key in answered else None)
        found: list[FetchedPartition] = []
        for key, data in answered.items():
            partition = wanted.get(key)
            if data.error_code != ErrorCode.NONE:
                if key in self.assigned:
                    self._partition_failed(broker, self.assigned[key], data.error_code)
            elif partition is not None and data.acquired_records:
                ranges = [AcquiredRange(part.first_offset, part.last_offset) for part in data.acquired_records]
                acquisition = AcquiredPartition(
                    key, partition, broker.node.node_id, began + self._locks.seconds, ranges
                )
                self._locks.begin(acquisition)
                found.append((acquisition, data))
        self._use_leaders(answered, response)
        return found

    async def read(self, found: Iterable[FetchedPartition]) -> None:
        """Read the records that a fetch has brought, for the user to take."""
        found = list(found)
        try:
            for acquisition, data in found:
                await self._read_partition(acquisition, data)
        finally:
            for acquisition, _ in found:
                self._locks.arrived(acquisition)

    async def _read_partition(self, acquisition: AcquiredPartition, data: ShareFetchResponsePartitionData) -> None:
        partition, check_crcs = acquisition.partition, self._form.check_crcs
        try:
            batches = batches_of(data.records, partition)
        except KafkaError as error:
            self.errors.append(error)
            batches = []
        for batch in batches:
            if batch.header.codec and batch.header.size > _LARGE:
                with suppress(CorruptBatch):  # which delivered_records() meets again, and releases the batch's records
                    await self._cluster.runtime.offload(partial(batch.prepare, check_crcs=check_crcs))
        delivered = delivered_records(batches, data.acquired_records, partition, self._form)
        if self._form.deserializer is not None:
            await deserialize(delivered, self._form.deserializer, self._form.failures)
        self.errors.extend(delivered.errors)
        if acquisition.is_over or acquisition.lost:
            return  # the broker has released the records meanwhile
        is_late = acquisition.first_end <= self._clock()
        for part in delivered.acknowledged:
            self._locks.add(acquisition, part._replace(is_late=is_late))
        records = share_records(delivered.records, delivered.counts, acquisition, self.owner)
        if self.assigned.get(acquisition.key) == partition:
            self._buffer.put(records, self._clock())
        else:
            self._locks.release(records)

    def _partition_failed(self, broker: ShareBroker, partition: TopicPartition, code: int) -> None:
        error = broker_error(code, f"{partition} of share group {self._config.group_id!r}")
        broker.back_off(self._clock())
        self._locks.drop(lambda record: record.acquisition.partition == partition)
        if error.refresh is Refresh.METADATA or code == ErrorCode.UNKNOWN_TOPIC_ID:
            self._locks.lose(lambda acquisition: acquisition.partition == partition)
            self._cluster.metadata.mark_stale(self._cluster.metadata.snapshot)
        elif not error.retriable:
            self.report_once(error)

    def _use_leaders(
        self, answered: Mapping[PartitionKey, ShareFetchResponsePartitionData], response: ShareFetchResponse
    ) -> None:
        nodes = [Node(end.node_id, Address(end.host, end.port), end.rack) for end in response.node_endpoints]
        leaders = {
            self.assigned[key]: (data.current_leader.leader_id, data.current_leader.leader_epoch)
            for key, data in answered.items()
            if data.error_code != ErrorCode.NONE and key in self.assigned and nodes
        }
        if leaders:
            self._cluster.metadata.use_leaders(leaders, nodes)
