"""The admin's requests about producers and transactions, each to the brokers that know them."""

from collections.abc import Collection, Iterable
from typing import Final

from ..cluster.cluster import Cluster
from ..cluster.metadata import EMPTY, merge
from ..cluster.retry import Deadline
from ..errors import TransactionalIdNotFound, UnsupportedVersion, UsageError
from ..protocol.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsResponse,
)
from ..protocol.messages.transactions import InitProducerIdRequest, InitProducerIdResponse
from ..types import CoordinatorType, TopicPartition
from .concurrent_outcomes import ask_one_by_one, raise_if_unsupported
from .coordinator_outcomes import ask_coordinators, with_coordinators
from .leader_outcomes import ask_leaders
from .outcomes import Outcomes, ask_for_each, results_of
from .response_errors import explain_unsupported, raise_for
from .routes import to_broker
from .transaction_descriptions import (
    AbortTransactionSpec,
    FencedProducer,
    HangingTransaction,
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from .transaction_messages import (
    TransactionFilters,
    abort_request,
    aborted,
    described_producers,
    described_transactions,
    hanging_transactions,
    listed_transactions,
    producers_request,
    transaction_description,
)

__all__ = (
    "abort_transaction",
    "describe_producers",
    "describe_transactions",
    "fence_producers",
    "find_hanging_transactions",
    "list_transactions",
)

_LANE: Final = "admin"
_AT_ONCE: Final = 500
"""The most partitions whose producers are described at once."""
_DESCRIBING_NEEDS: Final = "describing producers needs brokers since 2.8 (KIP-664)"
_NEEDS: Final = "describing transactions needs brokers since 3.0 (KIP-664)"
_LISTING_NEEDS: Final = (
    "listing transactions needs brokers since 3.0 (KIP-664), by duration since 3.8 (KIP-994), by a pattern since 4.1 "
    "(KIP-1152)"
)


# --- producers -----------------------------------------------------------------------------------------------------


async def describe_producers(
    cluster: Cluster, partitions: Collection[TopicPartition], broker_id: int | None, deadline: Deadline
) -> Outcomes[TopicPartition, tuple[ProducerState, ...]]:
    """Return the producers of each partition, or its error, from the leaders or from one broker.

    Raises:
        UnsupportedVersion: all brokers are too old.
        BrokerNotAvailable: the named broker is not in the cluster.
    """
    with explain_unsupported(_DESCRIBING_NEEDS):
        if broker_id is None:
            found: Outcomes[TopicPartition, tuple[ProducerState, ...]] = await ask_leaders(
                cluster, partitions, deadline, request=producers_request, outcomes=described_producers
            )
        else:
            route = await to_broker(cluster, broker_id, deadline)
            found = await ask_for_each(
                cluster,
                route,
                partitions,
                deadline,
                request=producers_request,
                outcomes=described_producers,
                retried=(),
            )
        return raise_if_unsupported(found)


async def fence_producers(
    cluster: Cluster, transactional_ids: Iterable[str], deadline: Deadline
) -> Outcomes[str, FencedProducer]:
    """Give each transactional id a new epoch, which aborts its open transaction; return it, or the id's error.

    Raise UnsupportedVersion if the brokers have no transactions.
    """
    # The coordinator also uses this timeout to write the new epoch to its log, but begins no transaction with it.
    timeout_ms = max(1, cluster.broker_timeout_ms(deadline))

    async def fence(transactional_id: str) -> FencedProducer:
        def check(response: InitProducerIdResponse) -> None:
            raise_for(response.error_code, f"InitProducerId of transactional id {transactional_id!r}")

        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        response = await cluster.ask_coordinator(
            CoordinatorType.TRANSACTION, transactional_id, request, deadline, lane=_LANE, check=check
        )
        return FencedProducer(response.producer_id, response.producer_epoch)

    return raise_if_unsupported(await ask_one_by_one(list(dict.fromkeys(transactional_ids)), fence))


# --- transactional ids ---------------------------------------------------------------------------------------------


async def list_transactions(
    cluster: Cluster, filters: TransactionFilters, deadline: Deadline
) -> Outcomes[int, list[TransactionListing]]:
    """Return the transactional ids that each broker coordinates, or its error, by the broker's id.

    Raises:
        UnsupportedVersion: a broker is too old for the filters.
        UsageError: a broker does not know one of the states to filter by.
    """
    snapshot = await cluster.metadata.refresh(cluster.metadata.snapshot, deadline)

    async def listed(node_id: int) -> list[TransactionListing]:
        def check(response: ListTransactionsResponse) -> None:
            listed_transactions(node_id, response)

        route = await to_broker(cluster, node_id, deadline)
        response = await cluster.ask(
            route, filters.request(), deadline, lane=_LANE, wanted=filters.versions, check=check
        )
        return listed_transactions(node_id, response)

    found = await ask_one_by_one(list(snapshot.nodes), listed)
    for outcome in found.values():
        if isinstance(outcome, UsageError):
            raise outcome
        if isinstance(outcome, UnsupportedVersion):
            raise UnsupportedVersion(f"{_LISTING_NEEDS}: {outcome}")
    return found


async def describe_transactions(
    cluster: Cluster, transactional_ids: Iterable[str], deadline: Deadline
) -> Outcomes[str, TransactionDescription]:
    """Describe transactional ids, by one request to each coordinator; return the outcome of each id.

    Raise UnsupportedVersion if all coordinators are too old.
    """
    states: Outcomes[str, DescribeTransactionsResponseTransactionState] = await ask_coordinators(
        cluster,
        CoordinatorType.TRANSACTION,
        transactional_ids,
        deadline,
        request=lambda some: DescribeTransactionsRequest(transactional_ids=some),
        outcomes=described_transactions,
        needs=_NEEDS,
    )

    return await with_coordinators(
        cluster,
        CoordinatorType.TRANSACTION,
        states,
        deadline,
        lambda state, node: transaction_description(state, node.node_id),
    )


# --- hanging transactions ------------------------------------------------------------------------------------------


async def abort_transaction(cluster: Cluster, spec: AbortTransactionSpec, deadline: Deadline) -> None:
    """Write an abort marker to a partition by its leader. Raise as :meth:`Admin.abort_transaction`."""
    outcomes: Outcomes[TopicPartition, None] = await ask_leaders(
        cluster, [spec.topic_partition], deadline, request=lambda _: abort_request(spec), outcomes=aborted
    )
    results_of("aborting a transaction", outcomes)


async def find_hanging_transactions(
    cluster: Cluster,
    topics: Collection[str] | None,
    broker_id: int | None,
    max_transaction_timeout_ms: int,
    deadline: Deadline,
) -> list[HangingTransaction]:
    """Return the open transactions that no coordinator will end. Raise as :meth:`Admin.find_hanging_transactions`."""
    partitions = await _partitions_of(cluster, topics, broker_id, deadline)
    began_before = cluster.runtime.wall_ms() - max_transaction_timeout_ms
    candidates = [
        (partition, producer)
        for partition, producer in await _open_transactions(cluster, partitions, broker_id, deadline)
        if producer.last_timestamp < began_before
    ]
    if not candidates:
        return []
    producer_ids = tuple(sorted({producer.producer_id for _, producer in candidates}))
    listed = await list_transactions(cluster, TransactionFilters(producer_ids=producer_ids), deadline)
    listings = [listing for together in results_of("listing transactions", listed).values() for listing in together]
    described = await describe_transactions(cluster, [listing.transactional_id for listing in listings], deadline)
    known = {name: outcome for name, outcome in described.items() if not isinstance(outcome, TransactionalIdNotFound)}
    descriptions = results_of("describing transactions", known)
    hanging = hanging_transactions(candidates, listings, list(descriptions.values()))
    # A transaction that has ended meanwhile is in no description, and is no longer open.
    again = {transaction.topic_partition for transaction in hanging}
    still_open = {
        (partition, producer.producer_id, producer.current_transaction_start_offset)
        for partition, producer in await _open_transactions(cluster, sorted(again), broker_id, deadline)
    }
    return [
        found
        for found in hanging
        if (found.topic_partition, found.producer.producer_id, found.start_offset) in still_open
    ]


async def _open_transactions(
    cluster: Cluster, partitions: list[TopicPartition], broker_id: int | None, deadline: Deadline
) -> list[tuple[TopicPartition, ProducerState]]:
    found = []
    for start in range(0, len(partitions), _AT_ONCE):
        some = partitions[start : start + _AT_ONCE]
        described = await describe_producers(cluster, some, broker_id, deadline)
        for partition, producers in results_of("describing producers", described).items():
            found += [(partition, one) for one in producers if one.current_transaction_start_offset is not None]
    return found


async def _partitions_of(
    cluster: Cluster, topics: Collection[str] | None, broker_id: int | None, deadline: Deadline
) -> list[TopicPartition]:
    """Return the partitions of the topics, or of all topics for None; only those on one broker if it is given."""
    requested = None if topics is None else list(dict.fromkeys(topics))
    response = await cluster.ask_metadata(requested, deadline, lane=_LANE)
    found = merge(EMPTY, response).topics
    partitions = []
    for name in sorted(found):
        topic = found[name]
        if topics is not None:
            raise_for(topic.error, f"Metadata of topic {name!r}")
        partitions += [
            TopicPartition(name, partition.index)
            for partition in topic.partitions
            if broker_id is None or broker_id in partition.replicas
        ]
    return partitions
