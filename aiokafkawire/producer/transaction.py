"""The transaction as its users see it: an ``async with`` that commits or aborts."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Protocol, Self, TypeVar, runtime_checkable
from uuid import UUID

from ..argument_checks import INT32, check_integer, check_text, shown
from ..errors import (
    CommitFailed,
    InvalidProducerEpoch,
    KafkaError,
    ProducerFenced,
    TransactionAborted,
    UsageError,
    copy_for_reraise,
)
from ..other_clients_names import TRANSACTION, add_hints
from ..records.batch import Delivery
from ..runtime import CLOSE_SECONDS, finish
from ..types import (
    GroupMetadata,
    Headers,
    OffsetAndMetadata,
    RecordMetadata,
    TopicPartition,
    normalize_offsets,
)
from .batch import ProducerBatch
from .open_transaction import OpenTransaction
from .sender import Sender
from .transaction_manager import TransactionManager
from .transaction_state_machine import TransactionPhase

if TYPE_CHECKING:
    from .producer import Producer

__all__ = ("Consumed", "Transaction")

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_ABORT_SECONDS: Final = CLOSE_SECONDS
"""The seconds that an abort may take after the body was cancelled; if it takes longer, the brokers' timeout aborts."""


class Consumed(Protocol):
    """The part of a consumer that a transaction uses to commit the consumer's offsets."""

    def positions(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Return the position of each partition: the offset after the last record that the consumer returned."""

    def group_metadata(self) -> GroupMetadata:
        """Return the consumer's group and membership (KIP-447)."""

    def check_ownership(self, *, since: float | None = None) -> None:
        """Raise CommitFailed if the group revoked partitions while their records were being processed.

        Records count as being processed until the next poll; with ``since``, so do all records since this time.
        """


@runtime_checkable
class HasTopicIds(Protocol):
    """A consumer that knows the ids of the topics that it reads."""

    def _topic_ids(self, partitions: Iterable[TopicPartition]) -> Mapping[str, UUID]:
        """Return the ids of these partitions' topics, by name, as far as they are known."""


class Transaction(Generic[K, V]):
    """A set of records and offsets of which read_committed consumers see all or none (KIP-98).

    If the body of the ``async with`` raises an error, or if the commit fails, the transaction is aborted, and the error
    is raised. The producer can then begin another transaction, unless the producer was fenced or has failed.
    """

    def __init__(self, producer: "Producer[K, V]", sender: Sender, manager: TransactionManager) -> None:
        self._producer, self._sender, self._manager = producer, sender, manager
        self._state, self._began = "new", math.inf
        self._opened: OpenTransaction | None = None
        self._has_begun_to_commit = False

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this transaction is {self._state}: ask the producer for another")
        if self._manager.state.phase is TransactionPhase.OPEN and not self._manager.is_aborting:
            raise UsageError("this producer has a transaction open already: one at a time")
        self._began = self._producer._cluster.runtime.now()
        await self._manager.begin()
        self._state, self._opened = "open", self._manager.state.transaction
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "over"
        if self._manager.state.transaction is not self._opened:
            if error is None:
                raise UsageError("nothing was committed: closing the producer has aborted the transaction")
        elif error is None:
            await self._commit()
        else:
            await self._abort_because(error)

    # --- its content -------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send one record as :meth:`Producer.send`; read_committed consumers see the record only after the commit."""
        self._require_open()
        return await self._producer.send(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> list[RecordMetadata]:
        """Send many records as :meth:`Producer.send_many`."""
        self._require_open()
        return await self._producer.send_many(
            topic, values, keys=keys, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Accept a record as :meth:`Producer.enqueue`. The commit waits for it, and fails if the record fails."""
        self._require_open()
        return await self._producer.enqueue(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> Delivery:
        """Accept a record as :meth:`Producer.send_nowait`. The commit waits for it, and fails if the record fails."""
        self._require_open()
        return self._producer.send_nowait(
            topic, value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
        )

    async def commit_offsets(
        self,
        consumed: Consumed | Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        group: GroupMetadata | str | None = None,
    ) -> None:
        """Commit consumed offsets in the transaction: they take effect only if it is committed (KIP-447).

        An abort does not move the consumer back: write the same records again, or seek to the committed offsets. The
        consumer needs ``enable_auto_commit=False``: otherwise it commits the records of aborted transactions, too.

        Args:
            consumed: a consumer, whose positions are committed; or the offsets to commit.
            group: the group of the offsets, as ``consumer.group_metadata()`` or its id; by default the consumer's. With
                an id alone, brokers do not check that a member of the group still owns the partitions.

        Raises:
            UsageError: no transaction is open, or offsets were given without a group.
            CommitFailed: the group has revoked the partitions meanwhile, or removed the consumer. The transaction can
                only be aborted, even if this error is caught.
            FencedInstanceId: another consumer has the same ``group_instance_id``, or this one was removed from the
                group, and has rejoined. The transaction can only be aborted.
            KafkaError: the transaction can only be aborted, because of this error.
        """
        self._require_open()
        topic_ids: Mapping[str, UUID] = {}
        if isinstance(consumed, Mapping):
            if group is None:
                raise UsageError("offsets need the group that commits them: commit_offsets(offsets, group='...')")
            offsets = normalize_offsets(consumed)
        elif all(hasattr(consumed, name) for name in ("positions", "group_metadata", "check_ownership")):
            try:
                consumed.check_ownership(since=self._began)
            except CommitFailed as error:
                self._manager.state.must_abort(error)
                raise
            offsets, group = dict(consumed.positions()), consumed.group_metadata() if group is None else group
            if isinstance(consumed, HasTopicIds):
                topic_ids = consumed._topic_ids(offsets)
        else:
            wanted = "a consumer, or a mapping such as {TopicPartition('orders', 0): 42}"
            raise UsageError(f"what was consumed must be {wanted}, got {shown(consumed)}")
        await self._commit_offsets(offsets, group, topic_ids)

    async def _commit_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata | str,
        topic_ids: Mapping[str, UUID],
    ) -> None:
        """Commit offsets of topics with these ids, as far as they are known."""
        checked = _group(group)
        commit = self._manager.state.add_offsets(checked, offsets, topic_ids)
        await self._manager.wait_until(lambda: commit.done, f"committing offsets of group {checked.group_id!r}")
        if commit.error is not None:
            raise copy_for_reraise(commit.error)

    def _require_open(self) -> None:
        if self._state != "open":
            raise UsageError(f"this transaction is {self._state}: use it inside its 'async with'")

    # --- its end -----------------------------------------------------------------------------------------

    async def _commit(self) -> None:
        state = self._manager.state
        transaction = state.transaction
        # A call that waits for buffer space goes on once a batch is complete; the commit would not wait for its record.
        self._manager.refuse_records()
        try:
            await self._sender.wait_until_complete()
        except BaseException as cancelled:
            await self._abort_because(cancelled)
            raise
        if state.error is None:
            self._has_begun_to_commit = True
            try:
                await self._manager.commit()
            except BaseException as cancelled:
                # The commit continues in the background, and is followed by an abort if it fails. If it has just
                # ended, the next transaction may begin at once, and must not be aborted instead.
                if state.transaction is transaction:
                    self._manager.abort(self._finish_batches(cancelled))
                raise
        if state.error is not None:
            error = copy_for_reraise(state.error)
            await self._abort_because(error)
            raise error

    async def _abort_because(self, why: BaseException) -> None:
        """Abort because of the error ``why``; if the abort fails, add its error to ``why`` as a note.

        Raises:
            ProducerFenced: the abort failed with this error, and ``why`` is the less exact InvalidProducerEpoch.
        """
        try:
            await self._abort(why)
        except KafkaError as failed:
            if isinstance(why, InvalidProducerEpoch) and isinstance(failed, ProducerFenced):
                raise
            if str(failed) != str(why):
                why.add_note(f"besides, the transaction could not be aborted: {failed}")

    async def _abort(self, why: BaseException) -> None:
        if isinstance(why, Exception):
            await self._abort_now(why)
            return
        await finish(self._abort_now, why, within=_ABORT_SECONDS)

    async def _abort_now(self, why: BaseException) -> None:
        manager = self._manager
        manager.abort(self._finish_batches(why))
        await manager.wait_until(lambda: not manager.is_aborting, "the abort")
        manager.raise_failure()

    def _finish_batches(self, why: BaseException) -> Callable[[], Awaitable[None]]:
        """Return a function that fails waiting batches because of ``why``, and waits until no batch is in flight."""
        sender = self._sender

        async def finish_batches() -> None:
            sender.completion.fail_waiting(lambda batch: _aborted(batch, why), is_abort=True)
            with sender.flushing():
                await sender.wait_until_idle()
            sender.completion.fail_waiting(lambda batch: _aborted(batch, why), is_abort=True)
            # This transaction reports the abort; flush() does not report its records again.
            sender.completion.failures.take()

        return finish_batches


add_hints(Transaction, TRANSACTION)


def _group(given: object) -> GroupMetadata:
    """Check the group that a user gave, and return it as GroupMetadata."""
    if not isinstance(given, GroupMetadata):
        if not isinstance(given, str):
            raise UsageError(f"group must be a group's id or consumer.group_metadata(), got {shown(given)}")
        given = GroupMetadata(given)
    check_text("group_id", given.group_id)
    check_text("member_id", given.member_id, empty=True)
    check_integer("generation_id", given.generation_id, -1, INT32)
    if given.group_instance_id is not None:
        check_text("group_instance_id", given.group_instance_id)
    return given


def _aborted(batch: ProducerBatch, why: BaseException) -> KafkaError:
    error = TransactionAborted(
        f"{batch.partition}: the transaction was aborted, because of {type(why).__name__}: {why}"
    )
    error.__cause__ = why
    return error
