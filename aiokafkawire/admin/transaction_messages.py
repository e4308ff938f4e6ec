"""The requests about producers and transactions, and the outcomes in their responses (KIP-664)."""

from collections.abc import Collection, Iterable
from typing import Final

import attrs

from ..errors import KafkaError, UsageError
from ..group.consumer_protocol import by_topic
from ..protocol.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    PartitionResponse,
    TopicRequest,
)
from ..protocol.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ..protocol.schema import Versions
from ..types import TopicPartition
from .response_errors import error_of, raise_for
from .transaction_descriptions import (
    TRANSACTION_STATES,
    AbortTransactionSpec,
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)

__all__ = (
    "TransactionFilters",
    "aborted",
    "abort_request",
    "described_producers",
    "described_transactions",
    "hanging_transactions",
    "listed_transactions",
    "producers_request",
    "transaction_description",
)

_ANY: Final = Versions.parse("0+")
_BY_DURATION: Final = Versions.parse("1+")  # KIP-994
_BY_PATTERN: Final = Versions.parse("2+")  # KIP-1152


# --- producers -----------------------------------------------------------------------------------------------------


def producers_request(partitions: Iterable[TopicPartition]) -> DescribeProducersRequest:
    """Return the request for the producers of partitions."""
    return DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=indexes) for name, indexes in by_topic(partitions).items()]
    )


def described_producers(
    response: DescribeProducersResponse,
) -> dict[TopicPartition, tuple[ProducerState, ...] | KafkaError]:
    """Return the producers or the error of each partition."""
    return {
        TopicPartition(topic.name, answer.partition_index): _producers(topic.name, answer)
        for topic in response.topics
        for answer in topic.partitions
    }


def _producers(topic: str, answer: PartitionResponse) -> tuple[ProducerState, ...] | KafkaError:
    what = f"DescribeProducers of {TopicPartition(topic, answer.partition_index)}"
    error = error_of(answer.error_code, what, answer.error_message)
    if error is not None:
        return error
    return tuple(
        ProducerState(
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_timestamp,
            _known(producer.coordinator_epoch),
            _known(producer.current_txn_start_offset),
        )
        for producer in answer.active_producers
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None


# --- transactional ids ---------------------------------------------------------------------------------------------


@attrs.frozen
class TransactionFilters:
    """The filters of :meth:`Admin.list_transactions`; a transactional id has to pass all of them."""

    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    running_longer_than_ms: int | None = None
    transactional_id_pattern: str | None = None

    @property
    def versions(self) -> Versions:
        """The versions of ListTransactions that have all of the filters."""
        if self.transactional_id_pattern is not None:
            return _BY_PATTERN
        return _ANY if self.running_longer_than_ms is None else _BY_DURATION

    def request(self) -> ListTransactionsRequest:
        """Return the request with these filters."""
        return ListTransactionsRequest(
            state_filters=list(self.states),
            producer_id_filters=list(self.producer_ids),
            duration_filter=-1 if self.running_longer_than_ms is None else self.running_longer_than_ms,
            transactional_id_pattern=self.transactional_id_pattern,
        )


def listed_transactions(node_id: int, response: ListTransactionsResponse) -> list[TransactionListing]:
    """Return the transactional ids that a broker coordinates.

    Raises:
        BrokerError: the response has an error.
        UsageError: the broker does not know one of the states to filter by.
    """
    raise_for(response.error_code, f"ListTransactions of broker {node_id}")
    if response.unknown_state_filters:
        unknown, known = ", ".join(map(repr, response.unknown_state_filters)), ", ".join(TRANSACTION_STATES)
        raise UsageError(f"states has {unknown}, which broker {node_id} does not know; the states are {known}")
    return [
        TransactionListing(listed.transactional_id, node_id, listed.producer_id, listed.transaction_state)
        for listed in response.transaction_states
    ]


def described_transactions(
    response: DescribeTransactionsResponse,
) -> dict[str, DescribeTransactionsResponseTransactionState | KafkaError]:
    """Return the state or the error of each transactional id."""
    found: dict[str, DescribeTransactionsResponseTransactionState | KafkaError] = {}
    for state in response.transaction_states:
        what = f"DescribeTransactions of transactional id {state.transactional_id!r}"
        found[state.transactional_id] = error_of(state.error_code, what) or state
    return found


def transaction_description(
    state: DescribeTransactionsResponseTransactionState, coordinator_id: int
) -> TransactionDescription:
    """Return the description of a transactional id."""
    partitions = [TopicPartition(topic.topic, index) for topic in state.topics for index in topic.partitions]
    return TransactionDescription(
        state.transactional_id,
        coordinator_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        _known(state.transaction_start_time_ms),
        tuple(sorted(partitions)),
    )


# --- hanging transactions ------------------------------------------------------------------------------------------


def abort_request(spec: AbortTransactionSpec) -> WriteTxnMarkersRequest:
    """Return the request for an abort marker in one partition."""
    partition = spec.topic_partition
    marker = WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        coordinator_epoch=spec.coordinator_epoch,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def aborted(response: WriteTxnMarkersResponse) -> dict[TopicPartition, KafkaError | None]:
    """Return None or the error for each partition."""
    found: dict[TopicPartition, KafkaError | None] = {}
    for marker in response.markers:
        for topic in marker.topics:
            for answer in topic.partitions:
                partition = TopicPartition(topic.name, answer.partition_index)
                what = f"WriteTxnMarkers in {partition} for producer id {marker.producer_id}"
                found[partition] = error_of(answer.error_code, what)
    return found


def hanging_transactions(
    open_transactions: Iterable[tuple[TopicPartition, ProducerState]],
    listings: Iterable[TransactionListing],
    descriptions: Collection[TransactionDescription],
) -> list[HangingTransaction]:
    """Return those of the open transactions that no coordinator will end.

    A coordinator ends the transactions of the partitions that it names: those of an open transaction, and those without
    a marker while a transaction ends.
    """
    ids = {listing.producer_id: listing.transactional_id for listing in listings}
    expected = {description.transactional_id: description.topic_partitions for description in descriptions}
    return [
        HangingTransaction(partition, producer, ids.get(producer.producer_id))
        for partition, producer in open_transactions
        if partition not in expected.get(ids.get(producer.producer_id, ""), ())
    ]
