"""The blocking admin's methods for producers and transactions (KIP-664)."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ..admin.admin import Admin
from ..loop_thread import LoopThread
from ..types import TopicPartition

if TYPE_CHECKING:
    from ..admin.transaction_descriptions import (
        AbortTransactionSpec,
        FencedProducer,
        HangingTransaction,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )

__all__ = ("TransactionAdmin",)


class TransactionAdmin:
    """The methods of :class:`~.admin.Admin` for producers and transactions."""

    _loop: LoopThread
    _admin: Admin

    def describe_producers(
        self,
        partitions: Iterable[TopicPartition] | TopicPartition,
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> "dict[TopicPartition, tuple[ProducerState, ...]]":
        """Return the producers that have written to partitions lately, with their open transactions."""
        return self._loop.call(self._admin.describe_producers, partitions, broker_id=broker_id, timeout=timeout)

    def fence_producers(
        self, *transactional_ids: str | Collection[str], timeout: float | None = None
    ) -> "dict[str, FencedProducer]":
        """Fence the producers of transactional ids, and abort their open transactions."""
        return self._loop.call(self._admin.fence_producers, *transactional_ids, timeout=timeout)

    def force_terminate_transaction(self, transactional_id: str, *, timeout: float | None = None) -> None:
        """Abort the open or prepared transaction of a transactional id, and fence its producer."""
        self._loop.call(self._admin.force_terminate_transaction, transactional_id, timeout=timeout)

    def list_transactions(
        self,
        *,
        states: Collection[str] | None = None,
        producer_ids: Collection[int] | None = None,
        running_longer_than_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> "list[TransactionListing]":
        """List the transactional ids of the cluster, or those that pass all filters."""
        return self._loop.call(
            self._admin.list_transactions,
            states=states,
            producer_ids=producer_ids,
            running_longer_than_ms=running_longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
            timeout=timeout,
        )

    def describe_transactions(
        self, *transactional_ids: str | Collection[str], timeout: float | None = None
    ) -> "dict[str, TransactionDescription]":
        """Describe transactional ids: state, producer, and the partitions of an open transaction."""
        return self._loop.call(self._admin.describe_transactions, *transactional_ids, timeout=timeout)

    def find_hanging_transactions(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        broker_id: int | None = None,
        max_transaction_timeout_ms: int = 900_000,
        timeout: float | None = None,
    ) -> "list[HangingTransaction]":
        """Return the open transactions that no coordinator will end."""
        return self._loop.call(
            self._admin.find_hanging_transactions,
            topics,
            broker_id=broker_id,
            max_transaction_timeout_ms=max_transaction_timeout_ms,
            timeout=timeout,
        )

    def abort_transaction(
        self, transaction: "AbortTransactionSpec | HangingTransaction", *, timeout: float | None = None
    ) -> None:
        """Abort a hanging transaction in one partition."""
        self._loop.call(self._admin.abort_transaction, transaction, timeout=timeout)
