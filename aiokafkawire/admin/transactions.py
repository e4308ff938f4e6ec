"""The admin's methods for producers and transactions (KIP-664).

The first call imports the message classes of transactions.
"""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..argument_checks import INT16, INT32, INT64, check_integer, check_text, flattened, is_integer, items_of, shown
from ..errors import UsageError
from ..types import TopicPartition, check_partition, check_topic_name, normalize_partitions
from .admin_base import AdminBase
from .outcomes import results_of

if TYPE_CHECKING:
    from .transaction_descriptions import (
        AbortTransactionSpec,
        FencedProducer,
        HangingTransaction,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )

__all__ = ("TransactionAdmin",)


class TransactionAdmin(AdminBase):
    """The methods of :class:`~.admin.Admin` for producers and transactions."""

    # --- producers -------------------------------------------------------------------------------------

    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition] | TopicPartition,
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> "dict[TopicPartition, tuple[ProducerState, ...]]":
        """Return the producers that have written to partitions lately, with their open transactions (KIP-664).

        Args:
            partitions: a partition or several.
            broker_id: the broker to ask, leader or follower; by default the leader of each partition.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            NotLeaderOrFollower: the broker ``broker_id`` has no replica of the partition.
            UnknownTopicOrPartition, TopicAuthorizationFailed, ...: a broker answered with an error.
            BrokerNotAvailable: the broker ``broker_id`` is not in the cluster.
            UnsupportedVersion: the brokers are older than 2.8.
            UsageError: a partition does not exist, or an argument is not valid.
            RequestTimeout, TopicNotReady: the timeout has passed; the message has the last cause.
            AdminError: some of several partitions have errors; it has the producers of the others.
        """
        from .transaction_requests import describe_producers

        if broker_id is not None:
            check_integer("broker_id", broker_id)
        if _is_partition(partitions):
            partitions = [check_partition(partitions)]
        requested = normalize_partitions(partitions)

        outcomes = await describe_producers(self._cluster, requested, broker_id, self._deadline(timeout))
        return results_of("describing producers", outcomes)

    async def fence_producers(
        self, *transactional_ids: str | Collection[str], timeout: float | None = None
    ) -> "dict[str, FencedProducer]":
        """Fence the producers of transactional ids: their next request fails, and their open transactions are aborted.

        Each id gets a new epoch. A coordinator that does not know an id creates it.

        Args:
            transactional_ids: the ids.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            TransactionalIdAuthorizationFailed, ...: a coordinator answered with an error.
            UnsupportedVersion: the brokers are older than 0.11.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several ids have errors; it has the new epochs of the others.
        """
        from .transaction_requests import fence_producers

        names = _transactional_ids(transactional_ids)

        outcomes = await fence_producers(self._cluster, names, self._deadline(timeout))
        return results_of("fencing producers", outcomes)

    async def force_terminate_transaction(self, transactional_id: str, *, timeout: float | None = None) -> None:
        """Abort the open or prepared transaction of a transactional id, and fence its producer (KIP-939).

        Use it for a transaction of a two-phase commit that stays prepared because its coordinator is gone. Without an
        open transaction, only the producer is fenced.

        Raises:
            TransactionalIdAuthorizationFailed, ...: the coordinator answered with an error.
            RequestTimeout: the timeout has passed; the message has the last cause.
        """
        await self.fence_producers([transactional_id], timeout=timeout)

    # --- transactional ids -----------------------------------------------------------------------------

    async def list_transactions(
        self,
        *,
        states: Collection[str] | None = None,
        producer_ids: Collection[int] | None = None,
        running_longer_than_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> "list[TransactionListing]":
        """List the transactional ids of the cluster, sorted; every broker lists those that it coordinates (KIP-664).

        Args:
            states: only ids in one of these states, such as "Ongoing".
            producer_ids: only ids of one of these producers.
            running_longer_than_ms: only ids whose transaction began more than these ms ago (KIP-994, brokers since
                3.8). Brokers include ids that have never had a transaction; filter by ``states`` as well.
            transactional_id_pattern: only ids that this regular expression (RE2) matches as a whole (KIP-1152, brokers
                since 4.1).
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidRegularExpression, ...: a broker answered with an error.
            UsageError: a broker does not know one of the states.
            UnsupportedVersion: a broker is older than 3.0, or too old for a filter.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several brokers have errors, by the broker's id; it has the lists of the others.
        """
        from .transaction_messages import TransactionFilters
        from .transaction_requests import list_transactions

        if running_longer_than_ms is not None:
            check_integer("running_longer_than_ms", running_longer_than_ms, maximum=INT64)
        if transactional_id_pattern is not None:
            check_text("transactional_id_pattern", transactional_id_pattern)
        filters = TransactionFilters(
            _states(states), _producer_ids(producer_ids), running_longer_than_ms, transactional_id_pattern
        )

        outcomes = await list_transactions(self._cluster, filters, self._deadline(timeout))
        found = results_of("listing transactions", outcomes)
        listed = [listing for together in found.values() for listing in together]
        return sorted(listed, key=lambda listing: listing.transactional_id)

    async def describe_transactions(
        self, *transactional_ids: str | Collection[str], timeout: float | None = None
    ) -> "dict[str, TransactionDescription]":
        """Describe transactional ids: state, producer, and the partitions of an open transaction (KIP-664).

        Raises:
            TransactionalIdNotFound: no coordinator knows the id.
            TransactionalIdAuthorizationFailed, ...: a coordinator answered with an error.
            UnsupportedVersion: the brokers are older than 3.0.
            RequestTimeout: the timeout has passed; the message has the last cause.
            AdminError: some of several ids have errors; it has the descriptions of the others.
        """
        from .transaction_requests import describe_transactions

        names = _transactional_ids(transactional_ids)

        outcomes = await describe_transactions(self._cluster, names, self._deadline(timeout))
        return results_of("describing transactions", outcomes)

    # --- hanging transactions --------------------------------------------------------------------------

    async def find_hanging_transactions(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        broker_id: int | None = None,
        max_transaction_timeout_ms: int = 900_000,
        timeout: float | None = None,
    ) -> "list[HangingTransaction]":
        """Return the open transactions that no coordinator will end, as ``kafka-transactions.sh find-hanging`` does.

        Such a transaction keeps consumers with READ_COMMITTED from reading its partition any further;
        :meth:`abort_transaction` ends it.

        Args:
            topics: the topics to search; by default all, internal topics included.
            broker_id: search only the replicas of this broker; by default the leaders.
            max_transaction_timeout_ms: only transactions whose producer has written nothing for so long, by default
                15 minutes as ``transaction.max.timeout.ms`` of the brokers.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            UnknownTopicOrPartition, ...: a broker answered with an error.
            BrokerNotAvailable: the broker ``broker_id`` is not in the cluster.
            UnsupportedVersion: the brokers are older than 3.0.
            RequestTimeout, TopicNotReady: the timeout has passed; the message has the last cause.
            AdminError: some of several partitions, brokers or transactional ids have errors.
        """
        from .transaction_requests import find_hanging_transactions

        if broker_id is not None:
            check_integer("broker_id", broker_id)
        check_integer("max_transaction_timeout_ms", max_transaction_timeout_ms)
        names = [topics] if isinstance(topics, str) else topics
        if names is not None:
            names = items_of("topics", names, "['orders']")
            for name in names:
                check_topic_name(name)

        return await find_hanging_transactions(
            self._cluster, names, broker_id, max_transaction_timeout_ms, self._deadline(timeout)
        )

    async def abort_transaction(
        self, transaction: "AbortTransactionSpec | HangingTransaction", *, timeout: float | None = None
    ) -> None:
        """Abort a hanging transaction in one partition: its leader writes an abort marker (KIP-664).

        The coordinators do not take part. To abort a transaction that a coordinator knows, use
        :meth:`force_terminate_transaction`.

        Args:
            transaction: a transaction of :meth:`find_hanging_transactions`, or ``AbortTransactionSpec.of(partition,
                producer)`` with a producer of :meth:`describe_producers`.
            timeout: in seconds, by default ``default_api_timeout_ms``.

        Raises:
            InvalidProducerEpoch: the producer has a newer epoch in the partition.
            TransactionCoordinatorFenced: the partition has a marker of a newer coordinator epoch.
            ClusterAuthorizationFailed, ...: the leader answered with an error.
            UsageError: the partition does not exist, or the argument is not valid.
            RequestTimeout, TopicNotReady: the timeout has passed; the message has the last cause.
        """
        from .transaction_descriptions import HangingTransaction
        from .transaction_requests import abort_transaction

        spec = transaction.abort_spec if isinstance(transaction, HangingTransaction) else transaction
        _check_spec(spec)

        await abort_transaction(self._cluster, spec, self._deadline(timeout))


def _is_partition(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str)


def _transactional_ids(given: tuple[str | Collection[str], ...]) -> list[str]:
    names = list(flattened(given))
    for name in names:
        check_text("a transactional id", name)
    return names


def _states(given: Collection[str] | None) -> tuple[str, ...]:
    names = [] if given is None else items_of("states", given, "['Ongoing', 'PrepareCommit']")
    for name in names:
        check_text("each of states", name)
    return tuple(names)


def _producer_ids(given: Collection[int] | None) -> tuple[int, ...]:
    producer_ids = [] if given is None else items_of("producer_ids", given, "[4000]")
    for producer_id in producer_ids:
        check_integer("each of producer_ids", producer_id, maximum=INT64)
    return tuple(producer_ids)


def _check_spec(spec: object) -> None:
    from .transaction_descriptions import AbortTransactionSpec

    if not isinstance(spec, AbortTransactionSpec):
        known = "a transaction of find_hanging_transactions(), or an AbortTransactionSpec"
        raise UsageError(f"transaction must be {known}; got {shown(spec)}")
    check_partition(spec.topic_partition)
    for name, maximum in (("producer_id", INT64), ("producer_epoch", INT16), ("coordinator_epoch", INT32)):
        if not is_integer(getattr(spec, name), 0, maximum):
            given = shown(getattr(spec, name))
            raise UsageError(f"{name} of transaction must be an integer from 0 to {maximum}, got {given}")
