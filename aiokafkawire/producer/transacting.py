"""A transaction as users have it in hand: an ``async with`` that commits or aborts."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Protocol, Self, TypeVar

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
from .batch import Batch
from .sender import Sender
from .transaction import TransactionState
from .transactor import Transactor

if TYPE_CHECKING:
    from .producer import Producer

__all__ = ("Consumed", "Transaction")

K = TypeVar("K", contravariant=True)
V = TypeVar("V", contravariant=True)

_ABORT_SECONDS: Final = CLOSE_SECONDS
"""How long a transaction whose body was cancelled may take to abort; the brokers do it otherwise, in time."""


class Consumed(Protocol):
    """A consumer, as far as a transaction commits what it has read."""

    def positions(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """Where each partition is read on: after the last record that was handed out."""

    def group_metadata(self) -> GroupMetadata:
        """Its group and membership (KIP-447)."""

    def check_ownership(self, *, since: float | None = None) -> None:
        """Raise CommitFailed if records that it has handed out, or has since then, are not its own to commit."""


class Transaction(Generic[K, V]):
    """Records and offsets that readers of committed records see all or none of (KIP-98); see ``Producer.transaction``.

    An exception in its body aborts it and goes on. If it cannot be committed, leaving it raises why, and it is
    aborted. The producer can then begin the next one, unless it was fenced or failed for good: then that says so.
    """

    def __init__(self, producer: "Producer[K, V]", sender: Sender, transactor: Transactor) -> None:
        self._producer, self._sender, self._transactor = producer, sender, transactor
        self._state, self._began = "new", math.inf

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError(f"this transaction is {self._state}: ask the producer for another")
        if self._transactor.machine.state is TransactionState.OPEN and not self._transactor.is_aborting:
            raise UsageError("this producer has a transaction open already: one at a time")
        self._began = self._producer._cluster.runtime.now()
        await self._transactor.begin()
        self._state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._state = "over"
        if error is None:
            await self._commit()
            return
        await self._undo(error)

    # --- what is in it -----------------------------------------------------------------------------------

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
        """As :meth:`Producer.send`. It is in the log then, and readers of committed records wait for the commit."""
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
        """As :meth:`Producer.send_many`."""
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
        """As :meth:`Producer.enqueue`. The commit waits for it, and fails if it does."""
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
        """As :meth:`Producer.send_nowait`. The commit waits for it, and fails if it does."""
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
        """Commit what was consumed together with what is sent: all of it counts, or none (KIP-447).

        Args:
            consumed: a consumer, which is as far as the records it has handed out; or the offsets to read on from.
            group: with offsets, whose they are: a group's id, or ``consumer.group_metadata()``.

        Raises:
            UsageError: no transaction is open, or offsets came without a group.
            CommitFailed: the group has taken the partitions away meanwhile, and others read on. The transaction can
                only be aborted, even if this error is caught.
            FencedInstanceId: another consumer has the same ``group_instance_id``; likewise.
            KafkaError: why the transaction can only be aborted.
        """
        self._require_open()
        if isinstance(consumed, Mapping):
            if group is None:
                raise UsageError("offsets need the group that commits them: commit_offsets(offsets, group='...')")
            offsets = normalize_offsets(consumed)
        elif all(hasattr(consumed, name) for name in ("positions", "group_metadata", "check_ownership")):
            try:
                consumed.check_ownership(since=self._began)
            except CommitFailed as error:
                self._transactor.machine.must_abort(error)
                raise
            offsets, group = dict(consumed.positions()), consumed.group_metadata() if group is None else group
        else:
            wanted = "a consumer, or a mapping such as {TopicPartition('orders', 0): 42}"
            raise UsageError(f"what was consumed must be {wanted}, got {shown(consumed)}")
        whose = _group(group)
        commit = self._transactor.machine.add_offsets(whose, offsets)
        await self._transactor.until(lambda: commit.done, f"committing offsets of group {whose.group_id!r}")
        if commit.error is not None:
            raise copy_for_reraise(commit.error)

    def _require_open(self) -> None:
        if self._state != "open":
            raise UsageError(f"this transaction is {self._state}: use it inside its 'async with'")

    # --- its end -----------------------------------------------------------------------------------------

    async def _commit(self) -> None:
        machine = self._transactor.machine
        try:
            await self._sender.settled()
        except BaseException as cancelled:
            await self._undo(cancelled)
            raise
        if machine.error is None:
            try:
                await self._transactor.commit()
            except BaseException as cancelled:
                # It goes on without us, and is aborted if it is refused.
                self._transactor.abort(self._quiet(cancelled))
                raise
        if machine.error is not None:
            error = copy_for_reraise(machine.error)
            await self._undo(error)
            raise error

    async def _undo(self, why: BaseException) -> None:
        """Abort because of ``why``, which is the news: that this could not be is a note of it.

        Raises:
            ProducerFenced: a leader saw no more of it than a wrong epoch, which is ``why``.
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
        transactor = self._transactor
        transactor.abort(self._quiet(why))
        await transactor.until(lambda: not transactor.is_aborting, "the abort")
        transactor.require()

    def _quiet(self, why: BaseException) -> Callable[[], Awaitable[None]]:
        """Drops what was not sent, and waits for what was."""
        sender = self._sender

        async def quiet() -> None:
            sender.outcomes.drop(lambda batch: _aborted(batch, why))
            with sender.hurry():
                await sender.quiet()
            sender.outcomes.drop(lambda batch: _aborted(batch, why))
            # Whoever handed them over learns of the abort from this transaction.
            sender.outcomes.failures.take()

        return quiet


add_hints(Transaction, TRANSACTION)


def _group(given: object) -> GroupMetadata:
    """Read the group that commits offsets."""
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


def _aborted(batch: Batch, why: BaseException) -> KafkaError:
    error = TransactionAborted(f"{batch.where}: the transaction was aborted, because of {type(why).__name__}: {why}")
    error.__cause__ = why
    return error
